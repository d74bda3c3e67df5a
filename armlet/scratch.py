"""Temporary folders: swept, made, and named where they have no room."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from armlet.errors import ArmletError, Kind, is_host_error
from armlet.store import remove_older

_MARK = "armlet-"
_LEFT = frozenset(
    (
        *("models", "smoke", "profile", "observe", "convert", "inspect", "quantise", "import", "pack", "package"),
        *("packages", "service", "ccache", "engine", "layer"),
    )
)
"""What commands that were killed leave."""
_LONGEST_SMOKE_SECONDS = 24 * 3600
_LEAST_FREE = 64 << 10
"""Bytes. What fails with less than that fails for want of room."""
_NO_ROOM = tuple(os.strerror(number) for number in (errno.ENOSPC, errno.EDQUOT))


def sweep() -> None:
    """Removes what commands that were killed left in the temporary folder.

    Raises:
        ArmletError: (HOST) there is no temporary folder that can be written to.
    """
    ours = _temporary().glob(f"{_MARK}*-*")
    remove_older((folder for folder in ours if folder.name.split("-")[1] in _LEFT), _LONGEST_SMOKE_SECONDS)


@contextmanager
def scratch(what: str) -> Iterator[Path]:
    """Yields a folder of its own in the temporary folder, which is removed when the block ends.

    What commands that were killed left there goes first.

    Raises:
        ArmletError: (HOST) the temporary folder is full or not writable. Any other exception of the block goes on as
            it is.
    """
    sweep()
    try:
        made = tempfile.TemporaryDirectory(prefix=f"{_MARK}{what}-", dir=_temporary())
    except OSError as error:
        raise _not_writable(error.strerror or str(error)) from error
    with made as name:
        try:
            yield Path(name)
        except OSError as error:
            if is_host_error(error) and _is_ours(str(error.filename or name)):
                raise _not_writable(str(error.strerror)) from error
            raise
        except ArmletError as error:
            if error.kind is Kind.HOST:
                if isinstance(error.__cause__, OSError) and _is_ours(error.where):
                    raise _not_writable(str(error.__cause__.strerror)) from error
            else:
                demand_room(Path(name), str(error))
            raise


def demand_room(folder: Path, said: str) -> None:
    """Does nothing where what failed, and ``said`` so, had room in the folder.

    Raises:
        ArmletError: (HOST) it had not.
    """
    if shutil.disk_usage(folder).free < _LEAST_FREE or any(words in said for words in _NO_ROOM):
        raise _not_writable(_NO_ROOM[0])


def _temporary() -> Path:
    try:
        return Path(tempfile.gettempdir())
    except OSError as error:
        raise _not_writable(error.strerror or str(error), os.environ.get("TMPDIR", "/tmp")) from error


def _is_ours(place: str) -> bool:
    return place.startswith(str(_temporary() / _MARK))


def _not_writable(why: str, folder: str = "") -> ArmletError:
    return ArmletError(
        f"cannot write to the temporary folder: {why}",
        where=folder or str(_temporary()),
        hint="free some space there, or name a folder on another disk: TMPDIR",
        kind=Kind.HOST,
    )
