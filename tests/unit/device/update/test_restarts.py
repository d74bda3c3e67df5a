"""Ends in the middle of an update, starts that do not last, and what the next start makes of them."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest
from armlet_runtime.refusal import PayloadError
from armlet_runtime.store.store import MOST_ATTEMPTS, MOST_STARTS

from tests.fakes.serving import until
from tests.fakes.updating import QUICK, Updated, release

pytestmark = pytest.mark.usefixtures("default_library")

WATCHED = "probation_seconds = 600\nreserve_mb = 0\n"


def test_what_was_updated_serves_after_a_restart(tmp_path: Path) -> None:
    with Updated(tmp_path).running() as device:
        device.update(release(2))
        device.update(release(3))
    with Updated(tmp_path).running() as device:
        assert device.add() == 3.0
        until(lambda: device.told.reports)
        active = device.told.reports[0].active
        assert active is not None
        assert (device.told.states[0], active.version, active.source) == ("IDLE", "3.0", "store")


def test_a_damaged_one_makes_room_for_the_one_before(tmp_path: Path) -> None:
    two, three = release(2), release(3)
    with Updated(tmp_path).running() as device:
        device.update(two)
        device.update(three)
    store = tmp_path / "store" / "payloads"
    (store / three.desired.payload / "model.onnx").write_bytes(b"rot")
    with Updated(tmp_path).running() as device:
        assert device.add() == 2.0
        assert "model.onnx" in next(info.reason for info in device.engine.models())
    shutil.rmtree(store / two.desired.payload)
    with Updated(tmp_path).running() as device:
        assert device.add() == 1.0


def test_one_that_fails_its_trial_at_boot_makes_room_for_the_one_before(tmp_path: Path) -> None:
    two = release(2)
    with Updated(tmp_path).running() as device:
        device.update(two)
    # Its golden vectors hold on another runtime only.
    strict = "[models]\nmin_provider_share = xnnpack 0.5\n"
    with Updated(tmp_path, text=strict).running() as device:
        # Nor does the factory's: it is tried again and again.
        assert device.engine.models()[0].state == "failed"
        device.agent.wish("add", two.desired)
        assert device.ended(two.desired).state == "FAILED"
    with Updated(tmp_path).running() as device:
        device.agent.wish("add", two.desired)
        assert device.ended(two.desired).state == "UPDATED"
        assert device.add() == 2.0


def test_new_firmware_goes_first(tmp_path: Path) -> None:
    two = release(2)
    device = Updated(tmp_path)
    with device.running():
        device.update(two)
    device.new_factory(10.0, 10)
    with device.running():
        assert device.add() == 10.0
        device.told.reports.clear()
        device.agent.wish("add", two.desired)
        report = device.ended(two.desired)
        assert (report.state, report.category) == ("FAILED", "stale")
        assert device.update(release(11)).state == "UPDATED"
    device.new_factory(1.0, 1)
    with device.running():
        assert device.add() == 11.0


def test_a_probation_that_was_cut_short_begins_anew(tmp_path: Path) -> None:
    two = release(2)
    device = Updated(tmp_path, WATCHED)
    with device.running(clean=False):
        device.offer(two)
        device.until_phase("probation")
    for _ in range(MOST_ATTEMPTS - 1):
        device.told.reports.clear()
        with device.running(clean=False):
            # What is committed serves first.
            device.until_phase("probation")
            assert device.told.states == ["IDLE", "trial", "probation"]
            assert device.add() == 2.0
    with device.running():
        until(lambda: device.told.reports[-1].state == "FAILED")
        assert device.told.reports[-1].category == "interrupted"
        assert device.add() == 1.0
    device.told.reports.clear()
    with device.running():
        device.agent.wish("add", two.desired)
        assert device.ended(two.desired).category == "known_bad"


def test_a_probation_that_ends_well_the_second_time(tmp_path: Path) -> None:
    device = Updated(tmp_path, WATCHED)
    with device.running():
        device.offer(release(2))
        device.until_phase("probation")
    device.text = device.text.replace("= 600", "= 0")
    with device.running():
        until(lambda: device.told.reports[-1].state == "UPDATED")
        assert device.add() == 2.0
        assert device.network.fetched == ["2.0"]


def test_the_loop_breaker(tmp_path: Path) -> None:
    device = Updated(tmp_path)
    with device.running():
        device.update(release(2))
    for _ in range(MOST_STARTS):
        with device.running(clean=False):
            assert device.add() == 2.0
    with device.running(clean=False):
        assert device.add() == 1.0
        until(lambda: device.told.alerts)
        assert device.told.alerts[0][1] == "flapping"
        # Another payload is another chance.
        assert device.update(release(3)).state == "UPDATED"
    with device.running():
        assert device.add() == 3.0


def test_the_loop_breaker_lets_go_once_the_service_runs_steadily(tmp_path: Path) -> None:
    device = Updated(tmp_path, QUICK + "steady_seconds = 4\n")
    with device.running(clean=False):
        device.update(release(2))
        for _ in range(MOST_STARTS):
            device.updates.store.started()
    device.told.reports.clear()
    with device.running(clean=False):
        assert device.add() == 1.0
        until(lambda: any(one.active and one.active.version == "2.0" for one in device.told.reports))
        assert device.add() == 2.0
        assert device.updates.store.flapping
        until(lambda: not device.updates.store.flapping)


def test_an_asked_for_end_is_no_flapping(tmp_path: Path) -> None:
    device = Updated(tmp_path)
    with device.running():
        device.update(release(2))
    for _ in range(MOST_STARTS + 2):
        with device.running():
            assert device.add() == 2.0


@pytest.mark.parametrize("why", ["other owner", "file in its place"])
def test_a_store_that_cannot_be_changed(tmp_path: Path, why: str) -> None:
    device, other = Updated(tmp_path), Updated(tmp_path)
    if why == "file in its place":
        (tmp_path / "store").touch()
        with device.running():
            report = device.update(release(2))
            assert (report.state, report.category, device.add()) == ("FAILED", "store", 1.0)
        return
    with device.running():
        device.update(release(2))
        with other.running():
            assert other.add() == 2.0
            report = other.update(release(3))
            assert (report.state, report.category) == ("FAILED", "store")
            assert report.retry_seconds is None
            assert other.add() == 2.0
        assert device.update(release(3)).state == "UPDATED"


def test_what_comes_while_an_update_is_under_way(tmp_path: Path) -> None:
    device = Updated(tmp_path)
    with device.running():
        device.network.gate = threading.Event()
        two, three = release(2), release(3)
        device.offer(two)
        until(device.network.waiting.is_set)
        # The download makes room.
        device.offer(three)
        device.network.gate.set()
        assert device.ended(three.desired).state == "UPDATED"
        assert not [one for one in device.told.reports if one.desired == two.desired and one.state == "FAILED"]
        assert device.add() == 3.0


def test_the_committed_one_is_wished_again_in_probation(tmp_path: Path) -> None:
    device = Updated(tmp_path)
    with device.running():
        device.update(release(2))
    device.text = device.text.replace("probation_seconds = 0", "probation_seconds = 600")
    with device.running():
        device.offer(release(3))
        device.until_phase("probation")
        assert device.add() == 3.0
        two = device.offer(release(2))
        until(lambda: device.told.reports[-1].state == "UPDATED" and device.told.reports[-1].desired == two)
        assert device.add() == 2.0


def test_a_first_payload_of_a_model(tmp_path: Path) -> None:
    device = Updated(tmp_path)
    with device.running():
        assert device.update(release(1, 7.0, name="new")).state == "UPDATED"
        assert (device.add(model="new"), device.add()) == (7.0, 1.0)
    with device.running():
        assert device.add(model="new") == 7.0


def test_a_model_that_is_switched_off(tmp_path: Path) -> None:
    with Updated(tmp_path, text="[model:add]\nenabled = no\n").running() as device:
        report = device.update(release(2))
        assert (report.state, report.category, report.active) == ("FAILED", "manifest", None)


def test_old_payloads_go(tmp_path: Path) -> None:
    device = Updated(tmp_path)
    made = [release(generation) for generation in range(2, 7)]
    with device.running():
        for one in made:
            device.update(one)
        until(lambda: len(list((tmp_path / "store" / "payloads").iterdir())) == 2)
        assert list((tmp_path / "store" / "incoming").iterdir()) == []
        with pytest.raises((PayloadError, OSError)):
            device.updates.store.held(made[0].desired.payload)


def test_what_has_come_of_a_download_outlives_a_restart(tmp_path: Path) -> None:
    made = release(2)
    device = Updated(tmp_path)
    device.network.most = 5
    with device.running(clean=False):
        assert device.update(made, block_size=256).category == "download"
    device.network.most = None
    device.told.reports.clear()
    with device.running():
        assert device.update(made, block_size=256).state == "UPDATED"
    assert device.network.blocks == -(-len(made.archive) // 256)


def test_other_models_come_back_too_after_the_loop_breaker(tmp_path: Path) -> None:
    device = Updated(tmp_path, QUICK + "steady_seconds = 3\n")
    with device.running(clean=False):
        device.update(release(2))
        device.update(release(2, 5.0, name="other"))
        for _ in range(MOST_STARTS):
            device.updates.store.started()
    device.told.reports.clear()
    with device.running():
        device.update(release(3, 6.0, name="other"))
        until(lambda: device.add() == 2.0)
        assert (device.add(), device.add(model="other")) == (2.0, 6.0)
