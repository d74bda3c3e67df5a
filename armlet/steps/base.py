"""What a build step is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from armlet.config import Resolved
from armlet.engine import Engine
from armlet.events import Sink
from armlet.mounts import PLAIN, View
from armlet.paths import Paths
from armlet.remote.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One step's surroundings while it runs."""

    id: str
    resolved: Resolved
    paths: Paths
    engine: Engine
    inputs: Mapping[str, Path]
    """Finished output folder of each step named in ``needs``; read-only."""
    out: Path
    """Empty folder for the output; it enters the store when the step returns, and is removed when it raises."""
    scratch: Path
    """Folder that survives an interruption: the next run of the same step id finds it as it was left."""
    emit: Sink
    jobs: int
    """Compilers at once."""
    view: View = PLAIN
    """Where the engine's containers have their folders."""
    shell_on_fail: bool = False
    """Open a shell in the container of a failed command before it is removed."""
    sharing: Settings = field(default_factory=Settings)
    """What is shared with other machines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A named, cacheable piece of a build.

    ``facts`` returns everything (JSON-like) that can change the output, apart from the outputs of ``needs``.
    """

    name: str
    needs: tuple[str, ...]
    facts: Callable[[Resolved], Mapping[str, Any]]
    run: Callable[[Work], None]
    shared: bool = False
    """Machines may hand the output on to each other: it is all that the step does, and cheaper to get than to make."""
