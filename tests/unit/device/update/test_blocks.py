"""Archives in blocks, from senders and brokers that lose, repeat, reorder and falsify."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from armlet_runtime.update.blocks import BlocksFetcher
from armlet_runtime.update.interface import Desired, FetchError
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.incoming import FakeIncoming

BLOCK = 8
COUNT = 20
DATA = random.Random(6).randbytes(COUNT * BLOCK - 5)
ARCHIVE, OTHER = "ab" * 32, "cd" * 32
WISH = Desired("m", "1", 1, "0" * 64, len(DATA), ARCHIVE, block_size=BLOCK)

Answer = Callable[[BlocksFetcher, int], None]


def block(number: int) -> bytes:
    return DATA[number * BLOCK : (number + 1) * BLOCK]


def right(fetcher: BlocksFetcher, number: int) -> None:
    fetcher.deliver(ARCHIVE, number, block(number))


@dataclass
class FakeSource:
    """Answers at once, in the thread that asks; ``connected`` says for each asking whether there is a connection."""

    answer: Answer = right
    connected: Callable[[int], bool] = lambda asking: True
    fetcher: BlocksFetcher = field(init=False)
    asked: list[list[int]] = field(default_factory=list)

    def want(self, desired: Desired, numbers: list[int]) -> bool:
        assert desired == WISH
        self.asked.append(numbers)
        if not self.connected(len(self.asked)):
            return False
        for number in numbers:
            self.answer(self.fetcher, number)
        return True


def fetch(source: FakeSource, into: FakeIncoming, cancelled: Callable[[], bool] = lambda: False, **how: Any) -> None:
    source.fetcher = BlocksFetcher(source, **{"first_wait": 0.01, "patience": 0.5, **how})
    source.fetcher.fetch(WISH, into, lambda _: None, cancelled)


def new() -> FakeIncoming:
    return FakeIncoming(len(DATA), BLOCK)


def test_each_block_is_asked_for_once_and_few_at_a_time() -> None:
    source, into = FakeSource(), new()
    into.held[3] = block(3)
    fetch(source, into)
    assert into.content == DATA
    assert [number for numbers in source.asked for number in numbers] == [0, 1, 2, *range(4, COUNT)]
    assert max(map(len, source.asked)) == 4
    assert into.syncs


def test_no_more_than_four_are_in_flight() -> None:
    """Delivered by another thread, one after the other, each second one before its turn."""
    waiting: list[int] = []
    most = 0
    changed = threading.Condition()
    ended = threading.Event()

    def keep(_fetcher: BlocksFetcher, number: int) -> None:
        nonlocal most
        with changed:
            waiting.append(number)
            most = max(most, len(waiting))
            changed.notify()

    def deliver() -> None:
        turn = 0
        while not ended.is_set():
            with changed:
                changed.wait(0.01)
                turn = 1 - turn
                number = waiting.pop(min(turn, len(waiting) - 1)) if waiting else None
            if number is not None:
                right(source.fetcher, number)

    source, into = FakeSource(keep), new()
    thread = threading.Thread(target=deliver)
    thread.start()
    try:
        fetch(source, into, first_wait=30, patience=30)
    finally:
        ended.set()
        thread.join()
    assert into.content == DATA
    assert most <= 4
    assert source.asked[0] == [0, 1, 2, 3]


WRONG: dict[str, Answer] = {
    "nothing": lambda fetcher, number: None,
    "another-archive": lambda fetcher, number: fetcher.deliver(OTHER, number, block(number)),
    "no-archive": lambda fetcher, number: fetcher.deliver("", number, block(number)),
    "shorter": lambda fetcher, number: fetcher.deliver(ARCHIVE, number, block(number)[:-1]),
    "longer": lambda fetcher, number: fetcher.deliver(ARCHIVE, number, block(number) + b"x"),
    "empty": lambda fetcher, number: fetcher.deliver(ARCHIVE, number, b""),
    "others": lambda fetcher, number: fetcher.deliver(ARCHIVE, number + 4, block(number + 4)),
    "out-of-range": lambda fetcher, number: fetcher.deliver(ARCHIVE, number + 10**30, bytes(BLOCK)),
    "negative": lambda fetcher, number: fetcher.deliver(ARCHIVE, number - COUNT, bytes(BLOCK)),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_was_not_asked_for_is_nothing(wrong: str) -> None:
    into = new()
    with pytest.raises(FetchError) as caught:
        fetch(FakeSource(WRONG[wrong]), into)
    assert (caught.value.category, caught.value.again) == ("download", True)
    assert into.held == {}
    assert ("another length" in caught.value.reason) == (wrong in ("shorter", "longer", "empty"))


def test_nothing_is_taken_before_or_after() -> None:
    source, into = FakeSource(), new()
    fetch(source, into)
    for number in range(COUNT):
        right(source.fetcher, number)
    assert source.fetcher._came == {}


def test_one_lost_block_is_asked_for_again_before_the_others_are_through() -> None:
    lost = iter([True])

    def loses_two(fetcher: BlocksFetcher, number: int) -> None:
        if number != 2 or not next(lost, False):
            right(fetcher, number)

    source, into = FakeSource(loses_two), new()
    fetch(source, into, first_wait=30, patience=30)
    assert into.content == DATA
    asked = [number for numbers in source.asked for number in numbers]
    assert asked.count(2) == 2
    assert asked.index(2, asked.index(2) + 1) < len(asked) - 1


def test_waits_grow() -> None:
    source = FakeSource(WRONG["nothing"])
    with pytest.raises(FetchError, match=r"no block has come for 1\.5 s"):
        fetch(source, new(), first_wait=0.05, patience=1.5)
    # 0.05, 0.1, 0.2, 0.4, 0.8
    assert 3 <= len(source.asked) <= 6
    assert all(numbers == [0, 1, 2, 3] for numbers in source.asked)


def test_a_new_connection_asks_at_once() -> None:
    source, into = FakeSource(WRONG["nothing"]), new()
    thread = threading.Thread(target=fetch, args=(source, into), kwargs={"first_wait": 30, "patience": 30})
    thread.start()
    while not source.asked:
        time.sleep(0.01)
    source.answer = right
    started = time.monotonic()
    source.fetcher.again()
    thread.join(5)
    assert not thread.is_alive()
    assert time.monotonic() - started < 2
    assert into.content == DATA


def test_without_a_connection_it_gives_way() -> None:
    into = new()
    with pytest.raises(FetchError, match="no connection"):
        fetch(FakeSource(connected=lambda asking: False), into)
    assert into.held == {}


def test_a_connection_that_comes_and_goes() -> None:
    source, into = FakeSource(connected=lambda asking: asking % 2 == 0), new()
    source.answer = right
    fetch(source, into, patience=30)
    assert into.content == DATA


def test_it_is_called_off_within_a_second() -> None:
    off = threading.Event()
    timer = threading.Timer(0.3, off.set)
    timer.start()
    started = time.monotonic()
    with pytest.raises(FetchError, match="called off"):
        fetch(FakeSource(WRONG["nothing"]), new(), off.is_set, first_wait=30, patience=30)
    assert time.monotonic() - started < 1
    timer.join()


def test_the_disk_fails_as_the_disk() -> None:
    into = new()
    into.full_after = 5
    with pytest.raises(OSError, match="No space"):
        fetch(FakeSource(), into)
    assert len(into.held) == 5
    assert into.syncs


@st.composite
def fates(draw: st.DrawFn) -> list[str]:
    return draw(st.lists(st.sampled_from(["right", "right", "right", *WRONG, "later", "twice", "false"]), max_size=40))


@settings(max_examples=150, deadline=None)
@given(fates(), st.randoms(use_true_random=False))
def test_it_comes_to_the_right_bytes_or_stays_incomplete(fate: list[str], chance: random.Random) -> None:
    """Each delivery has a fate; once all are used up, everything is delivered right."""
    left = iter(fate)
    late: list[int] = []
    falsified: set[int] = set()

    def answer(fetcher: BlocksFetcher, number: int) -> None:
        kind = next(left, "right")
        if kind == "later":
            late.append(number)
        elif kind == "twice":
            right(fetcher, number)
            right(fetcher, number)
        elif kind == "false":
            # Of the right length: only the archive's hash can tell.
            falsified.add(number)
            fetcher.deliver(ARCHIVE, number, bytes(len(block(number))))
        else:
            WRONG.get(kind, right)(fetcher, number)
        if late and chance.random() < 0.5:
            right(fetcher, late.pop(chance.randrange(len(late))))

    into = new()
    fetch(FakeSource(answer), into, first_wait=0.002, patience=20)
    assert into.missing() == []
    assert all(data == block(number) for number, data in into.held.items() if number not in falsified)
    assert len(into.puts) == len(set(into.puts))
