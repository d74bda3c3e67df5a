"""Named objects on a plain HTTP server or an S3-compatible one: ask, read, write. Nothing here is believed."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, Protocol, TypeVar
from urllib.parse import quote

import requests
import urllib3
from requests.auth import AuthBase, HTTPBasicAuth

from armlet import digest
from armlet.fetch.transport import Again, NotThere, Patience, PlaceFailed, cause, new_session, number, opened
from armlet.remote.settings import Address

_PATIENT = Patience(connect=5.0, silence=30.0, attempts=2)
_PAUSE = 0.5
_MOST_SAID = 4096
"""Bytes of a refusal that are read."""
_TRANSIENT = (408, 425, 429, 500, 502, 503, 504)
_CODE = re.compile(r"<Code>([A-Za-z0-9.]{1,60})</Code>")

T = TypeVar("T")


class Unavailable(Exception):
    """The server cannot be asked, or does not do what it is asked; the text has no credentials in it."""


class Wrong(Exception):
    """The server gave something else than what was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What an object holds."""

    sha256: str
    size: int


def content_of(path: Path) -> Content:
    return Content(sha256=digest.of_file(path), size=path.stat().st_size)


class Taker(Protocol):
    """What a file to write to can do of all that a file can."""

    def seek(self, place: int, /) -> object: ...
    def truncate(self) -> object: ...
    def write(self, data: bytes, /) -> object: ...
    def flush(self) -> object: ...


class _Bearer(AuthBase):
    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


class Objects:
    """A folder of objects on a server. Names are relative paths. Nobody is asked before the first question."""

    def __init__(self, address: Address, *, patience: Patience = _PATIENT) -> None:
        self.address = address
        self._patience = patience

    @cached_property
    def _access(self) -> tuple[str, requests.Session]:
        """The URL below which the objects are, and what asks for them. Raises ``Unavailable``: without credentials."""
        session = new_session()
        root = self.address.url
        if self.address.scheme == "s3":
            from armlet.remote import s3

            try:
                root, session.auth = s3.access(self.address.url)
            except s3.NoCredentials as error:
                raise Unavailable(str(error)) from error
        elif self.address.token:
            session.auth = _Bearer(self.address.token)
        elif self.address.user is not None:
            # As bytes: requests would take text for latin-1.
            session.auth = HTTPBasicAuth(self.address.user.encode(), (self.address.password or "").encode())
        return root, session

    def size(self, name: str) -> int | None:
        """Bytes of an object; None where there is none.

        Raises:
            Unavailable: nobody can tell.
        """

        def ask() -> int | None:
            response = self._session.head(self._url(name), timeout=self._timeout, allow_redirects=True)
            if response.status_code in (404, 410):
                return None
            _demand(response, (200,))
            if (size := number(response.headers.get("Content-Length", ""))) is None:
                raise Unavailable("it does not tell how large its objects are")
            return size

        return self._tried(ask)

    def read(self, name: str, into: Taker, *, most: int) -> Content | None:
        """Writes an object to ``into`` and returns what came; None where there is none.

        Raises:
            Unavailable: it cannot be had.
            Wrong: it is larger than ``most`` bytes.
        """

        def ask() -> Content | None:
            into.seek(0)
            into.truncate()
            try:
                with opened(self._url(name), 0, self._session, self._patience) as reply:
                    return _received(reply.blocks, into, reply.total, most, self._patience)
            except NotThere:
                return None
            except PlaceFailed as failed:
                if failed.again is Again.NEVER:
                    raise Unavailable(failed.reason) from failed
                raise _Transient(failed.reason) from failed

        return self._tried(ask)

    def write(self, name: str, source: BinaryIO, size: int) -> None:
        """Puts ``source`` (from its beginning) there, in the place of what is there.

        Raises:
            Unavailable: it was not taken whole.
        """

        def ask() -> None:
            source.seek(0)
            with self._session.put(
                self._url(name),
                # An empty file is no body to requests, and would go out without a length.
                data=source if size else b"",
                headers={"Content-Type": "application/octet-stream"},
                timeout=(self._patience.connect, max(self._patience.silence, 60.0)),
                # Of a redirected PUT, requests makes a GET.
                allow_redirects=False,
                # What it answers may be without end.
                stream=True,
            ) as response:
                _demand(response, (200, 201, 204))

        self._tried(ask)
        found = self.size(name)
        if found != size:
            raise Unavailable(f"of {size} bytes it has {found or 0}")

    @property
    def _timeout(self) -> tuple[float, float]:
        return self._patience.connect, self._patience.silence

    def _url(self, name: str) -> str:
        return f"{self._access[0]}/{quote(name, safe='/')}"

    @property
    def _session(self) -> requests.Session:
        return self._access[1]

    def _tried(self, ask: Callable[[], T]) -> T:
        for attempt in range(self._patience.attempts):
            try:
                try:
                    return ask()
                except (requests.Timeout, urllib3.exceptions.TimeoutError) as error:
                    raise Unavailable("it does not answer in time") from error
                except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
                    raise _Transient(cause(error)) from error
            except _Transient as failed:
                if attempt + 1 == self._patience.attempts:
                    raise Unavailable(str(failed)) from failed
                time.sleep(_PAUSE)
        raise AssertionError("no attempt")


class _Transient(Exception):
    """Worth another attempt."""


def _demand(response: requests.Response, wanted: tuple[int, ...]) -> None:
    code = response.status_code
    if code in wanted:
        return
    said = ""
    with suppress(requests.RequestException, urllib3.exceptions.HTTPError):
        body = response.raw.read1(_MOST_SAID, decode_content=True).decode(errors="replace")
        said = f" {found[1]}" if (found := _CODE.search(body)) else ""
    told = f"HTTP {code}{said}"
    raise (_Transient if code in _TRANSIENT else Unavailable)(told)


def _received(blocks: Iterator[bytes], into: Taker, total: int | None, most: int, patience: Patience) -> Content:
    if total is not None and total > most:
        raise Wrong(f"it offers {total} bytes where at most {most} belong")
    hasher = hashlib.sha256()
    size = 0
    since, got = time.monotonic(), 0
    for block in blocks:
        size, got = size + len(block), got + len(block)
        if size > most:
            raise Wrong(f"it sends more than the {most} bytes that belong there")
        hasher.update(block)
        into.write(block)
        if time.monotonic() - since >= patience.silence:
            if got < patience.least:
                raise Unavailable(f"only {got} bytes in {patience.silence:.0f} s")
            since, got = time.monotonic(), 0
    if total is not None and size < total:
        raise _Transient(f"cut off at {size} of {total} bytes")
    into.flush()
    return Content(sha256=hasher.hexdigest(), size=size)
