"""A disk that is full, or that fails, at every single thing that is done to it: nothing is lost, the next try works."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest
from armlet_runtime.store.disk import Disk
from armlet_runtime.store.errors import StoreError
from armlet_runtime.store.store import Store

from tests.crash_cases import CASES, Case, Step, prepared
from tests.fakes.crash_disk import RecordingDisk, written_out
from tests.fakes.deliveries import demand_sound, demand_tidy, opened

TAKES_ROOM = ("mkdir", "create", "write", "allocate", "sync", "rename", "sync_folder")
REMOVES = ("unlink", "rmdir")


class Fault:
    """Fails the call of a number, and all that follow until it is mended, or that one only."""

    def __init__(self, code: int, at: int, lasts: bool) -> None:
        self._code, self._at, self._lasts = code, at, lasts
        self.struck: list[str] = []
        self.mended = False

    def __call__(self, calls: int, name: str) -> None:
        due = calls >= self._at if self._lasts else calls == self._at
        # What is full gives room back all the same.
        if due and not self.mended and (self._code != errno.ENOSPC or name in TAKES_ROOM):
            self.struck.append(name)
            raise OSError(self._code, os.strerror(self._code))


def caught_by(step: Step, store: Store) -> OSError | None:
    try:
        step(store)
    except OSError as error:
        return error
    return None


def open_again(base: Path, disk: Disk, fault: Fault) -> Store:
    """A store that cannot even be opened is, once the disk is right again."""
    failed: StoreError | None = None
    try:
        return opened(base, disk)
    except StoreError as error:
        failed = error
    assert (failed.category, bool(failed.hint)) == ("store", True)
    fault.mended = True
    return opened(base, disk)


def gone_through(case: Case, base: Path, fault: Fault, restarts: bool) -> int:
    """All steps, the one that fails twice; or, after it, a new process that does what is to be done again.

    How many calls there were.
    """
    disk = RecordingDisk(base, fault)
    store = open_again(base, disk, fault)
    for step in case.steps:
        if step is None:
            store.close()
            store = open_again(base, disk, fault)
            continue
        error = caught_by(step, store)
        if error is None:
            continue
        assert error.errno in (errno.EIO, errno.ENOSPC)
        demand_nothing_left(base, fault)
        fault.mended = True
        if restarts:
            store.close()
            store = opened(base, disk)
            demand_sound(store)
            case.again(store)
            break
        step(store)
    fault.mended = True
    calls = disk.calls
    store.collect(case.wanted.kept if case.wanted else ())
    case.again(store)
    store.close()
    store = opened(base)
    assert case.end(demand_sound(store))
    store.collect(())
    demand_tidy(base, store)
    store.close()
    return calls


def demand_nothing_left(base: Path, fault: Fault) -> None:
    """What was begun is taken back at once, unless taking it back is what fails."""
    root = base / "store"
    if (root / "staging").is_dir() and not {*fault.struck}.intersection(REMOVES):
        assert not [*root.rglob("*.new")]
        assert not [*(root / "staging").iterdir()]


@pytest.mark.parametrize("lasts", [False, True], ids=["once", "lasting"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO], ids=["full", "broken"])
@pytest.mark.parametrize(
    "name",
    [
        "first install",
        "update over probation",
        "failed trial",
        "revert",
        "download by blocks, resumed",
        "starts counted",
        "wish withdrawn",
    ],
)
def test_a_fault_at_every_call(name: str, code: int, lasts: bool, base: Path) -> None:
    case = CASES[name]
    (base / "before").mkdir()
    start = prepared(case, base / "before")
    (base / "right").mkdir()
    written_out(start, base / "right")
    calls = gone_through(case, base / "right", Fault(code, 0, lasts=False), restarts=False)
    assert calls > 15
    for at in range(1, calls + 1):
        work = base / "work"
        work.mkdir()
        written_out(start, work)
        fault = Fault(code, at, lasts)
        gone_through(case, work, fault, restarts=bool(at % 2) == lasts)
        assert fault.struck or code == errno.ENOSPC
        shutil.rmtree(work)
