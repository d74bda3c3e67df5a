"""Workers that are killed, that stall, that take too much: what is lost, what is not, and what comes back."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from armlet_runtime import ort
from armlet_runtime.serve.interface import Refused

from tests.fakes import serving
from tests.fakes.serving import Asking, Service, gone, until
from tests.fakes.serving import serving as served

LONG = 1_000_000
TEXT = "[service]\nstall_seconds = 2\nrun_seconds = 3\ndrain_seconds = 5\n"


@pytest.fixture
def service(tmp_path: Path, library: ort.Library) -> Iterator[Service]:
    """Serves "add" and "slow"."""
    serving.adds(tmp_path, 1.0)
    serving.takes_long(tmp_path)
    with served(tmp_path, TEXT) as made:
        yield made


def busy(service: Service, model: str = "slow") -> bool:
    worker = service.engine._keeper.slots[model].current
    return worker is not None and worker.busy_since is not None


def test_a_killed_worker_loses_what_it_had_in_hand_and_nothing_else(service: Service) -> None:
    other, pid = service.pid("add"), service.pid("slow")
    lost = Asking(lambda: service.ask("slow", times=(LONG, "int64")))
    until(lambda: busy(service))
    waiting = [Asking(lambda: service.ask("slow", times=(1, "int64"))) for _ in range(5)]
    until(lambda: len(service.engine._keeper.slots["slow"].queue) == 5)
    killed_at = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    assert lost.end().kind == "internal"
    assert lost.ended_at - killed_at < 1.0
    assert lost.refused is not None
    assert "the worker of slow was ended by SIGKILL" in lost.refused.message
    assert [(one.end().kind, one.result) for one in waiting] == [("ok", 1.0)] * 5
    assert service.pid("slow") != pid
    assert (service.pid("add"), service.add(1.0)) == (other, 2.0)


def test_killed_at_any_time(service: Service) -> None:
    stop = threading.Event()
    kinds: list[str] = []

    def ask() -> None:
        while not stop.is_set():
            try:
                kinds.append("ok" if service.add(1.0) == 2.0 else "wrong")
            except Refused as refused:
                kinds.append(refused.kind)

    askers = [threading.Thread(target=ask) for _ in range(4)]
    for asker in askers:
        asker.start()
    chance = random.Random(5)
    kills = 6
    for _ in range(kills):
        time.sleep(chance.uniform(0.0, 0.4))
        until(lambda: service.pid("add"))
        service.engine._keeper.slots["add"].backoff.reset()
        os.kill(service.pid("add"), signal.SIGKILL)
        until(lambda: not service.pid("add"))
    until(lambda: service.pid("add"))
    stop.set()
    for asker in askers:
        asker.join()
    # One at a time is in hand, so each kill costs at most one.
    assert set(kinds) <= {"ok", "internal"}
    assert kinds.count("internal") <= kills
    assert kinds.count("ok") > kills
    assert service.add(1.0) == 2.0


def test_killed_while_it_loads(service: Service) -> None:
    slot = service.engine._keeper.slots["add"]
    os.kill(service.pid("add"), signal.SIGKILL)
    until(lambda: slot.candidate)
    os.kill(slot.candidate.pid if slot.candidate else 0, signal.SIGKILL)
    assert service.add(1.0) == 2.0
    assert slot.backoff.failures == 2


def test_files_that_changed_are_not_served_by_the_next_worker(service: Service) -> None:
    """Whatever lies there now was verified by nobody."""
    slot = service.engine._keeper.slots["add"]
    model = next(slot.payload.folder.glob("model.*")) if slot.payload else Path()
    data = model.read_bytes()
    model.write_bytes(data.replace(b"the_sum", b"the_SUM"))
    os.kill(service.pid("add"), signal.SIGKILL)
    until(lambda: slot.state == "failed")
    assert "has changed since it was verified" in slot.reason
    model.write_bytes(data)
    assert service.add(1.0) == 2.0


def test_a_stalled_worker_is_replaced(service: Service) -> None:
    pid = service.pid("add")
    os.kill(pid, signal.SIGSTOP)
    stopped_at = time.monotonic()
    lost, waiting = (Asking(lambda: service.add(1.0)) for _ in range(2))
    kinds = {lost.end().kind, waiting.end().kind}
    assert kinds == {"ok", "internal"}
    assert time.monotonic() - stopped_at < 10.0
    until(lambda: gone(pid))
    message = (lost.refused or waiting.refused or Refused("internal", "")).message
    assert "showed no life for 2 s" in message
    assert service.add(1.0) == 2.0


def test_a_stalled_worker_that_does_not_even_read(service: Service) -> None:
    """More than the socket holds: whoever sends is stuck until the worker is given up."""
    os.kill(service.pid("add"), signal.SIGSTOP)
    rows = [[0.0] * 3] * 200_000
    lost = Asking(lambda: service.ask("add", x=rows))
    assert lost.end().kind == "internal"
    assert service.add(1.0) == 2.0


def test_a_computation_that_never_ends(service: Service) -> None:
    pid = service.pid("slow")
    lost = Asking(lambda: service.ask("slow", times=(LONG, "int64")))
    assert lost.end().kind == "internal"
    assert lost.refused is not None
    assert "had one request in hand for 3 s" in lost.refused.message
    assert service.ask("slow", times=(1, "int64")) == 1.0
    assert gone(pid)


def test_a_memory_limit_ends_one_worker_only(tmp_path: Path, library: ort.Library) -> None:
    serving.adds(tmp_path, 1.0)
    serving.takes_memory(tmp_path)
    with served(tmp_path, f"{TEXT}[model:hog]\nmemory_mb = 150\n") as service:
        pids = service.pid("add"), service.pid("hog")
        assert service.ask("hog", size=([1000], "int64")) == 1000.0
        # Far beyond the limit the allocation itself fails, and the worker lives to say so.
        refused = Asking(lambda: service.ask("hog", size=([1 << 28], "int64"))).end()
        assert refused.kind == "internal"
        # Somewhat beyond it, it is what stays in memory that counts.
        Asking(lambda: service.ask("hog", size=([45 << 20], "int64"))).end()
        until(lambda: gone(pids[1]))
        assert service.ask("hog", size=([1000], "int64")) == 1000.0
        assert service.pid("hog") != pids[1]
        assert (service.pid("add"), service.add(1.0)) == (pids[0], 2.0)


def test_what_is_accepted_is_answered_before_the_end(service: Service) -> None:
    asked = [Asking(lambda: service.ask("slow", times=(200, "int64"))) for _ in range(4)]
    slot = service.engine._keeper.slots["slow"]
    until(lambda: len(slot.queue) == 3)
    pids = [service.pid("add"), service.pid("slow")]
    assert service.engine.close(20.0)
    assert [one.end().kind for one in asked] == ["ok"] * 4
    assert all(gone(pid) for pid in pids)
    with pytest.raises(Refused) as caught:
        service.add(1.0)
    assert caught.value.kind == "not_ready"


def test_the_end_comes_in_time_whatever_is_in_hand(service: Service) -> None:
    asked = [Asking(lambda: service.ask("slow", times=(LONG, "int64"))) for _ in range(3)]
    until(lambda: len(service.engine._keeper.slots["slow"].queue) == 2)
    pid, began = service.pid("slow"), time.monotonic()
    assert not service.engine.close(0.5)
    assert time.monotonic() - began < 5.0
    assert sorted(one.end().kind for one in asked) == ["internal", "not_ready", "not_ready"]
    assert gone(pid)


def test_one_core(tmp_path: Path, library: ort.Library) -> None:
    serving.adds(tmp_path, 1.0)
    serving.takes_long(tmp_path)
    core = min(os.sched_getaffinity(0))
    with served(tmp_path, "[models]\ncores = 4\n", available=lambda: {core}) as service:
        for model in ("add", "slow"):
            assert os.sched_getaffinity(service.pid(model)) == {core}
        assert service.add(1.0) == 2.0
        assert service.ask("slow", times=(3, "int64")) == 1.0
