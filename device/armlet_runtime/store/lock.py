"""One owner at a time: flock(2) on a file. It goes with the process, however that ends."""

from __future__ import annotations

import fcntl
from pathlib import Path

from armlet_runtime.store.disk import Disk


class Lock:
    """Taken or not; the file stays, a lock is no matter of whether it is there."""

    def __init__(self, disk: Disk, path: Path) -> None:
        self._disk = disk
        self._path = path
        self._descriptor = -1

    @property
    def held(self) -> bool:
        return self._descriptor >= 0

    def take(self) -> None:
        """Raises BlockingIOError: another one has it. OSError."""
        try:
            descriptor = self._disk.open(self._path)
        except FileNotFoundError:
            descriptor = self._disk.create(self._path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._disk.close(descriptor)
            raise
        self._descriptor = descriptor

    def release(self) -> None:
        """Does nothing where it is not held."""
        if self.held:
            descriptor, self._descriptor = self._descriptor, -1
            self._disk.close(descriptor)
