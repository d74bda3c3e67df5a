"""The message that wishes for a payload, made of its file and checked with the device's own reader."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from armlet_runtime import payload as device
from armlet_runtime.payload_folder import regular
from armlet_runtime.update.desired import DEFAULT_BLOCK, SCHEMA, WishError, checked_url, parse
from armlet_runtime.update.interface import Desired

from armlet import digest
from armlet.errors import ArmletError, Kind
from armlet.payload.verify import verify

__all__ = ["DEFAULT_BLOCK", "Archive", "archive", "message", "wish"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """A payload's file; ``size`` in bytes."""

    path: Path
    size: int
    sha256: str


def archive(path: Path) -> Archive:
    """Raises:
    ArmletError: (INPUT) it cannot be read, or is a folder: what is sent is the archive.
    """
    try:
        with regular(path) as stream:
            sha256 = digest.of_stream(stream)
            size = stream.tell()
    except OSError as error:
        hint = "name a *.payload file, as inv model.pack makes it"
        what = f"it cannot be read: {error.strerror}"
        raise ArmletError(what, hint=hint, kind=Kind.INPUT, where=str(path)) from error
    return Archive(path=path, size=size, sha256=sha256)


def wish(
    path: Path, *, key: Path | None, unsigned: bool = False, url: str = "", block_size: int = 0, limit: int = 0
) -> Desired:
    """A payload as what a device is to serve.

    Args:
        path: its archive.
        key: the trusted keys, as the devices have them.
        url: where devices get it from; empty: by blocks of ``block_size`` bytes.
        limit: bytes of its files; 0: what a device takes without being told otherwise.

    Raises:
        ArmletError: (GATE) it must not be installed; (INPUT) it is no archive, or no device would take such a wish.
    """
    found = archive(path)
    verified = verify(path, key=key, unsigned=unsigned, limit=limit or device.LIMIT_BYTES)
    if url:
        try:
            checked_url(url)
        except ValueError as error:
            hint = "https://host/file, where the devices reach it; blanks and the like as %20"
            raise ArmletError(f"--url: no device takes that address: {error}", hint=hint, kind=Kind.INPUT) from error
    wanted = Desired(
        model=verified.model,
        version=verified.version,
        generation=verified.generation,
        payload=verified.sha256,
        archive_size=found.size,
        archive_sha256=found.sha256,
        url=url,
        block_size=0 if url else block_size,
    )
    try:
        if parse(message(wanted), wanted.model) != wanted:
            raise RuntimeError("a device would understand something else")
    except WishError as error:
        hint = "--block-size in bytes (default 32768); version and generation as inv model.pack sets them"
        raise ArmletError(f"no device takes such a wish: {error.reason}", hint=hint, kind=Kind.INPUT) from error
    return wanted


def message(wanted: Desired) -> bytes:
    """What is published, retained."""
    way = {"url": wanted.url} if wanted.url else {"blocks": {"size": wanted.block_size}}
    fields = {
        "schema": SCHEMA,
        "model": wanted.model,
        "version": wanted.version,
        "generation": wanted.generation,
        "payload": wanted.payload,
        "archive": {"size": wanted.archive_size, "sha256": wanted.archive_sha256},
        **way,
    }
    return json.dumps(fields).encode()
