"""When an update is tried, tried again or left, with fakes of the engine and the network, and a clock of its own."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from armlet_runtime.serve.interface import ModelInfo
from armlet_runtime.serve.payloads import Candidate, FactorySet
from armlet_runtime.serve.slot import Activation
from armlet_runtime.serve.tally import Seen
from armlet_runtime.store.absent import AbsentStore
from armlet_runtime.store.disk import Disk
from armlet_runtime.store.store import Store
from armlet_runtime.update.agent import MOST_DAMAGED, MOST_MODELS, Agent
from armlet_runtime.update.board import Board
from armlet_runtime.update.catalogue import StoredSet
from armlet_runtime.update.course import Course
from armlet_runtime.update.interface import Desired, FetchError, Report
from armlet_runtime.update.settings import Updates

from tests.fakes import handmade, serving
from tests.fakes.updating import FakeFetcher, FakeReporter, Release, release


class FakeEngine:
    """Serves what it is told to; ``outcomes``: (reason, fault) of the next attempts, good where there is none."""

    def __init__(self, catalogue: StoredSet) -> None:
        self.now: dict[str, Candidate] = {name: catalogue.current(name) for name in catalogue.names()}
        self.outcomes: list[tuple[str, str]] = []
        self.attempts: list[str] = []
        self.tally: dict[str, Seen] = {}
        self.during: Callable[[], Any] = lambda: None

    def settled(self) -> bool:
        return True

    def models(self) -> list[ModelInfo]:
        return []

    def serving(self, model: str) -> Candidate | None:
        return self.now.get(model)

    def seen(self, model: str, payload: str) -> Seen:
        assert model
        return self.tally.get(payload, Seen())

    def attempt(self, activation: Activation) -> Activation:
        self.attempts.append(activation.payload.version)
        self.during()
        reason, fault = self.outcomes.pop(0) if self.outcomes else ("", "")
        if not reason:
            self.now[activation.payload.model] = activation.payload
        activation.end(reason, fault)  # type: ignore[arg-type]
        return activation


class FailingDisk(Disk):
    """Fails while there is an error in it."""

    error: OSError | None = None

    def rename(self, path: Path, target: Path) -> None:
        if self.error is not None:
            raise self.error
        super().rename(path, target)


class Bench:
    """An agent that does one step when the test says so; time passes where it pauses."""

    def __init__(self, root: Path, rules: Updates | None = None, store: Store | None = None) -> None:
        self.time = 1000.0
        serving.adds(root / "factory", 1.0)
        self.disk = FailingDisk()
        self.store = store or Store(root / "store", None, lambda _: (), disk=self.disk, reserve=0)
        self.catalogue = StoredSet(FactorySet(root / "factory", handmade.verify_hashes, lambda _: ()), self.store)
        self.engine = FakeEngine(self.catalogue)
        self.network, self.told = FakeFetcher(), FakeReporter()
        self.pauses: list[Callable[[], Any]] = []
        self.rules = rules or Updates(probation_seconds=5, max_slowdown=0)
        board = Board(self.engine, self.told)
        course = Course(
            self.store, self.engine, self.catalogue, {"url": self.network}, board, self.rules, clock=lambda: self.time
        )
        self.agent = Agent(course, spread=lambda: 1.0, pause=self.pause, clock=lambda: self.time)
        self.agent.begin()

    def pause(self, seconds: float) -> None:
        self.time += seconds
        if self.pauses:
            self.pauses.pop(0)()

    def wish(self, made: Release) -> None:
        self.network.archives[made.desired.archive_sha256] = made.archive
        self.agent.wish(made.desired.model, made.desired)

    def run(self) -> Report:
        """Until nothing is due; the last report."""
        while not self.agent.step():
            pass
        return self.told.reports[-1]

    def later(self, seconds: float) -> Report:
        self.time += seconds
        return self.run()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_an_update_and_its_probation(bench: Bench) -> None:
    bench.wish(release(2))
    began = bench.time
    assert bench.run().state == "UPDATED"
    assert bench.time - began == 5
    assert bench.engine.attempts == ["2.0"]


def test_downloads_are_tried_again_ever_more_rarely(bench: Bench) -> None:
    bench.network.errors = [FetchError("download", "no network")] * 9
    bench.wish(release(2))
    waits = []
    for _ in range(9):
        report = bench.run()
        assert (report.state, report.category, report.reason) == ("FAILED", "download", "no network")
        waits.append(report.retry_seconds)
        assert report.retry_seconds is not None
        bench.later(report.retry_seconds - 1)
        assert bench.told.reports[-1] is report
        bench.time += 1
    assert waits == [30, 60, 120, 240, 480, 960, 1920, 3600, 3600]
    assert bench.run().state == "UPDATED"


def test_what_another_try_cannot_help(bench: Bench) -> None:
    bench.network.errors = [FetchError("download", "no such file", again=False)]
    made = release(2)
    bench.wish(made)
    assert bench.run().retry_seconds is None
    assert bench.later(1e6).state == "FAILED"
    # Nobody wishes it, and then somebody does.
    bench.agent.wish("add", None)
    bench.wish(made)
    assert bench.run().state == "UPDATED"


def test_a_wish_that_is_taken_back_while_it_downloads(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    fetch = bench.network.fetch

    def taken_back(*args: Any) -> Any:
        bench.agent.wish("add", None)
        return fetch(*args)

    monkeypatch.setattr(bench.network, "fetch", taken_back)
    bench.network.errors = [FetchError("download", "it was called off")]
    bench.wish(release(2))
    report = bench.run()
    assert (report.state, report.desired) == ("IDLE", None)


def test_archives_that_come_damaged(bench: Bench) -> None:
    made = release(2)
    bench.wish(made)
    bench.network.archives[made.desired.archive_sha256] = bytes(len(made.archive))
    for number in range(MOST_DAMAGED):
        report = bench.run()
        assert (report.state, report.category) == ("FAILED", "damaged")
        assert (report.retry_seconds is None) == (number == MOST_DAMAGED - 1)
        bench.time += report.retry_seconds or 1e6
    assert bench.run() is report
    assert bench.network.fetched == ["2.0"] * MOST_DAMAGED


def test_one_model_does_not_keep_another_waiting(bench: Bench) -> None:
    bench.network.errors = [FetchError("download", "no network")]
    bench.wish(release(2))
    bench.wish(release(1, name="new"))
    bench.run()
    states = {report.model: report.state for report in bench.told.reports}
    assert states == {"add": "FAILED", "new": "UPDATED"}


def test_a_disk_that_fails_now_and_then(bench: Bench) -> None:
    bench.disk.error = OSError(errno.EIO, "Input/output error")
    bench.wish(release(2))
    report = bench.run()
    assert (report.state, report.category) == ("FAILED", "store")
    assert bench.engine.attempts == []
    bench.disk.error = None
    bench.time += report.retry_seconds or 0
    assert bench.run().state == "UPDATED"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk(bench: Bench, number: int) -> None:
    bench.disk.error = OSError(number, "full")
    bench.wish(release(2))
    report = bench.run()
    assert (report.state, report.category, report.retry_seconds) == ("FAILED", "space", 30)


def test_a_disk_that_fails_in_probation(bench: Bench) -> None:
    """What serves goes on, and is committed once that can be written."""

    def fail() -> None:
        bench.disk.error = OSError(errno.EIO, "Input/output error")

    def heal() -> None:
        bench.disk.error = None

    bench.engine.during = fail
    bench.pauses = [lambda: None] * 14 + [heal]
    bench.wish(release(2))
    assert bench.run().state == "UPDATED"
    assert [one.category for one in bench.told.reports].count("store") >= 1
    assert bench.store.state("add").committed is not None
    assert ("add", "store") in {alert[:2] for alert in bench.told.alerts}


def test_no_room(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("armlet_runtime.store.store.free_bytes", lambda _: 1000)
    bench.wish(release(2))
    report = bench.run()
    assert (report.state, report.category, bench.network.fetched) == ("FAILED", "space", [])
    assert report.retry_seconds == 30


def test_what_was_nobodys_fault_is_tried_again_a_few_times(bench: Bench) -> None:
    bench.engine.outcomes = [("its worker was ended by SIGKILL", "chance")] * 3
    bench.wish(release(2))
    for _ in range(3):
        report = bench.run()
        assert (report.state, report.category) == ("FAILED", "trial")
        assert report.retry_seconds is not None
        bench.time += report.retry_seconds
    report = bench.run()
    assert (report.state, report.category, report.retry_seconds) == ("FAILED", "interrupted", None)
    assert bench.engine.now["add"].version == "1.0"


def test_a_bad_one_and_its_rollback(bench: Bench) -> None:
    made = release(2)
    bench.engine.tally = {made.desired.payload: Seen(100, 50)}
    bench.wish(made)
    report = bench.run()
    assert (report.state, report.category) == ("ROLLED_BACK", "probation")
    assert bench.engine.attempts == ["2.0", "1.0"]
    assert report.active is not None
    assert report.active.version == "1.0"
    assert bench.later(1e6) is report


def test_a_rollback_that_takes_several_tries(bench: Bench) -> None:
    made = release(2)
    bench.engine.tally = {made.desired.payload: Seen(100, 50)}
    bench.engine.outcomes = [("", ""), ("no process can be started", "chance"), ("no process", "chance")]
    bench.wish(made)
    assert bench.run().state == "ROLLED_BACK"
    assert bench.engine.now["add"].version == "1.0"
    bench.engine.outcomes = [("", ""), *[("no process can be started", "chance")] * 9]
    again = release(3)
    bench.engine.tally = {again.desired.payload: Seen(100, 50)}
    bench.wish(again)
    bench.run()
    assert bench.told.alerts[-1][1] == "nothing_serves"


def test_another_payload_is_loaded_by_hand_in_probation(bench: Bench) -> None:
    factory = bench.engine.now["add"]
    bench.pauses = [lambda: bench.engine.now.update(add=factory)]
    bench.wish(release(2))
    report = bench.run()
    assert (report.state, report.category) == ("FAILED", "probation")
    assert bench.store.state("add").candidate is None
    assert bench.store.state("add").bad == ()


def test_a_newer_wish_in_probation_comes_after_it(bench: Bench) -> None:
    bench.pauses = [lambda: bench.wish(release(3))]
    bench.wish(release(2))
    bench.run()
    assert [one.active.version for one in bench.told.reports if one.state == "UPDATED" and one.active] == ["2.0", "3.0"]


def test_messages_that_are_no_wish(bench: Bench) -> None:
    made = release(2)
    bench.wish(made)
    done = bench.run()
    bench.agent.refuse("add", "manifest", "it is no JSON")
    report = bench.told.reports[-1]
    assert (report.state, report.category, report.active) == ("FAILED", "manifest", done.active)
    bench.agent.wish("add", made.desired)
    assert bench.told.reports[-1] == done


def test_crash_loops(bench: Bench) -> None:
    bench.wish(release(2))
    bench.run()
    two = bench.engine.now["add"]
    bench.agent.crashing(two, "its worker was ended by SIGSEGV")
    report = bench.run()
    assert (report.state, report.category) == ("ROLLED_BACK", "crashes")
    assert bench.engine.now["add"].version == "1.0"
    assert bench.store.state("add").committed is None
    # There is nothing else: it is told once.
    for _ in range(3):
        bench.agent.crashing(bench.engine.now["add"], "its worker was ended by SIGSEGV")
        bench.run()
    assert [alert[1] for alert in bench.told.alerts].count("crashes") == 1
    # What no longer serves is not given back.
    bench.agent.crashing(two, "late")
    assert bench.run() is bench.told.reports[-1]


def test_no_store(tmp_path: Path) -> None:
    bench = Bench(tmp_path, store=AbsentStore("it is FAT"))
    bench.wish(release(2))
    report = bench.run()
    assert (report.state, report.category, report.reason) == ("FAILED", "store", "it is FAT")
    assert report.retry_seconds is None
    bench.later(1e4)


def test_blocks_without_a_way_for_them(bench: Bench) -> None:
    made = release(2)
    blocks = Desired(**{**vars(made.desired), "url": "", "block_size": 32768})
    bench.agent.wish("add", blocks)
    assert bench.run().reason == "this device takes no archives by blocks"


def test_names_without_end(bench: Bench) -> None:
    made = release(2).desired
    for number in range(MOST_MODELS + 100):
        bench.agent.wish(f"m{number}", Desired(**{**vars(made), "model": f"m{number}", "block_size": 1024}))
    assert len(bench.agent.models()) <= MOST_MODELS + 1


def test_invented_names_do_not_keep_out_those_that_serve(bench: Bench) -> None:
    made = release(2)
    for number in range(MOST_MODELS):
        bench.agent.wish(f"m{number}", replace(made.desired, model=f"m{number}"))
    bench.time += 1
    bench.wish(made)
    bench.run()
    assert next(report.model for report in bench.told.reports if report.state != "IDLE") == "add"
    assert bench.engine.now["add"].version == "2.0"
    # Those that are taken back make room for others.
    for number in range(MOST_MODELS):
        bench.agent.wish(f"m{number}", None)
    bench.agent.wish("new", replace(made.desired, model="new"))
    assert "new" in bench.agent.models()


def test_what_should_not_be_does_not_end_updates(bench: Bench) -> None:
    def strange() -> None:
        bench.engine.during = lambda: None
        raise ZeroDivisionError("what nobody thought of")

    bench.engine.during = strange
    bench.wish(release(2))
    report = bench.run()
    assert (report.state, report.category) == ("FAILED", "store")
    bench.wish(release(3))
    assert bench.run().state == "UPDATED"
