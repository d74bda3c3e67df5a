"""Free disk space: asked for before the work, and recognised when the engine runs out of it."""

from __future__ import annotations

import shutil
from pathlib import Path

from armlet.errors import ArmletError, Kind

GIB = 1 << 30


def require_space(folder: Path, needed: int, *, what: str) -> None:
    """Checks that the file system of ``folder`` has ``needed`` bytes free.

    A folder that cannot be looked at is passed: the engine may be on another machine.

    Raises:
        ArmletError: less is free.
    """
    try:
        free = shutil.disk_usage(folder).free
    except OSError:
        return
    if free < needed:
        raise disk_full(f"{what} needs {needed / GIB:.1f} GiB, {free / GIB:.1f} GiB are free", where=str(folder))


def disk_full(what: str, *, where: str = "") -> ArmletError:
    return ArmletError(
        f"no disk space: {what}",
        hint="free some (all of this can be made again): docker image rm $(docker image ls --quiet 'armlet-*'); "
        "docker container prune; ./inv clean --cache, which removes dist as well",
        kind=Kind.HOST,
        where=where,
    )
