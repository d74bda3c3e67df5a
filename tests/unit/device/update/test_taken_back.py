"""Wishes that are taken back, and payloads that are damaged on the disk of the device."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from armlet_runtime.store.admission import Admission
from armlet_runtime.store.store import MOST_ATTEMPTS
from armlet_runtime.update.interface import Desired

from tests.fakes.serving import until
from tests.fakes.updating import QUICK, Updated, release


def test_in_the_download(tmp_path: Path) -> None:
    """Nothing claims that it goes on, and nothing of it stays."""
    device = Updated(tmp_path)
    with device.running():
        device.network.gate = threading.Event()
        device.offer(release(2))
        until(device.network.waiting.is_set)
        device.agent.wish("add", None)
        until(lambda: device.told.reports[-1].state == "IDLE")
        until(lambda: not list((tmp_path / "store" / "incoming").iterdir()))
        device.network.gate.set()
        assert device.update(release(3)).state == "UPDATED"


def test_in_a_trial_that_fails(tmp_path: Path) -> None:
    device = Updated(tmp_path)
    with device.running():
        attempt = device.engine.attempt

        def taken_back(activation: Any) -> Any:
            device.agent.wish("add", None)
            return attempt(activation)

        device.engine.attempt = taken_back  # type: ignore[method-assign]
        device.offer(release(2, right=False))
        until(lambda: device.updates.store.state("add").bad)
        until(lambda: device.told.reports[-1].state == "IDLE")


def _rots(folder: Path) -> None:
    (folder / "model.onnx").write_bytes(b"rot")


@pytest.mark.parametrize("harm", [_rots, shutil.rmtree])
def test_a_committed_one_that_is_damaged_comes_anew(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    two, three = release(2), release(3)
    device = Updated(tmp_path)
    with device.running():
        device.update(two)
        device.update(three)
    harm(tmp_path / "store" / "payloads" / three.desired.payload)
    device.told.reports.clear()
    with device.running():
        assert device.add() == 2.0
        assert device.update(three).state == "UPDATED"
        assert device.add() == 3.0
    with device.running():
        assert device.add() == 3.0
    assert device.network.fetched == ["2.0", "3.0", "3.0"]


def test_new_firmware_while_one_is_tried(tmp_path: Path) -> None:
    """What will never be committed does not stay on the disk."""
    device = Updated(tmp_path, QUICK.replace("probation_seconds = 0", "probation_seconds = 600"))
    with device.running():
        device.offer(release(2))
        device.until_phase("probation")
    device.new_factory(3.0, 3)
    device.told.reports.clear()
    with device.running():
        until(lambda: device.told.reports and device.told.reports[-1].category == "stale")
        until(lambda: not list((tmp_path / "store" / "payloads").iterdir()))
        assert device.updates.store.state("add").candidate is None
        assert device.add() == 3.0


def test_what_the_disk_damages_while_it_serves(tmp_path: Path) -> None:
    """It is not to blame, and comes anew."""
    two, three = release(2), release(3)
    device = Updated(tmp_path)
    with device.running():
        device.update(two)
        device.update(three)
        _rots(tmp_path / "store" / "payloads" / three.desired.payload)
        os.kill(device.pid(), signal.SIGKILL)
        until(lambda: "damaged" in [one.category for one in device.told.reports], 30.0)
        until(lambda: device.told.reports[-1].state == "UPDATED")
        assert device.add() == 3.0
        assert device.updates.store.state("add").bad == ()


def test_ends_that_were_asked_for_do_not_count_as_trials(tmp_path: Path) -> None:
    device = Updated(tmp_path, QUICK.replace("probation_seconds = 0", "probation_seconds = 600"))
    two = release(2)
    for _ in range(MOST_ATTEMPTS + 1):
        device.told.reports.clear()
        with device.running():
            device.offer(two)
            device.until_phase("probation")
            assert device.add() == 2.0
    device.text = device.text.replace("probation_seconds = 600", "probation_seconds = 0")
    with device.running():
        assert device.update(two).state == "UPDATED"


def test_an_end_while_an_archive_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The service does not wait for the disk."""
    monkeypatch.setattr("armlet_runtime.store.lock.SOON_SECONDS", 0.05)
    within, on = threading.Event(), threading.Event()

    def slow(admission: Admission, desired: Desired, archive: Path) -> Any:
        within.set()
        on.wait(20.0)
        return unpacked(admission, desired, archive)

    unpacked = Admission.unpacked
    device, two = Updated(tmp_path), release(2)
    with device.running(clean=False):
        monkeypatch.setattr(Admission, "unpacked", slow)
        device.offer(two)
        assert within.wait(20.0)
        began = time.monotonic()
        device.updates.close()
        assert time.monotonic() - began < 5.0
        on.set()
        assert device.ended(two.desired).state == "UPDATED"
