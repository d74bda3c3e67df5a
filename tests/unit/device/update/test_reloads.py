"""Two hundred updates; memory stays where it was."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from tests.fakes.updating import QUICK, Updated, release
from tests.unit.device.serve.test_endurance import resident

RELOADS = 200
WARM_UP = 40
MOST_GROWTH = 0.01


@pytest.mark.heavy
@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("default_library")
def test_memory_stays_flat(tmp_path: Path) -> None:
    with Updated(tmp_path, QUICK).running() as device:
        workers = []
        sizes = {}
        # Made beforehand: the models' maker takes memory of its own.
        made = [release(number) for number in range(2, WARM_UP + RELOADS + 2)]
        for number, one in enumerate(made, 1):
            assert device.update(one).state == "UPDATED"
            assert device.add() == number + 1
            # What a fake keeps is no growth of the service.
            device.told.reports.clear()
            device.network.archives.clear()
            device.network.fetched.clear()
            workers.append(resident(device.pid()))
            if number in (WARM_UP, WARM_UP + RELOADS):
                gc.collect()
                sizes[number] = resident(os.getpid())
        before, after = sizes[WARM_UP], sizes[WARM_UP + RELOADS]
        print(f"KiB of the service: {before} before, {after} after {RELOADS} hot reloads: {after / before - 1:+.2%}")
        print(f"KiB of its workers: {min(workers)} to {max(workers)}, the first {workers[0]}, the last {workers[-1]}")
        assert after <= before * (1 + MOST_GROWTH)
        assert workers[-1] <= workers[0] * (1 + MOST_GROWTH)
