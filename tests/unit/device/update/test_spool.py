"""Telemetry on disk: in order, within bounds, whatever became of the files meanwhile."""

from __future__ import annotations

import errno
import random
import tempfile
from pathlib import Path

import pytest
from armlet_runtime.store.disk import Disk
from armlet_runtime.update.spool import LARGEST_SEGMENT, Spool, packed, unpacked
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

MB = 1 << 20
records = st.lists(st.binary(max_size=300), max_size=30)
often = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class FullDisk(Disk):
    """Takes ``room`` bytes more."""

    room = 0

    def write(self, descriptor: int, data: bytes, offset: int) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken = min(self.room, len(data))
        self.room -= taken
        return super().write(descriptor, data[:taken], offset)


def opened(folder: Path, most: int = MB, seconds: float = 1e9, clock: Clock | None = None) -> Spool:
    return Spool(folder, Disk(), most, seconds, clock or Clock())


def drained(spool: Spool) -> list[bytes]:
    found = []
    while (record := spool.next()) is not None:
        found.append(record.data)
        spool.done(record)
    return found


def files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.exists() else []


def fresh(tmp_path: Path) -> Path:
    return Path(tempfile.mkdtemp(dir=tmp_path), "telemetry")


@often
@given(records, st.integers(0, 30))
def test_everything_comes_back_in_order(tmp_path: Path, wanted: list[bytes], restart: int) -> None:
    folder = fresh(tmp_path)
    spool = opened(folder)
    for number, record in enumerate(wanted):
        if number == restart:
            spool = opened(folder)
        assert spool.append(record)
    spool.close()
    assert drained(opened(folder)) == wanted
    assert files(folder) == []


@often
@given(records, st.data())
def test_a_file_cut_anywhere_loses_what_was_cut(tmp_path: Path, wanted: list[bytes], data: st.DataObject) -> None:
    folder = fresh(tmp_path)
    spool = opened(folder)
    for record in wanted:
        spool.append(record)
    spool.close()
    ends = [0]
    for record in wanted:
        ends.append(ends[-1] + len(packed(record, 0.0)))
    for file in files(folder):
        length = data.draw(st.integers(0, ends[-1]))
        tail = data.draw(st.sampled_from([b"", b"\0" * 50, b"\xa5Sp1", b"\xa5Sp1" * 20]))
        whole = file.read_bytes()
        left = whole[:length] + tail
        file.write_bytes(left)
        # Zeros may be just what was cut off.
        kept = sum(left[:end] == whole[:end] for end in ends) - 1
        spool = opened(folder)
        spool.append(b"later")
        assert drained(spool) == [*wanted[:kept], b"later"]


@given(st.binary(max_size=2000), records)
def test_whatever_stands_between_records_is_skipped(noise: bytes, wanted: list[bytes]) -> None:
    content = noise.join(packed(record, 1.0) for record in wanted)
    found = [record.data for record in unpacked(content)]
    assert [record for record in found if record in wanted] == wanted


@given(records, st.integers(0, 2**31), st.integers(1, 255))
def test_a_byte_that_changed_costs_one_record(wanted: list[bytes], where: int, by: int) -> None:
    content = bytearray(b"".join(packed(record, 1.0) for record in wanted))
    if not content:
        return
    content[where % len(content)] ^= by
    found = [record.data for record in unpacked(bytes(content))]
    assert len(found) >= len(wanted) - 1
    left = iter(wanted)
    assert all(record in left for record in found)


@pytest.mark.parametrize("most", [20_000, MB])
def test_never_more_than_the_limit_and_the_newest_stay(tmp_path: Path, most: int) -> None:
    folder, sizes = tmp_path / "t", random.Random(6)
    spool = opened(folder, most)
    given_ = [b"%06d" % number + b"x" * sizes.randrange(600) for number in range(6000)]
    for number, record in enumerate(given_):
        spool.append(record)
        if number % 50 == 0:
            assert sum(file.stat().st_size for file in files(folder)) == len(spool) <= most
    assert max(file.stat().st_size for file in files(folder)) <= LARGEST_SEGMENT
    found = drained(spool)
    assert found == given_[-len(found) :]
    assert spool.dropped == len(given_) - len(found)
    assert sum(map(len, found)) > most * 0.6


def test_the_limit_holds_for_what_an_earlier_run_left(tmp_path: Path) -> None:
    spool = opened(tmp_path, MB)
    for _ in range(1000):
        spool.append(b"x" * 900)
    spool = opened(tmp_path, 50_000)
    spool.append(b"newest")
    assert len(spool) <= 50_000
    assert drained(spool)[-1] == b"newest"


def test_age_counts_running_time(tmp_path: Path) -> None:
    clock = Clock()
    spool = opened(tmp_path, seconds=100, clock=clock)
    spool.append(b"old")
    clock.now += 60
    spool.append(b"young")
    spool.close()
    # Another boot: its clock begins anew.
    clock.now = 5.0
    spool = opened(tmp_path, seconds=100, clock=clock)
    clock.now += 41
    assert drained(spool) == [b"young"]
    assert spool.dropped == 1


def test_what_was_given_and_did_not_arrive_is_given_again(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    for number in range(5):
        spool.append(b"%d" % number)
    first, second, third = spool.next(), spool.next(), spool.next()
    assert first
    assert second
    assert third
    spool.done(first)
    spool.done(third)
    spool.rewind()
    # The third arrived already: it comes once more rather than never.
    assert drained(spool) == [b"1", b"2", b"3", b"4"]
    assert files(tmp_path) == []
    assert not spool.waiting


def test_records_come_while_others_are_read(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    found: list[bytes] = []
    for number in range(100):
        spool.append(b"%d" % number)
        if number % 3 == 0:
            record = spool.next()
            assert record
            found.append(record.data)
            spool.done(record)
    assert [*found, *drained(spool)] == [b"%d" % number for number in range(100)]


@pytest.mark.parametrize("room", range(0, 120, 7))
def test_a_full_disk_loses_records_and_nothing_else(
    tmp_path: Path, room: int, caplog: pytest.LogCaptureFixture
) -> None:
    disk = FullDisk()
    disk.room = room
    spool = Spool(tmp_path, disk, MB, 1e9, Clock())
    kept = [number for number in range(10) if spool.append(b"%d" % number)]
    assert len(caplog.records) == 1
    disk.room = 10_000
    assert spool.append(b"after")
    spool.append(b"end")
    assert drained(spool) == [*(b"%d" % number for number in kept), b"after", b"end"]
    assert spool.dropped == 10 - len(kept)


def test_a_place_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    spool = opened(tmp_path / "file" / "t")
    assert not spool.append(b"x")
    assert spool.next() is None


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "000000000000000g.spool").write_text("mine too")
    (tmp_path / f"{7:016x}.spool").write_bytes(b"")
    spool = opened(tmp_path)
    spool.append(b"x")
    assert drained(spool) == [b"x"]
    assert sorted(file.name for file in files(tmp_path)) == ["000000000000000g.spool", "notes.txt"]
