"""Updates of a service with real workers and a real store; only the network is a fake."""

from __future__ import annotations

import functools
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import serving, updating
from tests.fakes.payloads import OTHER_KEY
from tests.fakes.serving import until
from tests.fakes.updating import Updated, release

pytestmark = pytest.mark.usefixtures("default_library")


def another(device: Updated, pid: int) -> bool:
    return device.pid() != pid


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Updated]:
    with Updated(tmp_path).running() as made:
        yield made


def test_an_update(device: Updated) -> None:
    assert device.add() == 1.0
    report = device.update(release(2))
    assert (report.state, report.category, report.reason) == ("UPDATED", "", "")
    assert report.active is not None
    assert (report.active.version, report.active.source) == ("2.0", "store")
    assert device.add() == 2.0
    assert device.told.states == [
        "IDLE", "DOWNLOADING", "DOWNLOADED", "VERIFIED", "trial", "probation", "UPDATED"
    ]  # fmt: skip
    # The same wish again is only told again.
    count = len(device.told.reports)
    device.agent.wish("add", report.desired)
    assert device.told.reports[count:] == [report]
    assert device.network.fetched == ["2.0"]
    device.agent.wish("add", None)
    assert (device.told.reports[-1].state, device.told.reports[-1].active) == ("IDLE", report.active)


@pytest.mark.parametrize(
    ("how", "category", "told"),
    [
        ({"key": OTHER_KEY}, "signature", "key"),
        ({"key": None}, "signature", "not signed"),
        ({"right": False}, "trial", 'golden "case 0"'),
        ({"declared": "int64"}, "trial", "not those that payload.json declares"),
        ({"budget": {"p95_ms": 1e-6, "rss_mb": None}}, "budget", "its budget is 1e-06 ms"),
        ({"budget": {"p95_ms": None, "rss_mb": 1}}, "budget", "its budget is 1 MiB"),
    ],
)
def test_what_proves_bad_never_serves(device: Updated, how: dict[str, Any], category: str, told: str) -> None:
    pid = device.pid()
    made = release(2, **how)
    report = device.update(made)
    assert (report.state, report.category, told in report.reason) == ("FAILED", category, True)
    assert (device.add(), device.pid()) == (1.0, pid)
    assert report.active is not None
    assert report.active.source == "factory"
    on_trial = category in ("trial", "budget")
    assert (device.updates.store.bad("add", made.desired.payload) is not None) == on_trial
    # A better one of a new generation comes through.
    assert device.update(release(3)).state == "UPDATED"
    assert device.add() == 3.0


def test_a_budget_that_is_kept(device: Updated) -> None:
    assert device.update(release(2, budget={"p95_ms": 1000, "rss_mb": 500})).state == "UPDATED"


def test_another_runtimes_payload(tmp_path: Path) -> None:
    with Updated(tmp_path).running(lambda fields: ["no"] if fields["generation"] > 1 else []) as device:
        report = device.update(release(2))
        assert (report.state, report.category) == ("FAILED", "contract")
        assert device.add() == 1.0


def test_a_wish_that_lies(device: Updated) -> None:
    made = release(2)
    for field, value in (("version", "7.0"), ("generation", 9), ("payload", "ab" * 32)):
        report = device.update(made, **{field: value})
        assert (report.state, report.category) == ("FAILED", "manifest")
    assert device.update(made).state == "UPDATED"
    for old in (made.desired.generation, 1):
        report = device.update(release(old, 5.0, version="5.0"))
        assert (report.state, report.category) == ("FAILED", "stale")
    assert device.add() == 2.0


def test_a_known_bad_one_is_not_fetched_again(tmp_path: Path) -> None:
    made = release(2, right=False)
    with Updated(tmp_path).running() as device:
        assert device.update(made).category == "trial"
    with Updated(tmp_path).running() as device:
        report = device.update(made)
        assert (report.state, report.category, device.network.fetched) == ("FAILED", "known_bad", [])
        assert "golden" in report.reason


def test_crashes_in_probation(tmp_path: Path) -> None:
    with Updated(tmp_path, "probation_seconds = 600\nreserve_mb = 0\nmax_crashes = 1\n").running() as device:
        desired = device.offer(release(2))
        device.until_phase("probation")
        assert device.add() == 2.0
        for _ in range(2):
            until(device.pid)
            pid = device.pid()
            os.kill(pid, signal.SIGKILL)
            until(functools.partial(another, device, pid))
        report = device.ended(desired)
        assert (report.state, report.category) == ("ROLLED_BACK", "crashes")
        assert device.add() == 1.0
        assert device.updates.store.state("add").committed is None


def test_errors_in_probation(tmp_path: Path) -> None:
    """It takes two inputs, where callers give one."""
    rules = "probation_seconds = 600\nprobation_requests = 5\nreserve_mb = 0\n"
    with Updated(tmp_path, rules).running() as device:
        for _ in range(5):
            device.add()
        made = release(2, make=serving.takes_long, name="add", operators={}, element_types=[])
        desired = device.offer(made)
        device.until_phase("probation")
        for _ in range(5):
            with pytest.raises(Exception, match="no input"):
                device.add()
        report = device.ended(desired)
        assert (report.state, report.category) == ("ROLLED_BACK", "probation")
        assert "100.0% of 5 requests failed, and 0.0% did before" in report.reason
        assert device.add() == 1.0


def test_a_committed_payload_that_crashes_again_and_again_is_given_back(device: Updated) -> None:
    assert device.update(release(2)).state == "UPDATED"
    assert device.update(release(3)).state == "UPDATED"
    for number in (2.0, 1.0):
        slot = device.engine._keeper.slots["add"]
        while device.told.reports[-1].state != "ROLLED_BACK":
            until(lambda: device.pid() or device.told.reports[-1].state == "ROLLED_BACK")
            pid = device.pid()
            with device.engine._keeper.changed:
                if slot.current is not None and slot.backoff.failures < 5:
                    slot.retry_at = 0.0
                    slot.current.kill("is killed by a test")
            until(functools.partial(another, device, pid))
            slot.retry_at = 0.0 if slot.retry_at is not None else None
        assert device.told.reports[-1].category == "crashes"
        assert device.add() == number
        device.agent.wish("add", None)
    # The factory payload is all that is left, and stays.
    assert device.updates.store.state("add").committed is None


def test_a_new_payload_makes_room_in_memory_first(tmp_path: Path) -> None:
    with Updated(tmp_path, updating.QUICK + "swap = serial\n").running() as device:
        workers: list[int] = []
        stop = threading.Event()

        def count() -> None:
            while not stop.wait(0.001):
                with device.engine._keeper.changed:
                    workers.append(len(device.engine._keeper.slots["add"].workers))

        counting = threading.Thread(target=count)
        counting.start()
        answers: list[float] = []

        def ask() -> None:
            while not stop.is_set():
                answers.append(device.add())

        asking = threading.Thread(target=ask)
        asking.start()
        until(lambda: answers)
        assert device.update(release(2)).state == "UPDATED"
        until(lambda: answers[-1] == 2.0)
        assert device.update(release(3, right=False)).category == "trial"
        seen = len(answers)
        until(lambda: len(answers) > seen + 1)
        stop.set()
        for thread in (counting, asking):
            thread.join()
        # Nothing was lost, and the two were never there together.
        assert answers == sorted(answers)
        assert set(answers) == {1.0, 2.0}
        assert max(workers) == 1
