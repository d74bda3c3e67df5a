"""Whether a file is what was verified, asked by a worker."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

_PIECE = 64 << 10


def sha256_of(path: Path) -> str:
    """In hex. Raises OSError."""
    hasher = _maker()()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            hasher.update(piece)
    return str(hasher.hexdigest())


def _maker() -> Any:
    # hashlib brings OpenSSL, some 3 MB of each worker, for a hash that CPython has itself: since 3.12 in _sha2, before
    # in _sha256, of which neither is promised.
    for name in ("_sha2", "_sha256"):
        try:
            return importlib.import_module(name).sha256
        except (ImportError, AttributeError):
            continue
    return importlib.import_module("hashlib").sha256
