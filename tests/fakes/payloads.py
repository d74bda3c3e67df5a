"""Payloads made by hand, right ones and hostile ones: with Python's ``tarfile``, not with what is tested."""

from __future__ import annotations

import calendar
import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

CREATED = "2026-01-31T12:00:00Z"
MTIME = calendar.timegm((2026, 1, 31, 12, 0, 0))
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER_KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
FILES: Mapping[str, bytes] = {
    "model.ort": bytes(range(256)) * 5,
    "golden/0/input-0.bin": b"\x01\x02\x03\x04" * 128,
    "golden/0/output-0.bin": b"",
}
FIELDS: Mapping[str, Any] = {
    "schema": 1,
    "created": CREATED,
    "model": "dense",
    "version": "1.0",
    "generation": 1,
    "description": "Two numbers of four",
    "licence": "MIT",
    "format": "ort",
    "golden": [],
}

Member = tuple[tarfile.TarInfo, bytes]


def public_pem(key: Ed25519PrivateKey = KEY) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def manifest(content: Mapping[str, bytes] = FILES, **other: Any) -> bytes:
    """What the reader of a payload asks for, and no more; ``other`` replaces or adds keys."""
    listed = [
        {"path": path, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()} for path, data in content.items()
    ]
    return json.dumps({**FIELDS, "files": listed, **other}, sort_keys=True).encode()


def member(name: str, data: bytes, **fields: Any) -> Member:
    """A member as a payload has it; ``fields`` of its TarInfo make it another."""
    info = tarfile.TarInfo(name)
    info.size, info.mtime = len(data), MTIME
    for field, value in fields.items():
        setattr(info, field, value)
    return info, data


def members(
    files: Mapping[str, bytes] = FILES, *, text: bytes | None = None, key: Ed25519PrivateKey | None = KEY
) -> list[Member]:
    """Of a right payload; ``text`` is its ``payload.json``, ``key`` None leaves out the signature."""
    text = manifest(files) if text is None else text
    signed = [] if key is None else [member("payload.json.sig", key.sign(text))]
    return [member("payload.json", text), *signed, *(member(name, data) for name, data in files.items())]


def packed(content: Iterable[Member], *, form: Any = tarfile.USTAR_FORMAT, end: bytes = bytes(1024)) -> bytes:
    """The archive's bytes."""
    out = io.BytesIO()
    for info, data in content:
        out.write(info.tobuf(form, "utf-8", "surrogateescape"))
        out.write(data + bytes(-len(data) % 512))
    return out.getvalue() + end


def archive(files: Mapping[str, bytes] = FILES, **how: Any) -> bytes:
    """A right archive's bytes; ``how`` goes to ``members``."""
    return packed(members(files, **how))


def unpacked(folder: Path, content: Iterable[Member]) -> Path:
    """The payload's folder."""
    for info, data in content:
        path = folder / info.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder
