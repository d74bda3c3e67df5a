"""Texts that Debian's tools ask of every package."""

from __future__ import annotations

import gzip
import time
from collections.abc import Mapping, Sequence

from armlet.reproducible import EPOCH


def changelog(name: str, version: str, maintainer: str, lines: Sequence[str]) -> bytes:
    """In Debian's form, compressed, the same bytes each time."""
    day = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(EPOCH))
    told = "\n".join(f"  * {line}" for line in lines)
    return compressed(f"{name} ({version}) stable; urgency=medium\n\n{told}\n\n -- {maintainer}  {day}\n")


def compressed(text: str) -> bytes:
    """By gzip, the same bytes each time."""
    return gzip.compress(text.encode(), compresslevel=9, mtime=0)


def overrides(name: str, reasons: Mapping[str, str]) -> str:
    """lintian's file of overrides: tag -> why it is right here."""
    return "".join(f"# {why}\n{name}: {tag}\n" for tag, why in reasons.items())
