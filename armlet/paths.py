"""Where things are on this machine: apart from what the user wants built."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from armlet.errors import ArmletError, Kind


def sample_files(place: Path) -> list[Path]:
    """The files of samples in a folder, by name; ``place`` itself where it is none."""
    return sorted(place.glob("*.npz")) if place.is_dir() else [place]


@dataclass(frozen=True, slots=True, kw_only=True)
class Paths:
    """The project's folder and the cache. Outputs go to ``dist/<sku>/`` below the project."""

    root: Path
    cache: Path

    @classmethod
    def of(cls, root: Path, environment: Mapping[str, str] = os.environ) -> Paths:
        """The cache is ``ARMLET_CACHE``, else ``~/.cache/armlet``.

        Raises:
            ArmletError: the cache is at no absolute path (INPUT), or below a home folder that is not known (HOST).
        """
        chosen = environment.get("ARMLET_CACHE") or "~/.cache/armlet"
        try:
            cache = Path(chosen).expanduser()
        except RuntimeError as error:
            raise ArmletError(
                f"the cache's place {chosen} has no meaning here: no such home folder is known",
                hint="set ARMLET_CACHE to an absolute path, or HOME",
                kind=Kind.HOST,
            ) from error
        if not cache.is_absolute():
            raise ArmletError(
                f'ARMLET_CACHE="{chosen}" is a relative path, and would be another folder wherever you are',
                hint=f'give the whole path: export ARMLET_CACHE="$PWD/{chosen}"',
                kind=Kind.INPUT,
            )
        return cls(root=root.resolve(), cache=cache)

    @property
    def private(self) -> tuple[Path, ...]:
        """What nothing that ships may name: the project, the cache, and the user's home where there is one."""
        try:
            return (self.root, self.cache, Path.home())
        except RuntimeError:
            return (self.root, self.cache)

    @property
    def downloads(self) -> Path:
        return self.cache / "downloads"

    @property
    def ccache(self) -> Path:
        return self.cache / "ccache"

    @property
    def artifacts(self) -> Path:
        return self.cache / "artifacts"

    @property
    def images(self) -> Path:
        return self.cache / "images"

    @property
    def work(self) -> Path:
        """Half-done steps, kept so that an interrupted one goes on where it stopped."""
        return self.cache / "work"

    def dist(self, sku: str) -> Path:
        return self.root / "dist" / sku

    def patch(self, name: str) -> Path:
        return self.root / "recipes" / "patches" / name
