"""Files that are whole or not there, and locks between processes."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from armlet.errors import host_error
from armlet.events import Note, Sink


@contextmanager
def alone(lock: Path, emit: Sink, *, waiting: str) -> Iterator[None]:
    """Holds a lock file (in a folder that is there) for this process; tells ``waiting`` where another one has it.

    ``lock`` may be a folder: nothing is made then.

    Raises:
        OSError: the file cannot be made.
    """
    made = os.O_RDONLY if lock.is_dir() else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    descriptor = os.open(lock, made, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            emit(Note(text=f"{waiting}; waiting for it"))
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def open_regular(path: Path) -> BinaryIO:
    """Opens a file to read; of a pipe or a device, nobody knows when it ends.

    Raises:
        OSError: it cannot be opened, or is something else.
    """
    # Not blocking: a pipe would keep us waiting for somebody to write into it.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "it is no file", str(path))


def write_whole(target: Path, data: bytes) -> None:
    """Puts ``data`` at ``target``: a reader, or a power cut, sees the old content or the new, never a part of it.

    Raises:
        ArmletError: (HOST) the disk is full or not writable.
    """
    with whole_file(target) as stream:
        stream.write(data)


@contextmanager
def whole_file(target: Path) -> Iterator[BinaryIO]:
    """Yields a file to write and read, that takes the place of ``target`` when the block ends without an exception.

    Raises:
        ArmletError: (HOST) the disk is full or not writable.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-", suffix=".part")
        part = Path(name)
        try:
            with os.fdopen(descriptor, "w+b") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            part.chmod(0o644)
            part.replace(target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise host_error(error, target) from error


def copy_tree(source: Path, target: Path) -> None:
    """Copies a folder, links as links, into one that may be there.

    Raises:
        ArmletError: (HOST) the disk is full or not writable.
    """
    shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True, copy_function=_copy)


def _copy(source: str, target: str) -> None:
    try:
        shutil.copy2(source, target)
    except OSError as error:
        # As it is, copytree would collect it, and tell of it as text.
        raise host_error(OSError(error.errno, error.strerror, target), Path(target)) from error
