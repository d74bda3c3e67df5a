"""What was written while the clock was wrong, and what a download has when the service ends in peace."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from armlet_runtime.serve.config import parse
from armlet_runtime.update import running

from tests.fakes.deliveries import BLOCK, delivery, demand_sound, opened, updated

ONE, TWO = delivery(1), delivery(2)
LATE = 2**31


def narrow(stat: Callable[..., os.stat_result]) -> Callable[..., os.stat_result]:
    """As a C library has it whose seconds have 32 bits."""

    def do(path: Any, *args: Any, **how: Any) -> os.stat_result:
        found = stat(path, *args, **how)
        if found.st_mtime >= LATE:
            raise OSError(errno.EOVERFLOW, os.strerror(errno.EOVERFLOW), str(path))
        return found

    return do


@pytest.fixture
def late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of which nothing can be looked at."""
    store = opened(tmp_path)
    updated(store, ONE)
    store.close()
    for path in (tmp_path / "store", *(tmp_path / "store").rglob("*")):
        os.utime(path, (LATE, LATE))
    for name in ("stat", "lstat"):
        monkeypatch.setattr(os, name, narrow(getattr(os, name)))
    with pytest.raises(OSError, match="too large"):
        (tmp_path / "store").exists()
    return tmp_path


def test_files_of_a_time_that_cannot_be_told_are_mended(late: Path) -> None:
    store = opened(late)
    assert demand_sound(store).committed == ONE.ref
    updated(store, TWO)
    assert demand_sound(store).committed == TWO.ref


def test_they_do_not_keep_the_service_from_starting(late: Path) -> None:
    config = parse(f"[service]\nkeys = {late}\n[updates]\nstore = {late}/store\n")
    assert running.problems(config) == []


def test_what_came_of_a_download_outlives_an_end_in_peace(tmp_path: Path) -> None:
    store = opened(tmp_path)
    incoming = store.incoming(ONE.desired, BLOCK)
    incoming.put(0, ONE.block(0))
    store.close()
    assert opened(tmp_path).incoming(ONE.desired, BLOCK).missing() == [*range(1, incoming.blocks)]
