"""When the keeper starts, replaces and gives up workers: with fakes of them, and a clock of its own."""

from __future__ import annotations

import dataclasses
import itertools
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from armlet_runtime.serve.config import parse
from armlet_runtime.serve.interface import NoTelemetry
from armlet_runtime.serve.job import Job, Ready
from armlet_runtime.serve.keeper import Keeper
from armlet_runtime.serve.payloads import Candidate, candidate_of
from armlet_runtime.serve.slot import Activation, Slot

from tests.fakes.serving import until

READY = Ready(("CPUExecutionProvider",), {}, {"CPUExecutionProvider": 1.0}, (), 2.0)
MANIFEST: dict[str, Any] = {
    "model": "m",
    "version": "1",
    "generation": 1,
    "files": [{"path": "m.onnx", "sha256": "0"}],
    "inputs": [],
    "outputs": [],
    "providers": [{"name": "vsinpu"}, {"name": "xnnpack"}],
    "threads": 4,
    "golden": [],
}


class FakeWorker:
    """Does what the test says, in the test's own thread."""

    def __init__(self, job: Job, device: FakeDevice) -> None:
        self.job = job
        self.pid = 1000 + len(device.started)
        self.started = self.heard = device.now
        self.busy_since: float | None = None
        self.tried: tuple[str, ...] = ()
        self.gone = threading.Event()
        self.killed_for = ""
        self.leaving = False
        self.crashed = False
        self.bytes = 0
        self._device = device

    @property
    def how(self) -> str:
        return self.killed_for or "was ended by SIGSEGV"

    def kill(self, why: str) -> None:
        self.killed_for = self.killed_for or why
        self.end()

    def stop(self, seconds: float) -> None:
        self.end()

    def memory(self) -> int:
        return self.bytes

    def forgive(self, seconds: float) -> None:
        self.started, self.heard = self.started + seconds, self.heard + seconds
        self.busy_since = None if self.busy_since is None else self.busy_since + seconds

    def end(self, *, crashed: bool = False) -> None:
        if not self.gone.is_set():
            self.crashed = crashed
            self.gone.set()
            self._device.keeper.ended(self)  # type: ignore[arg-type]

    def become_ready(self) -> None:
        self.heard = self._device.now + 0.001
        self._device.keeper.became_ready(self, READY)  # type: ignore[arg-type]

    def say_failed(self, reason: str) -> None:
        self._device.keeper.failed(self, reason)  # type: ignore[arg-type]


class FakeDevice:
    """One model, and a keeper that goes round when the test says so."""

    def __init__(self, text: str) -> None:
        self.now = 0.0
        self.started: list[FakeWorker] = []
        self.events: list[str] = []
        self.refuse: OSError | None = None
        config = parse(text)
        telemetry = NoTelemetry()
        telemetry.worker = lambda model, event: self.events.append(event)  # type: ignore[method-assign]
        start: Any = self._start
        self.keeper = Keeper(config, telemetry, start=start, clock=lambda: self.now, available=lambda: {0, 1})
        self.slot = Slot("m", config.model("m"), lambda: self.now)
        self.keeper.slots = {"m": self.slot}

    def _start(self, job: Job, owner: Any) -> FakeWorker:
        if self.refuse:
            raise self.refuse
        self.started.append(FakeWorker(job, self))
        return self.started[-1]

    def activate(self, **changes: Any) -> Activation:
        activation = Activation(candidate(**changes))
        with self.keeper.changed:
            self.keeper.activate_locked(self.slot, activation)
        self.go_on()
        return activation

    def go_on(self) -> None:
        """Have the keeper go round."""
        with self.keeper.changed:
            self.keeper._go_round_locked()

    def at(self, now: float) -> FakeWorker:
        """Let time pass, and the keeper go round; the worker that was started last."""
        self.now = now
        self.go_on()
        return self.started[-1]

    def serve(self, **changes: Any) -> FakeWorker:
        self.activate(**changes)
        self.started[-1].become_ready()
        return self.started[-1]


def candidate(**changes: Any) -> Candidate:
    return dataclasses.replace(candidate_of(Path("/m"), MANIFEST, ""), **changes)


@pytest.fixture
def device() -> Iterator[FakeDevice]:
    made = FakeDevice("[service]\nstall_seconds = 5\nstart_seconds = 20\nrun_seconds = 30\n[models]\nmemory_mb = 100\n")
    yield made
    # The threads that hand calls to workers end with them.
    for worker in made.started:
        worker.end()


def starts(device: FakeDevice, until: float, step: float = 0.125) -> list[float]:
    """When workers are started that crash at once, from now on."""
    times = []
    count = len(device.started)
    while device.now < until:
        device.at(device.now + step)
        if len(device.started) > count:
            count = len(device.started)
            times.append(device.now)
            device.started[-1].end()
    return times


def test_restarts_come_ever_later(device: FakeDevice) -> None:
    device.serve().end()
    assert (device.slot.state, device.slot.retry_at) == ("loading", 0.25)
    times = starts(device, 200.0)
    waits = [later - earlier for earlier, later in itertools.pairwise([0.0, *times])]
    assert waits == [0.25, 0.5, 1, 2, 4, 8, 16, 32, 60, 60]
    device.at(times[-1] + 60).become_ready()
    assert device.slot.state == "ready"


def test_a_service_that_stood_still_blames_no_worker(device: FakeDevice) -> None:
    keeper, worker = device.keeper, device.serve()
    worker.busy_since = 0.5
    for device.now in (1.0, 41.0, 41.25):
        with keeper.changed:
            keeper._forgive_pause_locked()
            keeper._go_round_locked()
            keeper.ticked = device.now
        assert not worker.killed_for
    device.at(worker.heard + 5.5)
    assert worker.killed_for == "showed no life for 5 s"


def test_health_makes_up_for_failures(device: FakeDevice) -> None:
    device.serve().end()
    starts(device, 4.0)
    worker = device.at(10.0)
    worker.become_ready()
    device.now = worker.heard = 39.9
    worker.end()
    assert device.slot.retry_at == 39.9 + 8.0
    worker = device.at(48.0)
    worker.become_ready()
    device.now = worker.heard = 78.0
    worker.end()
    assert device.slot.retry_at == 78.0 + 0.25


@pytest.mark.parametrize(
    ("change", "at", "told"),
    [
        ({}, 5.5, "showed no life for 5 s"),
        ({"heard": 31.0, "busy_since": 0.5}, 31.0, "had one request in hand for 30 s"),
        ({"bytes": 101 << 20}, 1.0, "took more than its 100 MB"),
    ],
)
def test_why_a_worker_is_replaced(device: FakeDevice, change: dict[str, Any], at: float, told: str) -> None:
    worker = device.serve()
    for name, value in change.items():
        setattr(worker, name, value)
    device.at(at)
    assert told in worker.killed_for
    assert device.slot.current is None
    assert device.at(at + 1) is not worker
    assert device.events == ["started", "ready", "stalled", "started"]


def test_a_slow_start_is_no_stall(device: FakeDevice) -> None:
    device.activate()
    device.at(19.0)
    assert device.started[-1].killed_for == ""


def test_a_healthy_worker_stays(device: FakeDevice) -> None:
    worker = device.serve()
    for now in range(1000):
        worker.heard, worker.busy_since, worker.bytes = now - 4.0, now - 29.0, 100 << 20
        device.at(float(now))
    assert device.started == [worker]
    assert worker.killed_for == ""


def test_one_that_never_gets_ready_is_given_up(device: FakeDevice) -> None:
    activation = device.activate()
    worker = device.started[-1]
    for now in (10.0, 19.0, 21.0):
        worker.heard = now
        device.at(now)
    assert worker.killed_for == "was not ready within 20 s"
    assert activation.reason == "its worker was not ready within 20 s"
    assert (device.slot.state, device.slot.retry_at) == ("failed", 21.25)


def test_a_provider_that_crashes_the_worker_is_left_out(device: FakeDevice) -> None:
    activation = device.activate()
    for tried in (("vsinpu", "xnnpack", "cpu"), ("xnnpack", "cpu")):
        device.started[-1].tried = tried
        device.started[-1].end(crashed=True)
        device.at(device.now)
    reason = "the worker was ended by SIGSEGV while it was tried"
    assert device.started[-1].job.avoid == {"vsinpu": reason, "xnnpack": reason}
    assert not activation.wait(0)
    # With nothing left to be without, it is the model itself.
    device.started[-1].tried = ("cpu",)
    device.started[-1].end(crashed=True)
    assert activation.reason == "its worker was ended by SIGSEGV"
    # Another payload is another chance.
    device.activate(version="2")
    assert device.started[-1].job.avoid == {}


def test_killed_from_outside_while_it_loads_is_nobodys_fault(device: FakeDevice) -> None:
    device.activate()
    device.started[-1].tried = ("vsinpu", "xnnpack", "cpu")
    device.started[-1].end()
    assert device.at(1.0).job.avoid == {}


def test_a_bad_payload_leaves_the_old_one_in_place(device: FakeDevice) -> None:
    old = device.serve()
    activation = device.activate(version="2")
    device.started[-1].say_failed("it computes nonsense")
    device.started[-1].end()
    assert activation.reason == "it computes nonsense"
    assert device.slot.info().pid == old.pid
    assert device.slot.info().state == "ready"
    assert device.slot.reason == "version 2 was not activated: it computes nonsense"
    old.heard = 100.0
    device.at(100.0)
    assert len(device.started) == 2
    # When the old one fails, it is the old one that comes back.
    old.end()
    device.at(200.0)
    assert device.started[-1].job.model_file == "/m/m.onnx"
    device.started[-1].become_ready()
    assert device.slot.payload is not None
    assert device.slot.payload.version == "1"


def test_no_process_can_be_started(device: FakeDevice) -> None:
    device.refuse = OSError(11, "Resource temporarily unavailable")
    activation = device.activate()
    assert activation.reason == "no process can be started: Resource temporarily unavailable"
    device.refuse = None
    device.at(1.0).become_ready()
    assert device.slot.state == "ready"


def test_what_should_not_be_does_not_end_the_keeper(device: FakeDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """Were its thread to end, the kernel would end every worker."""
    rounds: list[int] = []

    def go_round() -> None:
        rounds.append(len(rounds))
        if len(rounds) == 1:
            raise ZeroDivisionError

    monkeypatch.setattr(device.keeper, "_go_round_locked", go_round)
    monkeypatch.setattr("armlet_runtime.serve.keeper.TICK_SECONDS", 0.01)
    device.keeper.begin()
    until(lambda: len(rounds) > 3)
    # The watchdog is not fed any more, and systemd starts the service anew.
    assert device.keeper.broken
    device.keeper.end()


def test_threads_are_no_more_than_cores(device: FakeDevice) -> None:
    assert device.serve().job.threads == 2
    device.slot.settings = dataclasses.replace(device.slot.settings, threads=3, cores=1)
    job = device.serve(version="2").job
    assert (job.threads, job.cores) == (3, (0,))


def test_as_many_start_at_once_as_there_are_cores(device: FakeDevice) -> None:
    others = [Slot(name, device.slot.settings, lambda: device.now) for name in ("n", "o")]
    device.keeper.slots = {"m": device.slot, **{slot.name: slot for slot in others}}
    with device.keeper.changed:
        for slot in device.keeper.slots.values():
            device.keeper.activate_locked(slot, Activation(candidate(model=slot.name)))
    device.at(0.0)
    assert [worker.job.model for worker in device.started] == ["m", "n"]
    device.started[0].become_ready()
    device.at(0.0)
    assert [worker.job.model for worker in device.started] == ["m", "n", "o"]
