"""The locked sources: fetched, unpacked and patched, one folder per component."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from armlet import digest
from armlet.config import Resolved
from armlet.errors import ArmletError, Kind
from armlet.events import Progress
from armlet.fetch import Places, apply_patch, fetch, from_component, normalise, unpack
from armlet.process import HostRunner
from armlet.reproducible import EPOCH
from armlet.spec.source_set import UPSTREAM_PATCH, Component
from armlet.steps.base import Step, Work

REVISION = 1

ROOT = "onnxruntime"
"""The component whose own tree carries patches for the others."""

_NO_INFLUENCE = {"licence", "purl", "cpe", "debian", "snapshot", "urls", "cmake", "subdir", "ships", "needs", "only"}
"""Keys of a component that change nothing in its folder: a new mirror or a mended licence is no reason to build."""


def _facts(resolved: Resolved) -> Mapping[str, Any]:
    return {
        "revision": REVISION,
        "epoch": EPOCH,
        "components": [component.model_dump(mode="json", exclude=_NO_INFLUENCE) for component in resolved.components],
        "patches": {
            name: digest.of_bytes(resolved.patches[name])
            for component in resolved.components
            for name in component.patches
            if not name.startswith(UPSTREAM_PATCH)
        },
    }


def _run(work: Work) -> None:
    """Output: ``<component>/…`` for each, as CMake is to see it."""
    runner = HostRunner()
    components = _root_first(work.resolved.components)
    archives = fetch(
        [from_component(component) for component in components],
        work.paths.downloads,
        work.emit,
        places=Places.here(),
    )
    for number, (component, archive) in enumerate(zip(components, archives, strict=True), start=1):
        folder = work.out / component.name
        unpack(archive, folder, strip=component.strip, keep=component.keep)
        if component.subdir and not (folder / component.subdir).is_dir():
            raise ArmletError(
                f"{component.name} has no folder {component.subdir}",
                hint="mend subdir: or strip: of its lock entry",
                kind=Kind.INPUT,
                where=archive.name,
            )
        _patch(component, work, runner)
        work.emit(Progress(label="unpacking sources", done=number, total=len(components), unit="files"))


def _root_first(components: tuple[Component, ...]) -> tuple[Component, ...]:
    return tuple(sorted(components, key=lambda component: component.name != ROOT))


def _patch(component: Component, work: Work, runner: HostRunner) -> None:
    folder = work.out / component.name
    with tempfile.TemporaryDirectory(prefix="armlet-patches-") as place:
        for name in component.patches:
            if name.startswith(UPSTREAM_PATCH):
                path = work.out / ROOT / name.removeprefix(UPSTREAM_PATCH)
            else:
                path = Path(place) / Path(name).name
                path.write_bytes(work.resolved.patches[name])
            apply_patch(folder, path, runner, name=name)
    if component.patches:
        normalise(folder)


STEP = Step(name="sources", needs=(), facts=_facts, run=_run)
