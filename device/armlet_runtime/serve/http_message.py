"""HTTP/1.1 as text: the head of a request in, a response out. Nothing here does I/O."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Mapping, Sequence, Tuple, Union
from urllib.parse import unquote_to_bytes

Buffer = Union[bytes, bytearray, memoryview]
Headers = Sequence[Tuple[str, str]]

JSON_TYPE = "application/json"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

_PHRASES = {status.value: status.phrase for status in HTTPStatus}
_ONLY_ONE = ("content-length", "host", "inference-header-content-length", "transfer-encoding")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VERSION = re.compile(r"HTTP/(\d)\.(\d)")
_LENGTH = re.compile(r"[0-9]{1,19}")
_BAD_IN_VALUE = re.compile(r"[\0-\x08\x0a-\x1f\x7f]")
_TARGET = re.compile(r"[!-~]+")


class HttpError(Exception):
    """An answer other than success; ``message`` becomes ``{"error": message}``."""

    def __init__(self, status: int, message: str, headers: Headers = ()) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = tuple(headers)


@dataclass(frozen=True)
class Head:
    """Request line and header fields."""

    method: str
    path: tuple[str, ...]
    """Decoded segments; a name may hold a slash that was written %2F."""
    query: str
    headers: Mapping[str, str]
    """Lower-case names; fields of one name are joined by ", "."""
    length: int
    """Bytes of the body."""
    keep_alive: bool
    expects_continue: bool


@dataclass
class Response:
    """``parts`` are sent one after the other; Content-Length is theirs together."""

    status: int
    parts: Sequence[Buffer] = ()
    content_type: str = JSON_TYPE
    headers: Headers = field(default_factory=tuple)


def parse_head(raw: bytes, most_fields: int) -> Head:
    """Of the bytes before the empty line. Raises :class:`HttpError` for whatever is not plain HTTP/1.x.

    What two programs could read in two ways is refused: bare line ends, folded lines, spaces before the
    colon, repeated or signed lengths, a length beside a transfer coding.
    """
    lines = raw.decode("latin-1").split("\r\n")
    method, target, version = _request_line(lines[0])
    if len(lines) - 1 > most_fields:
        raise HttpError(431, f"more than {most_fields} header fields")
    headers = _fields(lines[1:])
    if version == (1, 1) and "host" not in headers:
        raise HttpError(400, "HTTP/1.1 wants a Host field")
    path, query = _split(target)
    tokens = {word.strip().lower() for word in headers.get("connection", "").split(",")}
    expected = headers.get("expect", "").lower()
    if expected not in ("", "100-continue"):
        raise HttpError(417, f'cannot do what is expected: "{expected}"')
    return Head(
        method=method,
        path=path,
        query=query,
        headers=headers,
        length=_length(headers),
        keep_alive="close" not in tokens and (version == (1, 1) or "keep-alive" in tokens),
        expects_continue=bool(expected) and version == (1, 1),
    )


def render(response: Response, *, with_body: bool, keep_alive: bool) -> list[memoryview]:
    """What goes onto the wire, no buffer copied."""
    parts = [memoryview(part).cast("B") for part in response.parts if len(part)]
    lines = [
        f"HTTP/1.1 {response.status} {_PHRASES.get(response.status, 'Refused')}",
        "Server: armlet",
        time.strftime("Date: %a, %d %b %Y %H:%M:%S GMT", time.gmtime()),
        f"Content-Type: {response.content_type}",
        f"Content-Length: {sum(part.nbytes for part in parts)}",
        *(f"{name}: {value}" for name, value in response.headers),
        f"Connection: {'keep-alive' if keep_alive else 'close'}",
    ]
    head = memoryview("\r\n".join([*lines, "", ""]).encode("latin-1", "replace"))
    return [head, *parts] if with_body else [head]


def _request_line(line: str) -> tuple[str, str, tuple[int, int]]:
    words = line.split(" ")
    if len(words) != 3 or not _TOKEN.fullmatch(words[0]) or not _TARGET.fullmatch(words[1]):
        raise HttpError(400, "the first line is no HTTP request")
    version = _VERSION.fullmatch(words[2])
    if version is None:
        raise HttpError(400, "the first line names no HTTP version")
    if version[1] != "1":
        raise HttpError(505, "only HTTP/1.0 and HTTP/1.1 are spoken here")
    # A later minor version is one that understands answers in 1.1.
    return words[0], words[1], (1, min(int(version[2]), 1))


def _fields(lines: Sequence[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not _TOKEN.fullmatch(name) or _BAD_IN_VALUE.search(value):
            raise HttpError(400, "a header field is malformed")
        name, value = name.lower(), value.strip(" \t")
        if name in headers and name in _ONLY_ONE:
            raise HttpError(400, f"more than one {name} field")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _split(target: str) -> tuple[tuple[str, ...], str]:
    if not target.startswith("/"):
        # A proxy's form has the whole address.
        scheme, separator, rest = target.partition("://")
        if scheme.lower() not in ("http", "https") or not separator:
            raise HttpError(400, "the target is no path")
        target = f"/{rest.partition('/')[2]}"
    path, _, query = target.partition("?")
    segments = path[1:].split("/")
    if len(segments) > 1 and segments[-1] == "":
        segments.pop()
    try:
        return tuple(unquote_to_bytes(segment).decode("utf-8") for segment in segments), query
    except UnicodeDecodeError:
        raise HttpError(400, "the path is not UTF-8") from None


def _length(headers: Mapping[str, str]) -> int:
    text = headers.get("content-length")
    if "transfer-encoding" in headers:
        if text is not None:
            raise HttpError(400, "both Content-Length and Transfer-Encoding")
        raise HttpError(411, "send the body with a Content-Length: it is refused by its size before it is read")
    if text is None:
        return 0
    if not _LENGTH.fullmatch(text):
        raise HttpError(400, "Content-Length is no number")
    return int(text)
