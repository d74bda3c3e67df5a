"""What the reader of a payload takes from ``payload.json``: which files there are, and that their names are harmless.

Everything else in it is for others; a newer Armlet may have written fields that this one does not know.
"""

from __future__ import annotations

import calendar
import json
import re
import time
from typing import Any, Iterable, NamedTuple

from armlet_runtime import ustar
from armlet_runtime.refusal import FORM, LIMIT, UNSAFE, PayloadError

SCHEMA = 1
MANIFEST = "payload.json"
SIGNATURE = "payload.json.sig"
LARGEST_MANIFEST = 1 << 20
"""Bytes."""
_PART = r"[A-Za-z0-9_+=@~-][A-Za-z0-9._+=@~-]*"
PATH = rf"{_PART}(/{_PART})*"
"""Of a file below the payload's folder; a pattern for all of it."""
_SHA256 = re.compile(r"[0-9a-f]{64}")
_CREATED = "%Y-%m-%dT%H:%M:%SZ"
_MAKE = "make it with: inv model.pack"


class Entry(NamedTuple):
    """A file: its place below the payload's folder, and its bytes."""

    path: str
    size: int
    sha256: str


class Manifest(NamedTuple):
    fields: dict[str, Any]
    files: tuple[Entry, ...]
    created: int
    """Seconds since 1970, UTC."""


def read_manifest(data: bytes, *, limit: int) -> Manifest:
    """Parses ``payload.json``.

    Raises:
        PayloadError: it is no manifest of this schema (FORM), lists names that are not harmless (UNSAFE), or files of
            more than ``limit`` bytes together (LIMIT).
    """
    fields = _parsed(data)
    if not isinstance(fields, dict):
        raise _form("is no object")
    schema = fields.get("schema")
    if isinstance(schema, bool) or schema != SCHEMA:
        hint = "use an Armlet that knows this schema, or pack the model with this one"
        raise PayloadError(FORM, f"the schema of its {MANIFEST} is not {SCHEMA}", hint)
    listed = fields.get("files")
    if not isinstance(listed, list) or not listed:
        raise _form("lists no files")
    files = tuple(map(_entry, listed))
    demand_harmless(entry.path for entry in files)
    total = sum(entry.size for entry in files)
    if total > min(limit, ustar.LARGEST):
        raise PayloadError(
            LIMIT, f"its files have {total} bytes, more than {limit}", "raise the limit, if that is meant"
        )
    return Manifest(fields, files, created_at(fields.get("created")))


def created_at(text: Any) -> int:
    """``2026-01-31T12:00:00Z`` in seconds since 1970.

    Raises:
        PayloadError: (FORM) it is no such time, or before 1970 or after 2242.
    """
    try:
        seconds = calendar.timegm(time.strptime(text, _CREATED))
    except (TypeError, ValueError):
        seconds = -1
    # strptime takes numbers without their zeros too.
    if not 0 <= seconds <= ustar.LARGEST or created_text(seconds) != text:
        raise _form("does not say when it was made, as 2026-01-31T12:00:00Z")
    return seconds


def created_text(seconds: int) -> str:
    return time.strftime(_CREATED, time.gmtime(seconds))


def demand_harmless(paths: Iterable[str]) -> None:
    """Raises:
    PayloadError: (UNSAFE) a path could leave its folder, is too long, or stands in another one's way, also where
        capitals do not count.
    """
    taken = {name: (name, True) for name in (MANIFEST, SIGNATURE)}
    for path in paths:
        if not re.fullmatch(PATH, path) or len(path) > ustar.LONGEST_NAME:
            raise _unsafe(f"{path[: ustar.LONGEST_NAME]!a} is no name that a payload's file may have")
        for end in (at for at, letter in enumerate(f"{path}/") if letter == "/"):
            now = (path[:end], end == len(path))
            was = taken.setdefault(now[0].lower(), now)
            # A folder may hold many files; a file is there once.
            if was is not now and (was != now or now[1]):
                raise _unsafe(f"{path} stands in the way of {was[0]}")


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=_each_once, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise _form("is no JSON") from error


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number in JSON")


def _entry(value: Any) -> Entry:
    path, size, sha256 = (value.get(name) if isinstance(value, dict) else None for name in Entry._fields)
    # A bool is an int in Python.
    if (
        isinstance(path, str)
        and type(size) is int
        and size >= 0
        and isinstance(sha256, str)
        and _SHA256.fullmatch(sha256)
    ):
        return Entry(path, size, sha256)
    raise _form("lists a file without path, size or sha256")


def _form(what: str) -> PayloadError:
    return PayloadError(FORM, f"its {MANIFEST} {what}", _MAKE)


def _unsafe(what: str) -> PayloadError:
    return PayloadError(UNSAFE, f"its {MANIFEST} lists what is not safe: {what}", _MAKE)
