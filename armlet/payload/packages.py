"""Payloads as packages for a rootfs."""

from __future__ import annotations

from pathlib import Path

from armlet_runtime.payload_folder import regular

from armlet import nfpm
from armlet.debian_texts import changelog
from armlet.errors import ArmletError, Kind
from armlet.events import Sink, silent
from armlet.nfpm import MAINTAINER, Entry, Package, PackageFormat, demand_line
from armlet.package_versions import exactly
from armlet.process import Runner
from armlet.scratch import scratch
from armlet.spec.payload import PayloadManifest

_MODELS = "/usr/lib/armlet/models"
_LARGEST_EPOCH = 2**31 - 1
"""What Debian's version order takes."""


def package_name(model: str, version: str = "") -> str:
    """In what Debian allows: no underscores, capitals or tildes.

    Args:
        version: of the payload, where packages of several versions are to be there at once.
    """
    name = f"armlet-model-{model.replace('_', '-')}"
    return f"{name}-{version.replace('~', '-').lower()}" if version else name


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


def demand_possible(manifest: PayloadManifest, licence: Path | None, maintainer: str) -> None:
    """Raises:
    ArmletError: (INPUT) as ``write_package``, before anything is written.
    """
    package_version(manifest)
    _copyright(manifest, licence)
    demand_line("maintainer", maintainer)


def write_package(
    target: Path,
    kind: PackageFormat,
    *,
    manifest: PayloadManifest,
    payload: Path,
    licence: Path | None = None,
    maintainer: str = MAINTAINER,
    beside: bool = False,
    runner: Runner | None = None,
    emit: Sink = silent,
) -> None:
    """Packs a payload's folder; equal content gives equal bytes.

    Args:
        beside: the version is part of the package's name, so that several can be installed.
        licence: a file with the licence's text, which goes into the package's ``copyright``.

    Raises:
        ArmletError: (INPUT) the licence cannot be read, or the generation is too large; (BUILD) nfpm failed.
    """
    name = package_name(manifest.model, manifest.version if beside else "")
    epoch, _, version = package_version(manifest).partition(":")
    with scratch("package") as folder:
        copyright_file, changes = folder / "copyright", folder / "changelog.gz"
        copyright_file.write_text(_copyright(manifest, licence), encoding="utf-8")
        lines = [f"Version {manifest.version}, generation {manifest.generation}."]
        changes.write_bytes(changelog(name, package_version(manifest), maintainer, lines))
        entries = {
            f"/usr/share/doc/{name}/copyright": Entry(source=copyright_file),
            f"/usr/share/doc/{name}/changelog.gz": Entry(source=changes),
        }
        for path in sorted(payload.rglob("*")):
            if path.is_file():
                entries[f"{place(manifest)}/{path.relative_to(payload).as_posix()}"] = Entry(source=path)
        # apk has no epochs, and fewer forms of versions: the generation alone is one.
        alone = kind == "apk"
        package = Package(
            name=name,
            version=epoch if alone else version,
            release={"apk": "0", "rpm": "1"}.get(kind, ""),
            epoch="" if alone else epoch,
            description=manifest.description,
            licence=manifest.licence,
            maintainer=maintainer,
            created=manifest.created,
            entries=entries,
            conflicts=_conflicts(kind, manifest, beside),
        )
        nfpm.write_package(target, kind, package, runner=runner, emit=emit)


def _conflicts(kind: PackageFormat, manifest: PayloadManifest, beside: bool) -> tuple[str, ...]:
    """The package that has the same version of the model under its other kind of name."""
    if kind == "apk":
        return ()
    if not beside:
        return (package_name(manifest.model, manifest.version),)
    end = "-1" if kind == "rpm" else ""
    return (exactly(kind, package_name(manifest.model), f"{package_version(manifest)}{end}"),)


def _copyright(manifest: PayloadManifest, licence: Path | None) -> str:
    head = (
        f"Model: {manifest.model} {manifest.version}, generation {manifest.generation}\n"
        f"Made from: sha256 {manifest.source_model}\n"
        f"Licence: {manifest.licence}\n"
    )
    if licence is None:
        return head
    try:
        with regular(licence) as stream:
            return f"{head}\n{stream.read().decode('utf-8')}"
    except (OSError, ValueError) as error:
        what = f"the licence's text cannot be read: {error}"
        raise ArmletError(what, hint="give a text file in UTF-8", kind=Kind.INPUT, where=str(licence)) from error
