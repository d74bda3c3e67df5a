"""Packages for a rootfs, deb, ipk, rpm and apk, made by nfpm: equal content gives equal bytes."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from armlet_runtime.payload_manifest import LONGEST_LINE, is_line

from armlet.errors import ArmletError, Kind
from armlet.events import Sink, silent
from armlet.files import whole_file
from armlet.process import Command, HostRunner, Runner, checked
from armlet.reproducible import EPOCH
from armlet.scratch import scratch

PackageFormat = Literal["deb", "ipk", "rpm", "apk"]
PACKAGE_FORMATS: tuple[PackageFormat, ...] = get_args(PackageFormat)
MAINTAINER = "Armlet <armlet@invalid>"
"""Where nobody says who it is."""
_DOLLAR = "ARMLET_DOLLAR"
_NOARCH: dict[PackageFormat, str] = {"deb": "all", "ipk": "all", "rpm": "noarch", "apk": "noarch"}
_BUILD_HOST = "armlet"
_UPGRADE = "postupgrade"
"""Of apk alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One path in a package; root's, like all others."""

    source: Path | None
    """A file's content; None: it is a folder, or a link."""
    link: str = ""
    """Where a symbolic link points."""
    mode: int = 0o644
    keep: bool = False
    """An update leaves the file as it was changed on the device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """``created`` is in UTC, as ``2026-01-31T12:00:00Z``, and the time of all in it."""

    name: str
    arch: str = ""
    """As the format's distributions call it; empty: for every one."""
    version: str
    release: str = ""
    """The packager's own count, of formats that have a field for it."""
    epoch: str = ""
    section: str = "misc"
    description: str
    details: str = ""
    """More lines, for whoever wants to know more."""
    licence: str
    maintainer: str
    created: str
    entries: Mapping[str, Entry]
    """Absolute path on the device -> what is there."""
    depends: tuple[str, ...] = field(default=())
    recommends: tuple[str, ...] = field(default=())
    provides: tuple[str, ...] = field(default=())
    conflicts: tuple[str, ...] = field(default=())
    replaces: tuple[str, ...] = field(default=())
    scripts: Mapping[str, str] = field(default_factory=dict)
    """nfpm's name of a maintainer script (``postinstall``) -> its text."""
    triggers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Of a deb, by nfpm's names (``activate_noawait``)."""


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
        scripts = _scripts(package.scripts, folder)
        config.write_text(json.dumps(_config(package, kind, scripts)), encoding="utf-8")
        argv = (str(_nfpm()), "package", "--config", str(config), "--packager", kind, "--target", str(made))
        checked(
            runner or HostRunner(),
            Command(argv=argv, cwd=folder, env={_DOLLAR: "$", "SOURCE_DATE_EPOCH": str(EPOCH)}),
            what=f"cannot make {target.name}",
            kind=Kind.BUILD,
            emit=emit,
        )
        with whole_file(target) as stream, made.open("rb") as content:
            shutil.copyfileobj(content, stream)


def file_name(kind: PackageFormat, package: Package) -> str:
    """As the format's own tools name files."""
    if kind == "apk":
        return f"{package.name}-{package.version}-r{package.release}.apk"
    if kind == "rpm":
        return f"{package.name}-{package.version}-{package.release}.{package.arch or _NOARCH[kind]}.rpm"
    return f"{package.name}_{package.version}_{package.arch or _NOARCH[kind]}.{kind}"


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
        (
            "dependency",
            (*package.depends, *package.recommends, *package.provides, *package.conflicts, *package.replaces),
        ),
        ("path", package.entries),
    ):
        for text in listed:
            demand_line(what, text)


def _scripts(texts: Mapping[str, str], folder: Path) -> dict[str, str]:
    """nfpm's name of a script -> its file, dated as apk's archive will have it."""
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
        os.utime(folder / name, (EPOCH, EPOCH))
    return {name: str(folder / name) for name in texts}


def _config(package: Package, kind: PackageFormat, scripts: Mapping[str, str]) -> dict[str, object]:
    arch = package.arch or _NOARCH[kind]
    own: dict[str, object] = {"arch": arch}
    details = package.details if kind != "apk" else ""
    if kind == "deb":
        own["triggers"] = {name: list(paths) for name, paths in package.triggers.items()}
    if kind == "rpm":
        own |= {"buildhost": _BUILD_HOST, "summary": _unexpanded(package.description)}
    if kind == "apk":
        own["scripts"] = {name: path for name, path in scripts.items() if name == _UPGRADE}
    return {
        "name": package.name,
        "arch": arch,
        "epoch": package.epoch,
        "version": package.version,
        "release": package.release,
        "version_schema": "none",
        "maintainer": _unexpanded(package.maintainer),
        # apk's file of facts has one line for each.
        "description": _unexpanded("\n".join([package.description, *([details] if details else [])])),
        "license": _unexpanded(package.licence),
        "section": package.section,
        "priority": "optional",
        "mtime": package.created,
        "depends": list(package.depends),
        "recommends": list(package.recommends),
        "provides": list(package.provides),
        "conflicts": list(package.conflicts),
        "replaces": list(package.replaces),
        "scripts": {name: path for name, path in scripts.items() if name != _UPGRADE},
        kind: own,
        "disable_globbing": True,
        "contents": [_content(place, entry, package.created) for place, entry in package.entries.items()],
    }


def _content(place: str, entry: Entry, created: str) -> dict[str, object]:
    attributes = {"mode": entry.mode, "owner": "root", "group": "root", "mtime": created}
    content: dict[str, object] = {"dst": place, "file_info": attributes}
    if entry.link:
        return {**content, "src": entry.link, "type": "symlink", "file_info": {**attributes, "mode": 0o777}}
    if entry.source is None:
        return {**content, "type": "dir"}
    return {**content, "src": str(entry.source), **({"type": "config|noreplace"} if entry.keep else {})}


def _unexpanded(text: str) -> str:
    """What nfpm, which puts variables of its environment into texts, makes ``text`` of."""
    return text.replace("$", f"${{{_DOLLAR}}}")


def _nfpm() -> Path:
    return Path(sys.executable).with_name("nfpm")
