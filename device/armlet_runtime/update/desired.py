"""Reads the message that says what a device is to serve. Whoever may write to the topic may have sent anything."""

from __future__ import annotations

import re
from typing import Any, Mapping, NoReturn
from urllib.parse import SplitResult, urlsplit

from armlet_runtime import ustar
from armlet_runtime.payload_manifest import LARGEST_GENERATION, NAME, VERSION, strict_json
from armlet_runtime.update.interface import Category, Desired

SCHEMA = 1
LARGEST_MESSAGE = 16 << 10
"""Bytes."""
DEEPEST = 16
"""Objects and lists within each other: the parser of JSON calls itself for each."""
LONGEST_URL = 4096
"""Characters: a signed address of an object store has many."""
SMALLEST_BLOCK = 4 << 10
LARGEST_BLOCK = 256 << 10
"""Bytes: MQTT keeps the whole of a message in memory, here and at the broker."""
DEFAULT_BLOCK = 32 << 10

_SHA256 = r"[0-9a-f]{64}"
# What may stand in an address by RFC 3986; anything else has to be written as %XX.
_URL = re.compile(r"[A-Za-z0-9:/?\[\]@!$&'()*+,;=._~%-]+")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,252})|[0-9A-Fa-f:.]{2,45}")
# One without an end reaches to the end: looked for again from each quote in it, it would take minutes.
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"?', re.DOTALL)


class WishError(Exception):
    """The message is no wish that could be fulfilled."""

    def __init__(self, category: Category, reason: str) -> None:
        super().__init__(reason)
        self.category: Category = category
        self.reason = reason


def parse(message: bytes, model: str, *, largest: int = ustar.LARGEST) -> Desired | None:
    """What a message wishes; None: nothing (it is empty: a retained message is taken back like that).

    Args:
        message: as it came.
        model: the one whose topic it came on.
        largest: bytes that an archive may have.

    Raises:
        WishError: it is another thing (manifest), or the archive is larger than it may be (space).
    """
    if not message:
        return None
    fields = _object(message)
    if type(fields.get("schema")) is not int or fields["schema"] != SCHEMA:
        _refuse(f"its schema is not {SCHEMA}: a newer Armlet may be needed")
    named = fields.get("model", model)
    if named != model:
        _refuse("it is for another model than the topic it came on")
    if not re.fullmatch(NAME, model):
        _refuse("its model is no such name")
    version = _text(fields, "version", VERSION)
    generation = _integer(fields, "generation", 1, LARGEST_GENERATION)
    payload = _text(fields, "payload", _SHA256)
    archive = fields.get("archive")
    if not isinstance(archive, dict):
        _refuse("its archive is no object of size and sha256")
    sha256 = _text(archive, "sha256", _SHA256, of="archive.")
    size = _integer(archive, "size", 1, ustar.LARGEST, of="archive.")
    url, block_size = _way(fields)
    if size > largest:
        raise WishError("space", f"its archive has {size} bytes, and {largest} are the most that may come")
    return Desired(model, version, generation, payload, size, sha256, url, block_size)


def checked_url(url: Any) -> SplitResult:
    """An address that can be asked for as it is.

    Raises:
        ValueError: it is no https address, has a user or password in it, or what does not belong into an address. It
            is not told: what signs an address is secret.
    """
    if not isinstance(url, str) or len(url) > LONGEST_URL:
        raise ValueError(f"it is no text of at most {LONGEST_URL} characters")
    if not _URL.fullmatch(url):
        raise ValueError("it holds what does not belong into an address (blanks, controls, #, other letters)")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError("its host or port is none") from None
    if parts.scheme != "https":
        raise ValueError("it does not begin with https://")
    if "@" in parts.netloc:
        raise ValueError("it has a user or password in it; a client's certificate says who a device is")
    if host is None or not _HOST.fullmatch(host) or port == 0:
        raise ValueError("its host or port is none")
    return parts


def _object(message: bytes) -> Mapping[str, Any]:
    if len(message) > LARGEST_MESSAGE:
        _refuse(f"it has {len(message)} bytes, more than {LARGEST_MESSAGE}")
    if _depth(message) > DEEPEST:
        _refuse(f"it is nested deeper than {DEEPEST}")
    try:
        found = strict_json(message)
    except (ValueError, RecursionError):
        _refuse("it is no JSON")
    if not isinstance(found, dict):
        _refuse("it is no object")
    return found


def _depth(message: bytes) -> int:
    """Of JSON; of anything else, some number."""
    now = most = 0
    for byte in _STRING.sub(b"", message):
        if byte in b"[{":
            now += 1
            most = max(most, now)
        elif byte in b"]}":
            now -= 1
    return most


def _way(fields: Mapping[str, Any]) -> tuple[str, int]:
    """Address, or bytes of a block."""
    if ("url" in fields) == ("blocks" in fields):
        _refuse("it must have either a url or blocks, for the archive to come by")
    if "url" in fields:
        try:
            checked_url(fields["url"])
        except ValueError as error:
            _refuse(f"its url is refused: {error}")
        return str(fields["url"]), 0
    blocks = fields["blocks"]
    if not isinstance(blocks, dict):
        _refuse("its blocks is no object with a size")
    return "", _integer(blocks, "size", SMALLEST_BLOCK, LARGEST_BLOCK, of="blocks.")


def _text(fields: Mapping[str, Any], name: str, pattern: str, of: str = "") -> str:
    text = fields.get(name)
    if not (isinstance(text, str) and re.fullmatch(pattern, text)):
        _refuse(f"its {of}{name} is none")
    return text


def _integer(fields: Mapping[str, Any], name: str, least: int, most: int, of: str = "") -> int:
    value = fields.get(name)
    # A bool is an int in Python.
    if type(value) is not int or not least <= value <= most:
        _refuse(f"its {of}{name} is no integer from {least} to {most}")
    return value


def _refuse(reason: str) -> NoReturn:
    raise WishError("manifest", reason)
