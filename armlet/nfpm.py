"""Packages for a rootfs, deb and ipk, made by nfpm: equal content gives equal bytes."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from armlet_runtime.payload_manifest import LONGEST_LINE, is_line

from armlet.errors import ArmletError, Kind
from armlet.events import Sink, silent
from armlet.files import whole_file
from armlet.process import Command, HostRunner, Runner, checked
from armlet.scratch import scratch

PackageFormat = Literal["deb", "ipk"]
MAINTAINER = "Armlet <armlet@invalid>"
"""Where nobody says who it is."""
_DOLLAR = "ARMLET_DOLLAR"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One path in a package; root's, like all others."""

    source: Path | None
    """A file's content; None: it is a folder."""
    mode: int = 0o644
    keep: bool = False
    """An update leaves the file as it was changed on the device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """For every architecture. ``created`` is in UTC, as ``2026-01-31T12:00:00Z``, and the time of all in it."""

    name: str
    version: str
    epoch: str = ""
    description: str
    licence: str
    maintainer: str
    created: str
    entries: Mapping[str, Entry]
    """Absolute path on the device -> what is there."""
    depends: tuple[str, ...] = field(default=())
    recommends: tuple[str, ...] = field(default=())


def write_package(
    target: Path, kind: PackageFormat, package: Package, *, runner: Runner | None = None, emit: Sink = silent
) -> None:
    """Raises:
    ArmletError: (INPUT) a text is no line; (BUILD) nfpm failed; (HOST) the disk is full.
    """
    _demand_lines(package)
    with scratch("package") as folder:
        config, made = folder / "nfpm.json", folder / f"made.{kind}"
        # JSON is YAML.
        config.write_text(json.dumps(_config(package)), encoding="utf-8")
        argv = (str(_nfpm()), "package", "--config", str(config), "--packager", kind, "--target", str(made))
        checked(
            runner or HostRunner(),
            Command(argv=argv, cwd=folder, env={_DOLLAR: "$"}),
            what=f"cannot make {target.name}",
            kind=Kind.BUILD,
            emit=emit,
        )
        with whole_file(target) as stream, made.open("rb") as content:
            shutil.copyfileobj(content, stream)


def demand_line(what: str, text: str) -> None:
    """Raises:
    ArmletError: (INPUT) the text would write other fields into a package's control file, or none.
    """
    if not is_line(text):
        hint = f"write it as one line of at most {LONGEST_LINE} characters, without control characters"
        raise ArmletError(f"the {what} {text!a} is no line of text", hint=hint, kind=Kind.INPUT)


def _demand_lines(package: Package) -> None:
    """Of all that ends up in a control file, nfpm leaves line ends as they are."""
    texts = {name: getattr(package, name) for name in ("name", "version", "description", "licence", "maintainer")}
    for what, text in texts.items():
        demand_line(what, text)
    for what, listed in (
        ("epoch", (package.epoch,) if package.epoch else ()),
        ("dependency", (*package.depends, *package.recommends)),
        ("path", package.entries),
    ):
        for text in listed:
            demand_line(what, text)


def _config(package: Package) -> dict[str, object]:
    return {
        "name": package.name,
        "arch": "all",
        "epoch": package.epoch,
        "version": package.version,
        "version_schema": "none",
        "maintainer": _unexpanded(package.maintainer),
        "description": _unexpanded(package.description),
        "license": _unexpanded(package.licence),
        "section": "misc",
        "priority": "optional",
        "mtime": package.created,
        "depends": list(package.depends),
        "recommends": list(package.recommends),
        "disable_globbing": True,
        "contents": [_content(place, entry, package.created) for place, entry in package.entries.items()],
    }


def _content(place: str, entry: Entry, created: str) -> dict[str, object]:
    attributes = {"mode": entry.mode, "owner": "root", "group": "root", "mtime": created}
    content: dict[str, object] = {"dst": place, "file_info": attributes}
    if entry.source is None:
        return {**content, "type": "dir"}
    return {**content, "src": str(entry.source), **({"type": "config|noreplace"} if entry.keep else {})}


def _unexpanded(text: str) -> str:
    """What nfpm, which puts variables of its environment into texts, makes ``text`` of."""
    return text.replace("$", f"${{{_DOLLAR}}}")


def _nfpm() -> Path:
    return Path(sys.executable).with_name("nfpm")
