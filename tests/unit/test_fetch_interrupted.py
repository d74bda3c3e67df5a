"""Downloads that do not come to their end: a full disk, Ctrl-C, a second process."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from armlet.errors import ArmletError, Kind
from armlet.fetch import Patience, Places, Wanted, fetch
from tests.fakes.downloads import DATA, FakeNoRunner, get, left, wanted_from
from tests.fakes.mirror import FakeMirror, Fault


@pytest.fixture
def mirror() -> Iterator[FakeMirror]:
    with FakeMirror(files={"a.tar": DATA}).serving() as serving:
        yield serving


def test_too_little_room_is_told_before_a_byte_is_written(
    mirror: FakeMirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 10})())
    with pytest.raises(ArmletError, match=r"no room for a\.tar") as caught:
        get(wanted_from(mirror), tmp_path)
    assert caught.value.kind is Kind.HOST
    assert "ARMLET_CACHE" in caught.value.hint
    assert left(tmp_path) == []


def test_a_disk_that_fills_up_leaves_a_part_that_can_be_gone_on_with(
    mirror: FakeMirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = wanted_from(mirror)
    real_open = Path.open

    class FakeFullDisk:
        """A file on a disk that has room for 100,000 bytes more."""

        def __init__(self, stream: Any) -> None:
            self.stream, self.room = stream, 100_000

        def __getattr__(self, name: str) -> Any:
            return getattr(self.stream, name)

        def __enter__(self) -> FakeFullDisk:
            return self

        def __exit__(self, *error: object) -> None:
            self.stream.close()

        def write(self, data: bytes) -> int:
            taken = data[: self.room]
            self.room -= len(taken)
            self.stream.write(taken)
            if len(taken) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return len(taken)

    def open_on_full_disk(self: Path, mode: str = "r", *args: Any, **options: Any) -> Any:
        stream = real_open(self, mode, *args, **options)
        return FakeFullDisk(stream) if self.suffix == ".part" and "b" in mode and mode != "rb" else stream

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", open_on_full_disk)
        with pytest.raises(ArmletError, match="no room") as caught:
            get(wanted, tmp_path)
    assert caught.value.kind is Kind.HOST
    assert left(tmp_path) == ["a.tar.part"]
    assert get(wanted, tmp_path).read_bytes() == DATA
    assert mirror.seen[-1] == ("a.tar", "bytes=100000-")


def test_a_file_where_the_cache_should_be_is_told(mirror: FakeMirror, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    with pytest.raises(ArmletError, match="cannot write") as caught:
        get(wanted_from(mirror), tmp_path / "cache")
    assert caught.value.kind is Kind.HOST


def _fetch_in_child(wanted: Wanted, folder: Path, told: Any) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    waiting = Patience(silence=30, pause=0.01)
    try:
        fetch(
            [wanted],
            folder,
            lambda event: told.put(type(event).__name__),
            places=Places(),
            runner=FakeNoRunner(),
            patience=waiting,
        )
        told.put("done")
    except KeyboardInterrupt:
        told.put("interrupted")


def test_ctrl_c_leaves_only_a_part_that_can_be_gone_on_with(mirror: FakeMirror, tmp_path: Path) -> None:
    mirror.faults = deque([Fault(after=300_000, stall=True)])
    wanted = wanted_from(mirror)
    context = multiprocessing.get_context("spawn")
    told = context.Queue()
    child = context.Process(target=_fetch_in_child, args=(wanted, tmp_path, told))
    child.start()
    assert child.pid
    assert told.get(timeout=30) == "Progress"
    time.sleep(0.3)
    os.kill(child.pid, signal.SIGINT)
    child.join(timeout=30)
    assert child.exitcode == 0
    assert left(tmp_path) == ["a.tar.part"]
    assert get(wanted, tmp_path).read_bytes() == DATA
    assert mirror.seen[-1] == ("a.tar", "bytes=300000-")


def test_two_processes_fetch_a_file_once(mirror: FakeMirror, tmp_path: Path) -> None:
    mirror.faults = deque([Fault(trickle=True, after=len(DATA) - 40)])
    wanted = wanted_from(mirror)
    context = multiprocessing.get_context("spawn")
    told = context.Queue()
    children = [context.Process(target=_fetch_in_child, args=(wanted, tmp_path, told)) for _ in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join(timeout=60)
    assert [child.exitcode for child in children] == [0, 0]
    assert len(mirror.seen) == 1
    assert left(tmp_path) == ["a.tar"]
