"""One owner at a time: flock(2) on a file. It goes with the process, however that ends."""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, Protocol

from armlet_runtime.store.disk import Disk

SOON_SECONDS = 1.0


class Mutex(Protocol):
    """As :mod:`threading` makes them."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool: ...

    def release(self) -> None: ...


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


@contextmanager
def soon(mutex: Mutex) -> Iterator[bool]:
    """Holds a lock of threads; False: another one is at it, which may take minutes where it unpacks an archive."""
    mine = mutex.acquire(timeout=SOON_SECONDS)
    try:
        yield mine
    finally:
        if mine:
            mutex.release()
