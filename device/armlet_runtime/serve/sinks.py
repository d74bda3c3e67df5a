"""Where telemetry goes besides /metrics: now and then, as one snapshot of all numbers."""

from __future__ import annotations

import errno
import json
import logging
import math
import os
import stat
from pathlib import Path
from typing import Iterable, Mapping, Protocol

from armlet_runtime import stamps

from .exposition import Family, sample_name

log = logging.getLogger(__name__)


class Sink(Protocol):
    """Takes snapshots; raises nothing: telemetry must not disturb what it tells of."""

    def write(self, snapshot: Mapping[str, float], when: float) -> None:
        """``when``: seconds since 1970."""


def snapshot(families: Iterable[Family]) -> dict[str, float]:
    """Name with labels, as Prometheus writes it -> value; what is no number is left out."""
    return {
        sample_name(family.name + suffix, labels): value
        for family in families
        for suffix, labels, value in family.samples
        if math.isfinite(value)
    }


class FileSink:
    """JSON lines in a file; at ``most_bytes`` it becomes ``<name>.1`` and a new one begins.

    A folder that is full or read-only is told once in the log, and tried again the next time.
    """

    def __init__(self, path: Path, most_bytes: int = 1 << 20) -> None:
        self._path = path
        self._most = most_bytes
        self._failed = False

    def write(self, snapshot: Mapping[str, float], when: float) -> None:
        """See :class:`Sink`."""
        line = json.dumps({"time": stamps.utc(when), "metrics": snapshot}, separators=(",", ":"), sort_keys=True) + "\n"
        try:
            self._append(line.encode("ascii"))
        except OSError as error:
            if not self._failed:
                log.warning("telemetry cannot be written: %s", error)
            self._failed = True
        else:
            self._failed = False

    def _append(self, line: bytes) -> None:
        with open(self._path, "ab", opener=_regular) as file:
            # What a power cut left of a line is a line of its own, not the beginning of this one.
            if file.tell() and not self._ends_well():
                line = b"\n" + line
            file.write(line)
            size = file.tell()
        if size >= self._most:
            self._path.replace(f"{self._path}.1")

    def _ends_well(self) -> bool:
        with self._path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"


def _regular(path: str, flags: int) -> int:
    """Opens a file; a pipe would hold up the service until somebody reads it."""
    descriptor = os.open(path, flags | os.O_NONBLOCK, 0o644)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is no file", path)
