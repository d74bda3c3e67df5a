"""The bounded queue: never more than its capacity, in order, and every item accounted for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from armlet_runtime.serve.queue import POLICIES, BoundedQueue, Closed, Empty, Full, Policy
from hypothesis import given
from hypothesis import strategies as st


class FakeCondition(threading.Condition):
    """Waiting takes no time: it moves a clock, after doing what the test says happens meanwhile."""

    def __init__(self) -> None:
        super().__init__(threading.RLock())
        self.now = 0.0
        self.meanwhile: list[Callable[[], Any]] = []

    def wait(self, timeout: float | None = None) -> bool:
        if self.meanwhile:
            self.now += 0.5
            self.meanwhile.pop(0)()
            return True
        assert timeout is not None, "nobody would ever wake this thread"
        self.now += timeout
        return False


def fake(capacity: int, policy: Policy) -> tuple[BoundedQueue[int], FakeCondition]:
    condition = FakeCondition()
    return BoundedQueue(capacity, policy, clock=lambda: condition.now, condition=condition), condition


def drained(queue: BoundedQueue[int]) -> list[int]:
    return [queue.get(0) for _ in range(len(queue))]


def test_drop_oldest_takes_all_and_gives_up_the_first() -> None:
    queue, _ = fake(2, "drop-oldest")
    assert [queue.put(n) for n in range(5)] == [None, None, 0, 1, 2]
    assert (queue.accepted, queue.dropped, drained(queue)) == (5, 3, [3, 4])


def test_drop_newest_refuses_what_comes() -> None:
    queue, _ = fake(2, "drop-newest")
    queue.put(0)
    queue.put(1)
    for number in (2, 3):
        with pytest.raises(Full):
            queue.put(number, deadline=100.0)
    assert (queue.accepted, queue.dropped, drained(queue)) == (2, 2, [0, 1])


def test_block_waits_for_room_until_the_deadline() -> None:
    queue, condition = fake(1, "block")
    queue.put(0)
    taken: list[int] = []
    condition.meanwhile = [lambda: None, lambda: taken.append(queue.get(0))]
    assert queue.put(1, deadline=3.0) is None
    assert (taken, condition.now, len(queue)) == ([0], 1.0, 1)
    with pytest.raises(Full):
        queue.put(2, deadline=3.0)
    assert condition.now == 3.0
    with pytest.raises(Full):
        queue.put(3)
    assert (queue.accepted, queue.dropped) == (2, 2)


def test_block_hears_of_the_end() -> None:
    queue, condition = fake(1, "block")
    queue.put(0)
    condition.meanwhile = [queue.close]
    with pytest.raises(Closed):
        queue.put(1, deadline=9.0)
    assert (condition.now, queue.dropped) == (0.5, 0)


def test_get_waits_as_long_as_told() -> None:
    queue, condition = fake(2, "block")
    with pytest.raises(Empty):
        queue.get(2.0)
    assert condition.now == 2.0
    condition.meanwhile = [lambda: queue.put(7)]
    assert queue.get(None) == 7
    told: list[bool] = []
    condition.meanwhile = [lambda: told.append(True)]
    with pytest.raises(Empty):
        queue.get(None, stop=lambda: bool(told))


def test_the_end() -> None:
    queue, _ = fake(2, "drop-newest")
    queue.put(1)
    queue.close()
    with pytest.raises(Closed):
        queue.put(2)
    assert queue.get() == 1
    with pytest.raises(Closed):
        queue.get()


def test_one_item_can_be_taken_out_or_put_back() -> None:
    queue: BoundedQueue[str] = BoundedQueue(2, "drop-newest")
    one, two = "".join(["a"]), "".join(["b"])
    queue.put(one)
    queue.put(two)
    assert (queue.discard(one), queue.discard(one)) == (True, False)
    assert queue.put_back(one)
    assert not queue.put_back("c")
    assert queue.clear() == [one, two]


@pytest.mark.parametrize(("capacity", "policy"), [(0, "block"), (1, "drop-some")])
def test_queues_that_cannot_be(capacity: int, policy: Any) -> None:
    with pytest.raises(ValueError, match="no queue of"):
        BoundedQueue(capacity, policy)


@given(st.integers(1, 5), st.sampled_from(POLICIES), st.lists(st.sampled_from(["put", "get"]), max_size=60))
def test_any_order_of_puts_and_gets(capacity: int, policy: Policy, steps: list[str]) -> None:
    queue, _ = fake(capacity, policy)
    model: list[int] = []
    lost: list[int] = []
    got: list[int] = []
    for number, step in enumerate(steps):
        if step == "put":
            try:
                evicted = queue.put(number)
                if evicted is not None:
                    assert evicted == model.pop(0)
                    lost.append(evicted)
                model.append(number)
            except Full:
                assert policy != "drop-oldest"
                assert len(model) == capacity
                lost.append(number)
        elif model:
            got.append(queue.get(0))
            assert got[-1] == model.pop(0)
        assert len(queue) == len(model) <= capacity
    assert got == sorted(got)
    assert queue.dropped == len(lost)
    assert sorted(got + lost + model) == [n for n, step in enumerate(steps) if step == "put"]


@pytest.mark.parametrize("policy", POLICIES)
def test_with_real_threads_nothing_is_lost_unaccounted(policy: Policy) -> None:
    queue: BoundedQueue[int] = BoundedQueue(3, policy)
    got: list[int] = []
    lost: list[int] = []

    def take() -> None:
        while True:
            try:
                got.append(queue.get())
            except Closed:
                return

    def give(start: int) -> None:
        for number in range(start, start + 500):
            try:
                evicted = queue.put(number, deadline=queue._clock() + 30)
                lost.extend([] if evicted is None else [evicted])
            except Full:
                lost.append(number)

    taker = threading.Thread(target=take)
    givers = [threading.Thread(target=give, args=(start,)) for start in (0, 1000)]
    for thread in (taker, *givers):
        thread.start()
    for thread in givers:
        thread.join()
    queue.close()
    taker.join()
    assert sorted(got + lost) == [*range(500), *range(1000, 1500)]
    assert queue.dropped == len(lost)
    for start in (0, 1000):
        own = [number for number in got if number // 1000 == start // 1000]
        assert own == sorted(own)
    if policy == "block":
        assert lost == []
