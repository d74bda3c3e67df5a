"""How CMake would have each source compiled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path


def compile_commands(build: Path) -> list[dict[str, str]]:
    """How each source is compiled (CMake's ``compile_commands.json``): ``file``, ``output``, ``command``."""
    entries: list[dict[str, str]] = json.loads((build / "compile_commands.json").read_text())
    return entries


def target_of(entry: Mapping[str, str]) -> str:
    """The CMake target that an entry of ``compile_commands.json`` belongs to."""
    return entry["output"].partition(".dir/")[0].rpartition("/")[2]


def targets_of(build: Path) -> dict[str, list[str]]:
    """CMake target -> its sources (paths inside the container), as the configuration has them."""
    targets: dict[str, list[str]] = {}
    for entry in compile_commands(build):
        targets.setdefault(target_of(entry), []).append(entry["file"])
    return targets
