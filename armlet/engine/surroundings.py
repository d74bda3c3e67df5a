"""What a container is to its programs, beside the files they are given."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from armlet.mounts import PLAIN, View

BASE_ENVIRONMENT: Mapping[str, str] = {"HOME": "/tmp", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
"""What every command in a container sees, beside the image's own variables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a build may find in its containers, and what none of its outputs may depend on."""

    hostname: str = "armlet"
    """A fixed one: build systems write the host's name into what they make."""
    environment: Mapping[str, str] = field(default_factory=lambda: BASE_ENVIRONMENT)
    uid: int | None = None
    """The user, where it is not the caller; only root can give its files to another."""
    umask: str = ""
    """In octal digits; empty: the engine's own."""
    view: View = PLAIN

    @property
    def before(self) -> tuple[str, ...]:
        """What a command line begins with."""
        return ("sh", "-c", f'umask {self.umask} && exec "$@"', "sh") if self.umask else ()


def hand_over(folder: Path, uid: int) -> None:
    """Gives a folder and all in it to a user (and the group of the same number)."""
    for place, folders, files in os.walk(folder):
        for path in (place, *(f"{place}/{name}" for name in (*folders, *files))):
            if os.lstat(path).st_uid != uid:
                os.lchown(path, uid, uid)
