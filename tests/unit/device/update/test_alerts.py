"""What somebody should look at is told when it begins, and once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest
from armlet_runtime.serve.exposition import Family, counter, gauge
from armlet_runtime.serve.interface import ModelInfo
from armlet_runtime.update.alerts import CRASH_SECONDS, Alert, Outcomes, Watch
from armlet_runtime.update.interface import Category, Desired, Report, State

DESIRED = Desired("m", "1.2.0", 7, "ab" * 32, 1, "cd" * 32, url="https://x/y")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def drift(*bands: float) -> list[Family]:
    labels = [(("model", "m"), ("input", f"x{number}"), ("of", "values")) for number in range(len(bands))]
    return [gauge("armlet_input_drift_band", "", dict(zip(labels, bands, strict=True)))]


def events(**counts: float) -> list[Family]:
    found: Mapping = {(("model", "m"), ("event", event)): count for event, count in counts.items()}
    return [counter("armlet_worker_events_total", "", found)]


def model(reason: str = "") -> ModelInfo:
    return ModelInfo("m", "1", 1, "", "", "failed" if reason else "ready", reason)


def test_a_band_that_is_crossed() -> None:
    watch = Watch()
    looks = [drift(0, 0), drift(1, 0), drift(1, 0), drift(1, 2), drift(0, 2), drift(1, 2), []]
    told = [[(one.kind, one.text) for one in watch.look(families, ())] for families in looks]
    assert [len(one) for one in told] == [0, 1, 0, 1, 0, 1, 0]
    assert told[3] == [("drift", "input x1 (values) is in drift band 2 of 2")]


def test_a_worker_that_crashes_again_and_again() -> None:
    clock = Clock()
    watch = Watch(clock=clock)
    found = []
    for crashed in (0, 1, 2, 3, 4, 4):
        clock.now += 60
        found.append(watch.look(events(crashed=crashed, started=crashed + 1), ()))
    assert [len(one) for one in found] == [0, 0, 0, 1, 0, 0]
    assert found[3][0][:2] == ("m", "crash_loop")
    clock.now += CRASH_SECONDS
    assert watch.look(events(crashed=4), ()) == []
    assert len(watch.look(events(crashed=5, stalled=2), ())) == 1


def test_crashes_far_apart_are_no_loop() -> None:
    clock = Clock()
    watch = Watch(clock=clock)
    for crashed in range(50):
        clock.now += CRASH_SECONDS / 2 + 1
        assert watch.look(events(crashed=crashed), ()) == []


def test_a_provider_that_runs_too_little() -> None:
    watch = Watch()
    reason = "xnnpack ran 10% of the nodes, and min_provider_share asks for 80%"
    assert watch.look([], [model(reason)]) == [Alert("m", "provider_share", reason)]
    assert watch.look([], [model(reason)]) == []
    assert watch.look([], [model("another reason")]) == []
    assert len(watch.look([], [model(reason)])) == 1


def test_a_disk_that_fills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = 100 << 20
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=free >> 12, f_frsize=4096))
    watch = Watch(tmp_path, 64 << 20)
    assert watch.look([], ()) == []
    free = 63 << 20
    assert watch.look([], ()) == [Alert("", "disk_low", f"63 MB are free on the disk of {tmp_path}")]
    assert watch.look([], ()) == []
    free = 100 << 20
    assert watch.look([], ()) == []
    free = 0
    assert len(watch.look([], ())) == 1


def test_a_disk_that_is_not_there(tmp_path: Path) -> None:
    assert Watch(tmp_path / "none", 1 << 60).look([], ()) == []


@pytest.mark.parametrize(
    ("state", "category", "kinds"),
    [
        ("FAILED", "trial", ["failed"]),
        ("ROLLED_BACK", "probation", ["rolled_back"]),
        ("UPDATED", "", []),
        ("FAILED", "manifest", []),
        ("FAILED", "stale", []),
    ],
)
def test_an_update_that_came_to_nothing(state: State, category: Category, kinds: list[str]) -> None:
    outcomes = Outcomes()
    report = Report("m", state, None, DESIRED, category=category, reason="why")
    found = [outcomes.of(report) for _ in range(3)]
    assert [alert.kind for alert in found if alert] == kinds
    assert [alert.text for alert in found if alert] == [f"version 1.2.0: {category}: why" for _ in kinds]


def test_each_model_and_each_payload_has_its_own() -> None:
    outcomes = Outcomes()
    other = Desired("m", "1.3.0", 8, "ef" * 32, 1, "cd" * 32, url="https://x/y")
    reports = [Report(name, "FAILED", None, wish, category="trial") for name in ("m", "n") for wish in (DESIRED, other)]
    assert all(outcomes.of(report) for report in reports)
    for number in range(1000):
        outcomes.of(Report(f"m{number}", "FAILED", category="download"))
    assert len(outcomes._told) <= 256
