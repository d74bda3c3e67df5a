"""Payloads as packages for a rootfs: deb and ipk, made by nfpm."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from armlet.errors import ArmletError, Kind
from armlet.events import Sink, silent
from armlet.payload.archive import whole_file
from armlet.process import Command, HostRunner, Runner, checked
from armlet.scratch import scratch
from armlet.spec.payload import PayloadManifest

PackageFormat = Literal["deb", "ipk"]
MAINTAINER = "Armlet <armlet@invalid>"
"""Where nobody says who it is."""
_MODELS = "/usr/lib/armlet/models"
_DOLLAR = "ARMLET_DOLLAR"
_LARGEST_EPOCH = 2**31 - 1
"""What Debian's version order takes."""


def package_name(model: str) -> str:
    """In what Debian allows: no underscores."""
    return f"armlet-model-{model.replace('_', '-')}"


def package_version(manifest: PayloadManifest) -> str:
    """The generation, which only ever grows, orders packages before the author's version: so a rollback is an update.

    Raises:
        ArmletError: (INPUT) the generation is larger than packages can have.
    """
    if manifest.generation > _LARGEST_EPOCH:
        what = f"generation {manifest.generation} is larger than a package's epoch can be"
        raise ArmletError(what, hint=f"count generations up to {_LARGEST_EPOCH}", kind=Kind.INPUT)
    return f"{manifest.generation}:{manifest.version}"


def place(manifest: PayloadManifest) -> str:
    """The folder on the device that a package puts the payload into."""
    return f"{_MODELS}/{manifest.model}/{manifest.version}"


def write_package(
    target: Path,
    kind: PackageFormat,
    *,
    manifest: PayloadManifest,
    payload: Path,
    licence: Path | None = None,
    maintainer: str = MAINTAINER,
    runner: Runner | None = None,
    emit: Sink = silent,
) -> None:
    """Packs a payload's folder; equal content gives equal bytes.

    Args:
        licence: a file with the licence's text, which goes into the package's ``copyright``.

    Raises:
        ArmletError: (INPUT) the licence cannot be read, or the generation is too large; (BUILD) nfpm failed.
    """
    with scratch("package") as folder:
        copyright_file = folder / "copyright"
        copyright_file.write_text(_copyright(manifest, licence), encoding="utf-8")
        document = f"/usr/share/doc/{package_name(manifest.model)}/copyright"
        files = {document: copyright_file}
        for path in sorted(payload.rglob("*")):
            if path.is_file():
                files[f"{place(manifest)}/{path.relative_to(payload).as_posix()}"] = path
        config, made = folder / "nfpm.json", folder / f"made.{kind}"
        # JSON is YAML.
        config.write_text(json.dumps(_config(manifest, files, maintainer)), encoding="utf-8")
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


def _config(manifest: PayloadManifest, files: Mapping[str, Path], maintainer: str) -> dict[str, object]:
    epoch, _, version = package_version(manifest).partition(":")
    attributes = {"mode": 0o644, "owner": "root", "group": "root", "mtime": manifest.created}
    return {
        "name": package_name(manifest.model),
        "arch": "all",
        "epoch": epoch,
        "version": version,
        "version_schema": "none",
        "maintainer": _unexpanded(maintainer),
        "description": _unexpanded(manifest.description),
        "license": _unexpanded(manifest.licence),
        "section": "misc",
        "priority": "optional",
        "mtime": manifest.created,
        "disable_globbing": True,
        "contents": [{"src": str(path), "dst": place, "file_info": attributes} for place, path in files.items()],
    }


def _copyright(manifest: PayloadManifest, licence: Path | None) -> str:
    head = (
        f"Model: {manifest.model} {manifest.version}, generation {manifest.generation}\n"
        f"Made from: sha256 {manifest.source_model}\n"
        f"Licence: {manifest.licence}\n"
    )
    if licence is None:
        return head
    try:
        return f"{head}\n{licence.read_text(encoding='utf-8')}"
    except (OSError, ValueError) as error:
        what = f"the licence's text cannot be read: {error}"
        raise ArmletError(what, hint="give a text file in UTF-8", kind=Kind.INPUT, where=str(licence)) from error


def _unexpanded(text: str) -> str:
    """What nfpm, which puts variables of its environment into texts, makes ``text`` of."""
    return text.replace("$", f"${{{_DOLLAR}}}")


def _nfpm() -> Path:
    return Path(sys.executable).with_name("nfpm")
