"""The folder of a payload: read without following links, written whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Callable, Iterator

from armlet_runtime.refusal import DAMAGED, FORM, UNSAFE, PayloadError
from armlet_runtime.store.disk import Disk, remove_tree, write_all

_AGAIN = "get it again from who made it"

Write = Callable[[str, Iterator[bytes]], None]
"""Takes a path below the folder, and the pieces of its content."""


def regular(path: Path) -> BinaryIO:
    """Opens a file, also through a link; a pipe, which somebody else would have to write to, is not waited for.

    Raises:
        OSError: it cannot be opened, or is no file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is no file", str(path))


@contextmanager
def opened(folder: Path, path: str) -> Iterator[BinaryIO]:
    """A file of a payload, unbuffered.

    Raises:
        PayloadError: it is not there (DAMAGED), or is a link, a pipe or whatever else is no file (UNSAFE).
    """
    try:
        # Without O_NONBLOCK, opening a pipe would wait for somebody to write to it.
        descriptor = os.open(folder / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise PayloadError(DAMAGED, f"it has no {path}", _AGAIN) from None
    except OSError:
        # Links and sockets cannot be opened like that.
        _demand_file(os.lstat(folder / path), path)
        raise
    try:
        _demand_file(os.fstat(descriptor), path)
        with os.fdopen(descriptor, "rb", buffering=0, closefd=False) as stream:
            yield stream
    finally:
        os.close(descriptor)


def _demand_file(found: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise PayloadError(UNSAFE, f"{path} is a link, or whatever else is no file", _AGAIN) from None


def demand_no_more(folder: Path, wanted: set[str]) -> None:
    """Raises:
    PayloadError: the folder holds a link or pipe, or a file or folder that is not on the way to what is wanted.
    """
    folders = {"/".join(path.split("/")[:end]) for path in wanted for end in range(1, path.count("/") + 1)}
    waiting = [""]
    while waiting:
        place = waiting.pop()
        with os.scandir(folder / place) as entries:
            for entry in entries:
                path = f"{place}/{entry.name}" if place else entry.name
                told = path.encode("unicode_escape", "surrogateescape").decode("ascii")
                if not (entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False)):
                    raise PayloadError(UNSAFE, f"it holds {told}, which is neither file nor folder", _AGAIN)
                is_folder = entry.is_dir(follow_symlinks=False)
                if path not in (folders if is_folder else wanted):
                    raise PayloadError(FORM, f"it holds {told}, which its manifest does not list", _AGAIN)
                if is_folder:
                    waiting.append(path)


def read_to_the_end(_path: str, pieces: Iterator[bytes]) -> None:
    for _ in pieces:
        pass


@contextmanager
def written(into: Path | None, disk: Disk) -> Iterator[Write]:
    """What writes a file below ``into``, or reads it to its end where that is None."""
    if into is None:
        yield read_to_the_end
        return
    with os.scandir(into) as entries:
        if next(entries, None) is not None:
            raise FileExistsError(errno.EEXIST, "the folder is not empty", str(into))
    folders = {into}
    try:

        def write(path: str, pieces: Iterator[bytes]) -> None:
            target = into / path
            for parent in reversed(target.relative_to(into).parents):
                if into / parent not in folders:
                    disk.mkdir(into / parent)
                    folders.add(into / parent)
            descriptor = disk.create(target)
            try:
                offset = 0
                for piece in pieces:
                    write_all(disk, descriptor, piece, offset)
                    offset += len(piece)
                disk.sync(descriptor)
            finally:
                disk.close(descriptor)

        yield write
        for folder in sorted(folders, reverse=True):
            disk.sync_folder(folder)
    except BaseException:
        for path in into.iterdir():
            with suppress(OSError):
                remove_tree(disk, path)
        raise
