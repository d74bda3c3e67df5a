"""Every way in which the store changes a disk: one system call for each method. Tests put a recorder in its place."""

from __future__ import annotations

import os
from pathlib import Path


class Disk:
    """The real one. Each raises OSError; a descriptor is the number that the system gave."""

    def mkdir(self, path: Path) -> None:
        os.mkdir(path, 0o755)

    def create(self, path: Path) -> int:
        """A new file, open for writing; FileExistsError where one is there."""
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)

    def open(self, path: Path) -> int:
        """A file that is there, open for reading and writing."""
        return os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)

    def write(self, descriptor: int, data: bytes, offset: int) -> int:
        """Bytes written, which may be fewer than given."""
        return os.pwrite(descriptor, data, offset)

    def allocate(self, descriptor: int, size: int) -> None:
        """Room for a file of ``size`` bytes, zeros."""
        os.posix_fallocate(descriptor, 0, size)

    def sync(self, descriptor: int) -> None:
        """Content and length of a file are on the medium."""
        os.fsync(descriptor)

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def rename(self, path: Path, target: Path) -> None:
        os.rename(path, target)

    def unlink(self, path: Path) -> None:
        os.unlink(path)

    def rmdir(self, path: Path) -> None:
        os.rmdir(path)

    def sync_folder(self, path: Path) -> None:
        """The names in a folder are on the medium."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
