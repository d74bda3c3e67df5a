"""Whatever the clock on the wall shows, and however it jumps, updates go the same way."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from armlet_runtime.store.state import ModelState
from armlet_runtime.update.interface import FetchError

from tests.fakes.serving import until
from tests.fakes.updating import QUICK, Updated, release
from tests.served import host_library

pytestmark = pytest.mark.usefixtures("default_library")

YEAR = 365 * 86_400.0
RULES = QUICK.replace("probation_seconds = 0", "probation_seconds = 0.5")
Life = tuple[list[list[tuple[str, str, str]]], ModelState]


def there_and_back() -> Iterator[float]:
    """Each look at it shows another time: from before 1970 to after 2038, and back."""
    return itertools.cycle([1.7e9, 0.0, 1.7e9 + 80 * YEAR, -YEAR, 1.7e9 - 3600, 2**31 - 1.0])


def ever_earlier() -> Iterator[float]:
    return itertools.count(1.7e9, -86_400.0)


CLOCKS: dict[str, Callable[[], Iterator[float]]] = {
    "there and back": there_and_back,
    "ever earlier": ever_earlier,
}


def life(root: Path) -> Life:
    """Good and bad updates, a download that fails, a restart in probation and one after a steady run: what was told
    in each of the three runs, and what is known in the end."""
    root.mkdir()
    told = []
    with Updated(root, RULES).running(clean=False) as device:
        began = time.monotonic()
        device.update(release(2))
        assert 0.5 <= time.monotonic() - began < 20
        device.update(release(3, right=False))
        # It comes again after half a minute or so: neither at once nor never.
        device.network.errors.append(FetchError("download", "no network"))
        failed = device.update(release(4))
        assert failed.retry_seconds is not None
        assert 20 < failed.retry_seconds < 40
        time.sleep(1.5)
        assert device.network.fetched == ["2.0", "3.0", "4.0"]
        told.append(steps(device))
    with Updated(root, RULES.replace("0.5", "600")).running(clean=False) as device:
        assert device.add() == 2.0
        device.offer(release(4))
        device.until_phase("probation")
        time.sleep(1.5)
        assert device.told.reports[-1].phase == "probation"
        told.append(steps(device))
    with Updated(root, RULES + "steady_seconds = 1\n").running() as device:
        until(lambda: ("UPDATED", "", "") in steps(device))
        until(lambda: device.updates.store.starts == 0)
        assert device.add() == 4.0
        told.append(steps(device))
        return told, device.updates.store.state("add")


def steps(device: Updated) -> list[tuple[str, str, str]]:
    """What was told, each once."""
    return [step for step, _ in itertools.groupby((o.state, o.phase, o.category) for o in device.told.reports)]


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Life:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARMLET_ORT_LIBRARY", str(host_library()))
        return life(tmp_path_factory.mktemp("usual") / "device")


@pytest.mark.parametrize("name", CLOCKS)
def test_no_decision_hangs_on_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, usual: Life, name: str) -> None:
    monkeypatch.setattr(time, "time", CLOCKS[name]().__next__)
    assert life(tmp_path / "jumping") == usual
