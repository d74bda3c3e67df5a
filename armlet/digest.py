"""Canonical hashing: the same meaning gives the same id, on every machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

_BLOCK = 1 << 20


def canonical_json(value: Any) -> bytes:
    """Serialises with sorted keys and no spaces, so that equal values give equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def of_value(value: Any) -> str:
    """sha256 (hex) of a JSON-like value."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def of_bytes(data: bytes) -> str:
    """sha256 (hex) of bytes."""
    return hashlib.sha256(data).hexdigest()


def of_file(path: Path) -> str:
    """sha256 (hex) of a file's content."""
    with path.open("rb") as stream:
        return of_stream(stream)


def of_stream(stream: BinaryIO) -> str:
    """sha256 (hex) of what is left of a stream."""
    hasher = hashlib.sha256()
    while block := stream.read(_BLOCK):
        hasher.update(block)
    return hasher.hexdigest()


def of_files(paths: Iterable[Path], *, root: Path) -> str:
    """sha256 (hex) over names (relative to ``root``) and contents, whatever the order given."""
    return of_value(sorted((path.relative_to(root).as_posix(), of_file(path)) for path in paths))
