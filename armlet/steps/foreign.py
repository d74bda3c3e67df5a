"""What some providers bring into a compile beside the sources: libraries made elsewhere, and vendors' SDKs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from armlet import mounts, sdks
from armlet.config import Resolved
from armlet.engine import Mount
from armlet.providers import rows


def facts(resolved: Resolved) -> Mapping[str, Any]:
    """All of it that can change a library; empty for most SKUs. An SDK counts by its content, wherever it is."""
    found = {
        "libraries": _libraries(resolved),
        "sdks": {name: sdks.content(folder) for name, folder in resolved.sdks.items()},
        "environment": environment(resolved),
    }
    return {name: value for name, value in found.items() if value}


def environment(resolved: Resolved) -> dict[str, str]:
    """Variables that upstream's CMake asks the providers' places by."""
    return {name: value for row in rows(resolved.sku.runtime.providers) for name, value in row.environment.items()}


def mounts_of(resolved: Resolved) -> tuple[Mount, ...]:
    return tuple(
        Mount(source=folder, target=f"{mounts.SDKS}/{name}", read_only=True)
        for name, folder in sorted(resolved.sdks.items())
    )


def link_libraries(resolved: Resolved, build: Path, view: mounts.View = mounts.PLAIN) -> None:
    """Gives the libraries that travel in the package the names that a linker looks for, in ``mounts.LIBRARIES``."""
    folder = build / PurePosixPath(mounts.LIBRARIES).relative_to(mounts.BUILD)
    for name, target in _libraries(resolved).items():
        folder.mkdir(exist_ok=True)
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(view.inside(target))


def _libraries(resolved: Resolved) -> dict[str, str]:
    """Name that a linker looks for -> the library, as the container sees it."""
    return {
        PurePosixPath(path).name.partition(".so")[0] + ".so": f"{mounts.SOURCES}/{component.name}/{path}"
        for component in resolved.components
        for path in component.ships
    }
