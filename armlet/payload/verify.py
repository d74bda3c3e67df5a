"""Checking a payload on the host, with the device's own code."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from armlet_runtime import payload as device
from armlet_runtime.payload_folder import regular
from armlet_runtime.signature import trusted_keys
from pydantic import ValidationError

from armlet.errors import ArmletError, Kind
from armlet.payload.archive import fresh_folder
from armlet.payload.refused import told
from armlet.spec.payload import PayloadManifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    model: str
    version: str
    generation: int
    sha256: str
    """Of ``payload.json``."""
    key: str | None
    """Name of the key that signed it; None: nobody looked."""
    fingerprint: str | None
    files: int
    size: int
    """Bytes of all files."""


def verify(
    path: Path, *, key: Path | None, unsigned: bool = False, limit: int = device.LIMIT_BYTES, to: Path | None = None
) -> Verified:
    """Checks a payload's archive or folder, and unpacks an archive where ``to`` names a new folder.

    Raises:
        ArmletError: (GATE) it must not be installed; (INPUT) it is not there, or what is asked for makes no sense;
            (HOST) it cannot be unpacked.
    """
    if (key is None) != unsigned:
        hint = "--key release.pub, or a folder of such files; --unsigned leaves that check out"
        raise _input("it must be said whose signature counts, or that none does", hint)
    if to is not None and (os.path.lexists(to) or path.is_dir()):
        raise _input(f"{to} is there already, or {path} is unpacked", "name a new folder for a *.payload file")
    keys = None
    if key is not None:
        with told(""):
            keys = trusted_keys(key)
    with told(path):
        try:
            if to is None:
                found = device.verify(path, keys, limit=limit)
                manifest = _manifest(found, path)
            else:
                regular(path).close()
                with fresh_folder(to) as into:
                    found = device.verify(path, keys, limit=limit, into=into)
                    # Whatever refuses it must do so before the folder takes its place.
                    manifest = _manifest(found, path)
        except OSError as error:
            raise _input(f"{path} cannot be read: {error.strerror}", "check the path and its permissions") from error
    return Verified(
        model=manifest.model,
        version=manifest.version,
        generation=manifest.generation,
        sha256=found.sha256,
        key=found.key.name if found.key else None,
        fingerprint=found.key.fingerprint if found.key else None,
        files=len(found.files),
        size=sum(entry.size for entry in found.files),
    )


def manifest_of(folder: Path) -> PayloadManifest:
    """What an unpacked payload says of itself; its files are checked, its signature is not.

    Raises:
        ArmletError: as ``verify``.
    """
    if not folder.is_dir():
        raise _input(f"{folder} is no folder", "unpack an archive first: inv model.verify --to <folder>")
    with told(folder):
        try:
            return _manifest(device.verify(folder, None, limit=device.LIMIT_BYTES), folder)
        except OSError as error:
            raise _input(f"{folder} cannot be read: {error.strerror}", "check its permissions") from error


def _manifest(found: device.Payload, path: Path) -> PayloadManifest:
    try:
        return PayloadManifest.model_validate_json(json.dumps(found.manifest), extra="ignore")
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        hint = "pack the model again: inv model.pack"
        raise ArmletError(f"payload.json: {key}: {first['msg']}", hint=hint, kind=Kind.GATE, where=str(path)) from error


def _input(what: str, hint: str) -> ArmletError:
    return ArmletError(what, hint=hint, kind=Kind.INPUT)
