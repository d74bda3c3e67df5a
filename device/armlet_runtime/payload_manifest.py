"""What the reader of a payload takes from ``payload.json``: which files there are, and that what it says is harmless.

Host and device refuse the same: names become paths and text goes to terminals, whoever signed them. Fields that are not
named here are for others; a newer Armlet may have written some that this one does not know.
"""

from __future__ import annotations

import calendar
import json
import math
import re
import time
import unicodedata
from typing import Any, Iterable, Mapping, NamedTuple

from armlet_runtime import stamps, ustar
from armlet_runtime.refusal import FORM, LIMIT, UNSAFE, PayloadError

SCHEMA = 1
MANIFEST = "payload.json"
SIGNATURE = "payload.json.sig"
LARGEST_MANIFEST = 1 << 20
"""Bytes."""
_PART = r"[A-Za-z0-9_+=@~-][A-Za-z0-9._+=@~-]*"
PATH = rf"{_PART}(/{_PART})*"
"""Of a file below the payload's folder; a pattern for all of it."""
NAME = r"[a-z0-9][a-z0-9._-]{0,63}"
"""Of a model: all of it."""
VERSION = r"[0-9][A-Za-z0-9.+~]{0,63}"
LARGEST_GENERATION = 2**53
MOST_THREADS = 1024
LONGEST_LINE = 200
"""Characters."""
FORMATS = ("onnx", "ort")
ELEMENT_SIZES = {
    **dict.fromkeys(("bool", "int8", "uint8"), 1),
    **dict.fromkeys(("float16", "bfloat16", "int16", "uint16"), 2),
    **dict.fromkeys(("float", "int32", "uint32"), 4),
    **dict.fromkeys(("double", "int64", "uint64"), 8),
}
"""Bytes. An element of the type ``string`` has a length of four bytes, and then as many."""
_LENGTH = 4
_LARGEST_NUMBER = 1e308
# Controls, halves of surrogate pairs, and what ends a line elsewhere.
_NOT_IN_A_LINE = ("Cc", "Cs", "Zl", "Zp")
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
        PayloadError: it is no manifest of this schema, or contradicts itself (FORM), has names or text that are not
            harmless (UNSAFE), or lists files of more than ``limit`` bytes together (LIMIT).
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
    _demand_sound(fields, files)
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
    if not 0 <= seconds <= ustar.LARGEST or stamps.utc(seconds) != text:
        raise _form("does not say when it was made, as 2026-01-31T12:00:00Z")
    return seconds


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


def is_line(text: Any) -> bool:
    """Whether it is one line of text, without anything that a terminal or a package's control file would obey."""
    return (
        isinstance(text, str)
        and 0 < len(text) <= LONGEST_LINE
        and not any(unicodedata.category(letter) in _NOT_IN_A_LINE for letter in text)
    )


def _demand_sound(fields: Mapping[str, Any], files: Iterable[Entry]) -> None:
    """Raises:
    PayloadError: a field that a device goes by is missing, not safe, or not true of the files.
    """
    for name, pattern in (("model", NAME), ("version", VERSION)):
        text = fields.get(name)
        if not (isinstance(text, str) and re.fullmatch(pattern, text)):
            raise _unsafe(f"its {name} is no such name")
    if not _is_integer(fields.get("generation"), 1, LARGEST_GENERATION):
        raise _form(f"has a generation that is no integer from 1 to {LARGEST_GENERATION}")
    if fields.get("threads") is not None and not _is_integer(fields["threads"], 1, MOST_THREADS):
        raise _form(f"asks for threads that are no number from 1 to {MOST_THREADS}")
    for name in ("description", "licence"):
        if not is_line(fields.get(name)):
            raise _unsafe(f"its {name} is no line of text")
    sizes = {entry.path: entry.size for entry in files}
    form = fields.get("format")
    if form not in FORMATS or next(iter(sizes)) != f"model.{form}":
        raise _form("does not list its model first: model.onnx or model.ort, as its format says")
    golden = fields.get("golden")
    if not isinstance(golden, list):
        raise _form("has no list of golden vectors")
    for vector in golden:
        _demand_vector(vector, sizes)


def _demand_vector(vector: Any, sizes: Mapping[str, int]) -> None:
    if not isinstance(vector, dict) or not is_line(vector.get("name")):
        raise _form("has a golden vector without a name")
    if not all(_is_tolerance(vector.get(name)) for name in ("atol", "rtol")):
        raise _form("has a golden vector whose atol or rtol is no number, or negative")
    for role in ("inputs", "outputs"):
        tensors = vector.get(role)
        if not isinstance(tensors, list) or not all(_is_stored(tensor, sizes) for tensor in tensors):
            raise _form(f"has a golden vector whose {role} are not what its files hold")


def _is_stored(tensor: Any, sizes: Mapping[str, int]) -> bool:
    """Whether the file is one that is listed, and as large as its elements are together."""
    name, dtype, shape, file = (
        tensor.get(key) if isinstance(tensor, dict) else None for key in ("name", "dtype", "shape", "file")
    )
    if not (isinstance(name, str) and isinstance(dtype, str) and isinstance(file, str) and file in sizes):
        return False
    if not isinstance(shape, list) or not all(_is_integer(size, 0, ustar.LARGEST) for size in shape):
        return False
    count = math.prod(shape)
    if dtype == "string":
        return sizes[file] >= _LENGTH * count
    return dtype in ELEMENT_SIZES and sizes[file] == ELEMENT_SIZES[dtype] * count


def _is_integer(value: Any, least: int, most: int) -> bool:
    # A bool is an int in Python.
    return type(value) is int and least <= value <= most


def _is_tolerance(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= _LARGEST_NUMBER


def _parsed(data: bytes) -> Any:
    try:
        return strict_json(data)
    except (ValueError, RecursionError) as error:
        raise _form("is no JSON") from error


def strict_json(data: bytes) -> Any:
    """JSON whose text is text, whose keys are there once, and whose numbers are numbers.

    Raises:
        ValueError, RecursionError: it is something else.
    """
    found = json.loads(data.decode("utf-8"), object_pairs_hook=_each_once, parse_constant=_no_number)
    # Escapes can write halves of surrogate pairs, which are no text.
    json.dumps(found, ensure_ascii=False).encode("utf-8")
    return found


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number in JSON")


def _entry(value: Any) -> Entry:
    path, size, sha256 = (value.get(name) if isinstance(value, dict) else None for name in Entry._fields)
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
    return PayloadError(UNSAFE, f"its {MANIFEST} has what is not safe: {what}", _MAKE)
