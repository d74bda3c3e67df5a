"""Opening a place: a stream of bytes from an offset, over HTTP or from a file."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Any

import requests
import urllib3
from requests.adapters import HTTPAdapter

from armlet import __version__
from armlet.fetch.places import local_path

_BLOCK = 1 << 18
_OBJECT = re.compile(r"^(<.*?>|\w+Connection(Pool)?\(.*?\)): ")
"""What urllib3 puts before its reasons: the connection, as Python shows it."""
_NUMBER = re.compile(r"[0-9]{1,18}")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})


class Again(Enum):
    """When a place that failed is worth another try."""

    NEVER = "never"
    SOON = "soon"
    LATER = "after the other places"


class PlaceFailed(Exception):
    """One place did not give the file. Never leaves this package."""

    def __init__(self, reason: str, *, again: Again = Again.NEVER, pause: float = 0.0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.again = again
        self.pause = pause
        """Seconds that the place asked us to wait; 0 where it said nothing."""


class NotThere(PlaceFailed):
    """The place answers, and does not have the file: nothing worth telling while there are other places."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long and how often we wait; times in seconds."""

    connect: float = 10.0
    silence: float = 20.0
    """No byte for this long, or fewer than ``least`` of them: the place stalls."""
    least: int = 20_000
    """Bytes."""
    attempts: int = 4
    pause: float = 0.5
    """Before the second attempt; doubles each time."""
    longest_pause: float = 15.0


PATIENT = Patience()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a place sends: the file from ``start`` on."""

    start: int
    total: int | None
    """Bytes of the whole file, where the place says so."""
    blocks: Iterator[bytes]


class _SystemTrust(HTTPAdapter):
    """Trusts what the system trusts (and ``SSL_CERT_FILE`` names), beside the authorities that requests brings."""

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, ssl_context=ssl.create_default_context(), **options)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        return super().proxy_manager_for(proxy, ssl_context=ssl.create_default_context(), **options)


def new_session() -> requests.Session:
    """A session that honours the environment's proxies and ``REQUESTS_CA_BUNDLE``."""
    session = requests.Session()
    session.mount("https://", _SystemTrust())
    # The bytes as they are stored: a server that compresses on the way would change hash and length.
    session.headers.update({"User-Agent": f"armlet/{__version__}", "Accept-Encoding": "identity"})
    return session


@contextmanager
def opened(url: str, offset: int, session: requests.Session, patience: Patience) -> Iterator[Reply]:
    """Opens a place at ``offset``; the reply may start at 0 all the same.

    Raises:
        PlaceFailed: it is not there, cut off, or silent. Also raised while the blocks are read.
    """
    if url.startswith("file:"):
        with _opened_file(url, offset) as local:
            yield local
        return
    try:
        with session.get(
            url,
            headers={"Range": f"bytes={offset}-"} if offset else {},
            timeout=(patience.connect, patience.silence),
            stream=True,
        ) as response:
            reply = _reply(response, offset)
            if reply is not None:
                yield reply
                return
        # It cannot go on from there (or what is there is longer than the file): the whole, then.
        with opened(url, 0, session, patience) as whole:
            yield whole
    except (requests.Timeout, urllib3.exceptions.TimeoutError) as error:
        raise PlaceFailed(f"no byte for {patience.silence:g} s", again=Again.LATER) from error
    except requests.exceptions.SSLError as error:
        raise PlaceFailed(f"its certificate is not trusted: {cause(error)}") from error
    except (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema) as error:
        raise PlaceFailed(str(error)) from error
    except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
        raise PlaceFailed(cause(error), again=Again.SOON) from error


def _reply(response: requests.Response, offset: int) -> Reply | None:
    """Null where the place answers, but not to this offset."""
    code = response.status_code
    if code in _TRANSIENT:
        wait = response.headers.get("Retry-After", "")
        raise PlaceFailed(f"HTTP {code}", again=Again.SOON, pause=float(number(wait) or 0))
    if code in (404, 410):
        raise NotThere(f"HTTP {code}")
    if code == 416 and offset:
        return None
    if code not in (200, 206):
        raise PlaceFailed(f"HTTP {code}")
    start, total = 0, None
    if code == 206:
        if not offset:
            raise PlaceFailed("it sent a part where the whole was asked for")
        match = re.fullmatch(r"bytes ([0-9]{1,18})-[0-9]+/([0-9]{1,18}|\*)", response.headers.get("Content-Range", ""))
        if match is None or int(match[1]) != offset:
            return None
        start, total = offset, int(match[2]) if match[2] != "*" else None
    else:
        total = number(response.headers.get("Content-Length", ""))
    return Reply(start=start, total=total, blocks=_blocks(response.raw))


def number(text: str) -> int | None:
    """What a server says in digits; None where it is no number that a file's size can be."""
    return int(text) if _NUMBER.fullmatch(text) else None


def _blocks(raw: urllib3.response.HTTPResponse) -> Iterator[bytes]:
    # read1 hands over what has come; read would sit on a trickle until the block is full, and never time out.
    while block := raw.read1(_BLOCK, decode_content=False):
        yield block


@contextmanager
def _opened_file(url: str, offset: int) -> Iterator[Reply]:
    path = local_path(url)
    try:
        with path.open("rb") as stream:
            total = path.stat().st_size
            start = offset if offset <= total else 0
            stream.seek(start)
            yield Reply(start=start, total=total, blocks=iter(lambda: stream.read(_BLOCK), b""))
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        raise NotThere("no such file") from error
    except PermissionError as error:
        raise PlaceFailed("may not be read") from error


def cause(error: BaseException) -> str:
    """The innermost reason: the outer layers only repeat the URL."""
    while True:
        inner = getattr(error, "reason", None) or next((a for a in error.args if isinstance(a, BaseException)), None)
        if not isinstance(inner, BaseException):
            break
        error = inner
    text = _UNPRINTABLE.sub("?", str(error))
    text = _OBJECT.sub("", text) or type(error).__name__
    # Not the name of a class, nor one of several capitals.
    return text[:1].lower() + text[1:] if re.match(r"[A-Z][a-z']*( |$)", text) else text
