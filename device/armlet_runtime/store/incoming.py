"""An archive on its way in: a file of its size, and beside it a map of the blocks that are surely in it.

The map is written after what it tells of has been synced, so it never says more than the file holds. It has a
checksum: a map that is torn, or of another archive, says that nothing is there.
"""

from __future__ import annotations

import errno
import hashlib
import os
import threading
from contextlib import suppress
from pathlib import Path

from armlet_runtime.store.disk import Disk, remove_tree, replace, write_all

PART, MAP = ".part", ".map"
SYNC_BYTES = 1 << 20
"""What a power loss costs at the most."""
_FORM = "armlet blocks 1 {} {}\n"
_DIGEST = 32
MOST_BLOCKS = 1 << 18
"""1 GiB in the smallest blocks that may be wished."""
_LARGEST_MAP = MOST_BLOCKS // 8 + 256
_NO_ALLOCATION = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)


def map_of(size: int, block_size: int, there: set[int]) -> bytes:
    """What a map's file holds: a line of text, a bit for each block (the lowest bit of the first byte is block 0), and
    the sha256 of both."""
    bits = bytearray(-(-_count(size, block_size) // 8))
    for number in there:
        bits[number // 8] |= 1 << number % 8
    data = _FORM.format(size, block_size).encode() + bytes(bits)
    return data + hashlib.sha256(data).digest()


def read_map(data: bytes, size: int) -> tuple[int, set[int]]:
    """(block size, the blocks that are there) of the map of a file of ``size`` bytes.

    Raises:
        ValueError: it is torn, or of another file.
    """
    body, digest = data[:-_DIGEST], data[-_DIGEST:]
    line, _, bits = body.partition(b"\n")
    words = line.decode("ascii").split(" ")
    if hashlib.sha256(body).digest() != digest or len(words) != 5:
        raise ValueError("it is torn")
    block_size = int(words[4])
    if block_size < 1 or body != _FORM.format(size, block_size).encode() + bits:
        raise ValueError("it is of another file")
    count = _count(size, block_size)
    if len(bits) != -(-count // 8):
        raise ValueError("it is of another length")
    return block_size, {number for number in range(count) if bits[number // 8] >> number % 8 & 1}


def regridded(size: int, old: int, there: set[int], new: int) -> set[int]:
    """The blocks of ``new`` bytes that are wholly within blocks of ``old`` bytes that are there."""
    if old == new:
        return there
    ends = [(number * new, min((number + 1) * new, size)) for number in range(_count(size, new))]
    return {n for n, (start, end) in enumerate(ends) if there.issuperset(range(start // old, _count(end, old)))}


def _count(size: int, block_size: int) -> int:
    return -(-size // block_size)


def forget(disk: Disk, folder: Path, name: str) -> int:
    """Removes an archive and its map; the bytes that were freed.

    The map goes first and surely: a map that came back would speak for a file that is another one by then.
    """
    freed = remove_tree(disk, folder / (name + MAP))
    # Also where the map is gone already: an earlier run may have ended before its removal was sure.
    if os.path.lexists(folder / (name + PART)):
        disk.sync_folder(folder)
    return freed + remove_tree(disk, folder / (name + PART))


class StoredIncoming:
    """:class:`~armlet_runtime.update.interface.Incoming` in a folder. Any thread may call."""

    def __init__(self, disk: Disk, folder: Path, sha256: str, size: int, block_size: int) -> None:
        """Takes up what is there, or begins.

        Raises:
            OSError: it cannot be written, or there is no room for all of it.
            ValueError: there are no blocks, or more than ``MOST_BLOCKS``.
        """
        if size < 1 or block_size < 1 or _count(size, block_size) > MOST_BLOCKS:
            raise ValueError(f"{size} bytes in blocks of {block_size}")
        self.size, self.block_size = size, block_size
        self.path = folder / (sha256 + PART)
        self._disk, self._folder, self._name = disk, folder, sha256
        self._lock = threading.RLock()
        self._there: set[int] = set()
        self._written: set[int] = set()
        """Not synced yet."""
        self._descriptor = -1
        there = self._mapped()
        if there is None:
            self._begin()
        else:
            self._descriptor = disk.open(self.path)
            self._there = there

    @classmethod
    def found(cls, disk: Disk, folder: Path, sha256: str, size: int) -> StoredIncoming | None:
        """What an earlier run left, in its blocks; None: nothing that counts. Raises OSError."""
        try:
            with (folder / (sha256 + MAP)).open("rb") as stream:
                block_size, _ = read_map(stream.read(_LARGEST_MAP), size)
        except (FileNotFoundError, ValueError):
            return None
        return cls(disk, folder, sha256, size, block_size)

    @property
    def blocks(self) -> int:
        return _count(self.size, self.block_size)

    @property
    def closed(self) -> bool:
        return self._descriptor < 0

    def missing(self) -> list[int]:
        with self._lock:
            return [n for n in range(self.blocks) if n not in self._there and n not in self._written]

    def put(self, number: int, data: bytes) -> None:
        start = number * self.block_size
        length = min(self.block_size, self.size - start)
        if not 0 <= number < self.blocks or len(data) != length:
            raise ValueError(f"block {number} of {self.blocks} has {len(data)} bytes, not {max(length, 0)}")
        with self._lock:
            self._demand_open()
            if number in self._there or number in self._written:
                return
            write_all(self._disk, self._descriptor, data, start)
            self._written.add(number)
            done = len(self._written) + len(self._there) == self.blocks
            if done or len(self._written) * self.block_size >= SYNC_BYTES:
                self.sync()

    def sync(self) -> None:
        with self._lock:
            self._demand_open()
            if not self._written:
                return
            fresh, self._written = self._written, set()
            # A system that could not write some pages forgets that they were to be written: these blocks are
            # missing again, whatever a second sync would say.
            self._disk.sync(self._descriptor)
            self._written = fresh
            there = self._there | fresh
            replace(self._disk, self._folder / (self._name + MAP), map_of(self.size, self.block_size, there))
            self._there, self._written = there, set()

    def discard(self) -> None:
        with self._lock:
            self.close()
            self._there, self._written = set(), set()
            forget(self._disk, self._folder, self._name)

    def close(self) -> None:
        """What was not synced is lost. Further calls of ``put`` and ``sync`` raise OSError (EBADF)."""
        with self._lock:
            if not self.closed:
                descriptor, self._descriptor = self._descriptor, -1
                self._disk.close(descriptor)

    def _demand_open(self) -> None:
        if self.closed:
            raise OSError(errno.EBADF, "this archive is no longer wanted", str(self.path))

    def _mapped(self) -> set[int] | None:
        """The blocks that are there; None: there is nothing to go on with."""
        try:
            with (self._folder / (self._name + MAP)).open("rb") as stream:
                old, there = read_map(stream.read(_LARGEST_MAP), self.size)
            there = regridded(self.size, old, there, self.block_size)
            last = max(there, default=-1)
            end = min((last + 1) * self.block_size, self.size)
            return there if there and os.lstat(self.path).st_size >= end else None
        except (OSError, ValueError):
            return None

    def _begin(self) -> None:
        forget(self._disk, self._folder, self._name)
        self._descriptor = self._disk.create(self.path)
        try:
            self._allocate()
            # Before a map tells of it: that one must not come to lie beside the file that was here before.
            self._disk.sync_folder(self._folder)
        except OSError:
            with suppress(OSError):
                self.close()
            with suppress(OSError):
                forget(self._disk, self._folder, self._name)
            raise

    def _allocate(self) -> None:
        """Where the file system has no such thing, the file grows as blocks come."""
        try:
            self._disk.allocate(self._descriptor, self.size)
        except OSError as error:
            if error.errno not in _NO_ALLOCATION:
                raise
