"""What could not be sent yet, kept on disk within bounds: files that are only appended to, oldest thrown away first.

A record is a mark, the crc32 of the rest, its length, its age's zero and its bytes. What a power loss leaves of one is
skipped. Nothing here counts on being kept: a disk that is full loses records, and says so once.

Age is counted in seconds that the service ran, since a device's clock may jump: time without power does not count.
One thread at a time.
"""

from __future__ import annotations

import logging
import re
import struct
import time
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Iterator, NamedTuple

from armlet_runtime.store.disk import Disk

log = logging.getLogger("armlet.update")

MARK = b"\xa5Sp1"
_HEAD = struct.Struct(">4sIId")
_REST = struct.Struct(">Id")
_NAME = re.compile(r"([0-9a-f]{16})\.spool")
LARGEST_SEGMENT = 128 << 10
SEGMENTS = 8
"""Least number that the limit is cut into, so that throwing away the oldest costs a part of it only."""


class Record(NamedTuple):
    """A record that was read: where it stands, and what it says."""

    segment: int
    offset: int
    data: bytes
    second: float
    """Of the spool's own time."""


@dataclass
class _Segment:
    size: int
    unread: int = 0
    """Offset of the first record that was not given yet."""


def packed(data: bytes, second: float) -> bytes:
    """A record as it stands in a segment."""
    rest = _REST.pack(len(data), second) + data
    return _HEAD.pack(MARK, zlib.crc32(rest), len(data), second) + data


def unpacked(content: bytes, segment: int = 0, start: int = 0) -> Iterator[Record]:
    """Every whole record of a segment from an offset on, whatever stands between them."""
    at = content.find(MARK, start)
    while at >= 0:
        record = _at(content, segment, at)
        if record is not None:
            yield record
            at += _HEAD.size + len(record.data)
        else:
            at += 1
        at = content.find(MARK, at)


def _at(content: bytes, segment: int, at: int) -> Record | None:
    if at + _HEAD.size > len(content):
        return None
    _, crc, length, second = _HEAD.unpack_from(content, at)
    end = at + _HEAD.size + length
    if end > len(content) or zlib.crc32(memoryview(content)[at + 8 : end]) != crc:
        return None
    return Record(segment, at, content[at + _HEAD.size : end], second)


class Spool:
    """Records in the order in which they came; each is there until :meth:`done`, or until it is too old."""

    def __init__(
        self,
        folder: Path,
        disk: Disk,
        most_bytes: int,
        most_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Nothing is written yet; a folder that cannot be read counts as empty."""
        self._folder = folder
        self._disk = disk
        self._most = most_bytes
        self._most_seconds = most_seconds
        self._clock = clock
        self._segment_size = max(4096, min(LARGEST_SEGMENT, most_bytes // SEGMENTS))
        self._segments: dict[int, _Segment] = {}
        self._open: int | None = None
        """Descriptor of the newest segment."""
        self._loaded: tuple[int, list[Record]] | None = None
        self._given: dict[tuple[int, int], None] = {}
        self._failed = False
        self.dropped = 0
        """Records that were thrown away, or could not be written; whole segments of an earlier run count as one."""
        self._find()
        self._began = clock()
        self._before = self._newest_second()

    def __len__(self) -> int:
        """Bytes on disk."""
        return sum(segment.size for segment in self._segments.values())

    @property
    def waiting(self) -> bool:
        """Whether there is something that was not given yet."""
        return any(segment.unread < segment.size for segment in self._segments.values())

    def append(self, data: bytes) -> bool:
        """Whether it is kept."""
        record = packed(data, self._now())
        if len(record) > self._segment_size:
            self.dropped += 1
            return False
        try:
            self._write(record)
        except OSError as error:
            self.close()
            self.dropped += 1
            if not self._failed:
                log.warning("telemetry cannot be kept in %s: %s", self._folder, error.strerror or error)
            self._failed = True
            return False
        self._failed = False
        return True

    def next(self) -> Record | None:
        """The oldest record that was not given since the last :meth:`rewind`; None: there is none."""
        while True:
            number = next((n for n, s in sorted(self._segments.items()) if s.unread < s.size), None)
            if number is None:
                return None
            record = self._read(number)
            if record is not None and self._now() - record.second <= self._most_seconds:
                self._given[(number, record.offset)] = None
                return record
            if record is not None:
                self.dropped += 1
            self._tidy(number)

    def done(self, record: Record) -> None:
        """It has arrived."""
        self._given.pop((record.segment, record.offset), None)
        self._tidy(record.segment)

    def rewind(self) -> None:
        """What was given and is not done is given again."""
        for number, offset in self._given:
            if number in self._segments:
                self._segments[number].unread = min(self._segments[number].unread, offset)
        self._given.clear()
        self._loaded = None

    def close(self) -> None:
        """The next record begins a segment; what was written so far is synced as far as it can be."""
        descriptor, self._open = self._open, None
        if descriptor is None:
            return
        with suppress(OSError):
            self._disk.sync(descriptor)
        with suppress(OSError):
            self._disk.close(descriptor)

    def _find(self) -> None:
        try:
            found = sorted((int(match[1], 16), path) for path in self._folder.iterdir() if (match := _match(path)))
            self._segments = {number: _Segment(path.stat().st_size) for number, path in found}
        except OSError:
            self._segments = {}
        for number, segment in list(self._segments.items()):
            if not segment.size or segment.size > LARGEST_SEGMENT:
                self._remove(number)

    def _newest_second(self) -> float:
        for number in sorted(self._segments, reverse=True):
            records = self._records(number)
            if records:
                return max(record.second for record in records)
        return 0.0

    def _now(self) -> float:
        return self._before + self._clock() - self._began

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:016x}.spool"

    def _write(self, record: bytes) -> None:
        newest = max(self._segments, default=0)
        if self._open is not None and self._segments[newest].size + len(record) > self._segment_size:
            self.close()
        while self._segments and len(self) + len(record) > self._most:
            self._drop_oldest()
        if self._open is None:
            newest = max(self._segments, default=0) + 1
            if not self._folder.is_dir():
                self._disk.mkdir(self._folder)
            self._open = self._disk.create(self._path(newest))
            self._segments[newest] = _Segment(0)
        segment = self._segments[newest]
        while record:
            written = self._disk.write(self._open, record, segment.size)
            segment.size += written
            record = record[written:]

    def _drop_oldest(self) -> None:
        oldest = min(self._segments)
        if oldest == max(self._segments):
            self.close()
        self.dropped += max(1, len(self._records(oldest)))
        self._remove(oldest)

    def _remove(self, number: int) -> None:
        # Where it cannot be removed it is forgotten all the same: the next start finds it again.
        self._segments.pop(number, None)
        if self._loaded and self._loaded[0] == number:
            self._loaded = None
        try:
            self._disk.unlink(self._path(number))
        except OSError as error:
            log.warning("%s cannot be removed: %s", self._path(number), error.strerror or error)

    def _records(self, number: int) -> list[Record]:
        try:
            return list(unpacked(self._path(number).read_bytes(), number))
        except OSError:
            return []

    def _read(self, number: int) -> Record | None:
        """The next record of a segment; None: there is none, and it counts as read."""
        if number == max(self._segments):
            self.close()
        if self._loaded is None or self._loaded[0] != number:
            self._loaded = number, self._records(number)
        segment = self._segments[number]
        record = next((record for record in self._loaded[1] if record.offset >= segment.unread), None)
        segment.unread = segment.size if record is None else record.offset + _HEAD.size + len(record.data)
        return record

    def _tidy(self, number: int) -> None:
        segment = self._segments.get(number)
        if segment is None or segment.unread < segment.size or any(key[0] == number for key in self._given):
            return
        self._remove(number)


def _match(path: Path) -> re.Match[str] | None:
    return _NAME.fullmatch(path.name)
