"""Where things are on this machine: apart from what the user wants built."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Paths:
    """The project's folder and the cache. Outputs go to ``dist/<sku>/`` below the project."""

    root: Path
    cache: Path

    @classmethod
    def of(cls, root: Path, environment: Mapping[str, str] = os.environ) -> Paths:
        """The cache is ``ARMLET_CACHE``, else ``~/.cache/armlet``."""
        chosen = environment.get("ARMLET_CACHE")
        cache = Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "armlet"
        return cls(root=root.resolve(), cache=cache.absolute())

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
