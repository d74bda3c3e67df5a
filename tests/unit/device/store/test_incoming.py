"""Archives on their way: what was synced is there again, and nothing else is believed."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from armlet_runtime.store.disk import Disk
from armlet_runtime.store.incoming import MAP, MOST_BLOCKS, PART, StoredIncoming, map_of, read_map, regridded
from hypothesis import given
from hypothesis import strategies as st

NAME = "a" * 64
DATA = bytes(range(250)) * 10
SIZE = len(DATA)


def incoming(folder: Path, block_size: int = 1000, size: int = SIZE, disk: Disk | None = None) -> StoredIncoming:
    return StoredIncoming(disk or Disk(), folder, NAME, size, block_size)


def block(number: int, size: int = 1000) -> bytes:
    return DATA[number * size : (number + 1) * size]


def test_blocks_in_any_order_make_the_archive(tmp_path: Path) -> None:
    one = incoming(tmp_path)
    assert (one.blocks, one.missing(), one.path.stat().st_size) == (3, [0, 1, 2], SIZE)
    for number in (2, 0, 0, 1):
        one.put(number, block(number))
    assert one.missing() == []
    assert one.path.read_bytes() == DATA
    # The last one synced them all.
    assert read_map((tmp_path / (NAME + MAP)).read_bytes(), SIZE) == (1000, {0, 1, 2})


def test_what_was_not_synced_is_asked_for_again(tmp_path: Path) -> None:
    one = incoming(tmp_path)
    one.put(1, block(1))
    one.sync()
    one.put(0, block(0))
    assert one.missing() == [2]
    one.close()
    assert incoming(tmp_path).missing() == [0, 2]


def test_it_syncs_by_itself_now_and_then(tmp_path: Path) -> None:
    size, count = 1 << 18, 8
    one = incoming(tmp_path, size, size * count)
    for number in range(5):
        one.put(number, bytes(size))
    one.close()
    assert incoming(tmp_path, size, size * count).missing() == [4, 5, 6, 7]


@pytest.mark.parametrize(("number", "length"), [(-1, 1000), (3, 1000), (3, 0), (0, 999), (0, 1001), (2, 1000), (0, 0)])
def test_a_block_that_does_not_fit_is_not_taken(tmp_path: Path, number: int, length: int) -> None:
    one = incoming(tmp_path)
    with pytest.raises(ValueError, match="block"):
        one.put(number, bytes(length))
    assert one.missing() == [0, 1, 2]
    assert one.path.stat().st_size == SIZE


@pytest.mark.parametrize(("size", "block_size"), [(0, 1), (1, 0), (-1, 5), (1 << 50, 1), (MOST_BLOCKS + 1, 1)])
def test_sizes_without_sense_are_none(tmp_path: Path, size: int, block_size: int) -> None:
    with pytest.raises(ValueError, match="blocks"):
        incoming(tmp_path, block_size, size)
    assert not [*tmp_path.iterdir()]


def test_after_discarding_nothing_is_left_and_nothing_is_taken(tmp_path: Path) -> None:
    one = incoming(tmp_path)
    one.put(0, block(0))
    one.sync()
    one.discard()
    assert not [*tmp_path.iterdir()]
    assert one.missing() == [0, 1, 2]
    for does in (one.sync, lambda: one.put(0, block(0))):
        with pytest.raises(OSError, match="no longer wanted") as caught:
            does()
        assert caught.value.errno == errno.EBADF
    one.close()


def test_a_torn_map_says_that_nothing_is_there(tmp_path: Path) -> None:
    data = map_of(SIZE, 1000, {0, 2})
    assert read_map(data, SIZE) == (1000, {0, 2})
    for end in range(len(data)):
        with pytest.raises(ValueError, match=r"."):
            read_map(data[:end], SIZE)
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 4
        with pytest.raises(ValueError, match=r"."):
            read_map(bytes(changed), SIZE)
    with pytest.raises(ValueError, match="another file"):
        read_map(data, SIZE + 1)
    for strange in (b"", bytes(len(data)), data[:20] + bytes(len(data) - 20)):
        one = incoming(tmp_path)
        one.put(0, block(0))
        one.sync()
        one.close()
        (tmp_path / (NAME + MAP)).write_bytes(strange)
        again = incoming(tmp_path)
        assert again.missing() == [0, 1, 2]
        again.close()


def test_a_map_without_its_file_is_none(tmp_path: Path) -> None:
    for cut in (0, 1500):
        one = incoming(tmp_path)
        one.put(1, block(1))
        one.sync()
        one.close()
        part = tmp_path / (NAME + PART)
        part.write_bytes(part.read_bytes()[:cut]) if cut else part.unlink()
        assert incoming(tmp_path).missing() == [0, 1, 2]


@given(st.integers(1, 300), st.integers(1, 60), st.integers(1, 60), st.data())
def test_blocks_of_another_size_count_where_all_of_them_is_there(
    size: int, old: int, new: int, data: st.DataObject
) -> None:
    there = data.draw(st.sets(st.integers(0, -(-size // old) - 1)))
    known = {byte for number in there for byte in range(number * old, min((number + 1) * old, size))}
    wanted = {n for n in range(-(-size // new)) if known.issuperset(range(n * new, min((n + 1) * new, size)))}
    assert regridded(size, old, there, new) == wanted


def test_another_block_size_goes_on(tmp_path: Path) -> None:
    one = incoming(tmp_path, 1000)
    one.put(0, block(0))
    one.put(1, block(1))
    one.sync()
    one.close()
    again = incoming(tmp_path, 700)
    assert again.missing() == [2, 3]
    for number in (2, 3):
        again.put(number, block(number, 700))
    assert again.path.read_bytes() == DATA


class FakeWithoutAllocation(Disk):
    def __init__(self, code: int) -> None:
        self.code = code

    def allocate(self, descriptor: int, size: int) -> None:
        raise OSError(self.code, "no")


def test_where_nothing_can_be_allocated_the_file_grows(tmp_path: Path) -> None:
    one = incoming(tmp_path, disk=FakeWithoutAllocation(errno.EOPNOTSUPP))
    assert one.path.stat().st_size == 0
    for number in (2, 0, 1):
        one.put(number, block(number))
    assert one.path.read_bytes() == DATA


def test_where_there_is_no_room_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no") as caught:
        incoming(tmp_path, disk=FakeWithoutAllocation(errno.ENOSPC))
    assert caught.value.errno == errno.ENOSPC
    assert not [*tmp_path.iterdir()]


class FakeOfBadSectors(Disk):
    bad = True

    def sync(self, descriptor: int) -> None:
        if self.bad:
            raise OSError(errno.EIO, "bad")


def test_what_could_not_be_synced_is_missing_again(tmp_path: Path) -> None:
    disk = FakeOfBadSectors()
    one = incoming(tmp_path, disk=disk)
    one.put(0, block(0))
    with pytest.raises(OSError, match="bad"):
        one.sync()
    # The system has forgotten that it was to be written: a second sync would find nothing to do.
    assert one.missing() == [0, 1, 2]
    disk.bad = False
    one.put(0, block(0))
    one.sync()
    assert one.missing() == [1, 2]


class FakeOfShortWrites(Disk):
    def write(self, descriptor: int, data: bytes, offset: int) -> int:
        return super().write(descriptor, data[:7], offset)


def test_writes_that_take_only_a_part_are_gone_on_with(tmp_path: Path) -> None:
    one = incoming(tmp_path, disk=FakeOfShortWrites())
    for number in range(3):
        one.put(number, block(number))
    assert one.path.read_bytes() == DATA
