"""Every way in which the store changes a disk: one system call for each method. Tests put a recorder in its place."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

NEW = ".new"
"""What the name of a file that is about to replace another one ends with."""


class Disk:
    """The real one. Each raises OSError; a descriptor is the number that the system gave."""

    def mkdir(self, path: Path) -> None:
        path.mkdir(0o755)

    def create(self, path: Path) -> int:
        """A new file, open for reading and writing; FileExistsError where one is there."""
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)

    def open(self, path: Path) -> int:
        """A file that is there, open for reading and writing."""
        return os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)

    def write(self, descriptor: int, data: bytes, offset: int) -> int:
        """Bytes written, which may be fewer than given."""
        return os.pwrite(descriptor, data, offset)

    def allocate(self, descriptor: int, size: int) -> None:
        """Room for ``size`` bytes, which read as zeros."""
        os.posix_fallocate(descriptor, 0, size)

    def sync(self, descriptor: int) -> None:
        """Content and length of a file are on the medium."""
        os.fsync(descriptor)

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def rename(self, path: Path, target: Path) -> None:
        path.rename(target)

    def unlink(self, path: Path) -> None:
        path.unlink()

    def rmdir(self, path: Path) -> None:
        path.rmdir()

    def age(self, path: Path) -> None:
        """As if it had been changed in 1970."""
        os.utime(path, (0, 0), follow_symlinks=False)

    def sync_folder(self, path: Path) -> None:
        """The names in a folder are on the medium."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_all(disk: Disk, descriptor: int, data: bytes, offset: int = 0) -> None:
    """All of ``data``, also where the system takes it in pieces."""
    view = memoryview(data)
    while view:
        done = disk.write(descriptor, bytes(view), offset)
        offset += done
        view = view[done:]


def replace(disk: Disk, path: Path, data: bytes) -> None:
    """A file has new content, on the medium when this returns; a crash leaves the old content or the new.

    Where it raises OSError, either is there.
    """
    new = path.with_name(path.name + NEW)
    with suppress(FileNotFoundError):
        disk.unlink(new)
    try:
        descriptor = disk.create(new)
        try:
            write_all(disk, descriptor, data)
            disk.sync(descriptor)
        finally:
            disk.close(descriptor)
        disk.rename(new, path)
    except OSError:
        with suppress(OSError):
            disk.unlink(new)
        raise
    disk.sync_folder(path.parent)


def remove_tree(disk: Disk, path: Path) -> int:
    """Removes a file or a folder with all that is in it, following no link; the bytes that its files had.

    What is not there is no error.
    """
    try:
        if path.is_symlink() or not path.is_dir():
            size = path.lstat().st_size
            disk.unlink(path)
            return size
        size = sum(remove_tree(disk, inner) for inner in sorted(path.iterdir()))
        disk.rmdir(path)
        return size
    except FileNotFoundError:
        return 0
