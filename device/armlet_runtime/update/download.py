"""Archives by HTTPS. Servers may be wrong, slow or hostile: what they send is kept only as whole blocks of the right
place, and whether those are the right bytes is for the archive's hash to say, later.

Slow is no error, as long as a byte comes now and then. Where a connection breaks after it has brought something,
another one goes on at once from the first block that is missing.
"""

from __future__ import annotations

import http.client
import re
import ssl
from contextlib import contextmanager
from typing import Callable, Iterator, NamedTuple
from urllib.parse import SplitResult, urljoin

from armlet_runtime.update.desired import checked_url
from armlet_runtime.update.interface import Desired, FetchError, Incoming
from armlet_runtime.update.line import Line, Patience

_HEAD = 64 << 10
"""Bytes of a status line and headers, and of TLS's own for them."""
_UNKNOWN_SIGNER = (18, 19, 20, 21)
"""OpenSSL's X509_V_ERR_… of a certificate that nobody who is trusted has signed."""
_REDIRECTS = (301, 302, 303, 307, 308)
_MOST_REDIRECTS = 5
_MOST_CHANGES = 2
_ETAG = re.compile(r'"[\x21\x23-\x7e]{1,200}"')
"""A strong one: a weak one says nothing about bytes."""
_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)")


class _Part(NamedTuple):
    """Bytes of an archive: from ``start`` up to, and without, ``end``."""

    start: int
    end: int


class UrlFetcher:
    """A :class:`~armlet_runtime.update.interface.Fetcher`.

    Args:
        context: of :func:`~armlet_runtime.update.line.tls_context`.
        stall_seconds: for how long nothing may come.
        pause_seconds: between a connection that broke and the next.
    """

    def __init__(self, context: ssl.SSLContext, *, stall_seconds: float = 60.0, pause_seconds: float = 1.0) -> None:
        self._context = context
        self._stall_seconds = stall_seconds
        self._pause_seconds = pause_seconds
        self._tag = ("", "")
        self._changes = 0
        """How often the tag was another one: a server behind which there are several may have several for one file."""

    def fetch(
        self, desired: Desired, into: Incoming, progress: Callable[[float], None], cancelled: Callable[[], bool]
    ) -> None:
        patience = Patience(self._stall_seconds, cancelled)
        visit = _Visit(desired, into, progress)
        if self._tag[0] != desired.archive_sha256:
            self._tag, self._changes = (desired.archive_sha256, ""), 0
        try:
            while into.missing():
                before, ranges = visit.kept, visit.ranges
                try:
                    self._some(visit, patience)
                    if (visit.kept, visit.ranges) == (before, ranges):
                        raise FetchError("download", "the server sends less than a block at a time")
                except FetchError:
                    patience.look()
                    if visit.kept == before or visit.is_over:
                        raise
                    patience.pause(self._pause_seconds)
        finally:
            if not visit.is_over:
                into.sync()

    def _some(self, visit: _Visit, patience: Patience) -> None:
        """One connection, for the first of the parts that are missing."""
        part = visit.wanted()
        if visit.ranges and part != (0, visit.into.size):
            headers = {"Range": f"bytes={part.start}-{part.end - 1}"}
            if self._tag[1] and self._changes < _MOST_CHANGES:
                headers["If-Range"] = self._tag[1]
        else:
            headers = {}
        with self._asked(visit.desired.url, headers, patience) as (response, line):
            if response.status == 416 and headers:
                # It may know nothing of parts, or have less than it should: then the whole of it says so.
                visit.ranges = False
                return
            came = _coming(response, visit.into.size, part if headers else None)
            if self._is_other(response, whole=came.start == 0 and bool(headers)):
                visit.is_over = True
                visit.into.discard()
                raise FetchError("download", "the server has another file than before: it is begun anew")
            # Chunks may be small, and each has a few bytes beside its content.
            line.allowance = _HEAD + 8 * (came.end - came.start)
            line.lenient = True
            visit.take(response, came)

    def _is_other(self, response: http.client.HTTPResponse, *, whole: bool) -> bool:
        """Whether what is there is of another file than what comes now (which is the whole of that one)."""
        found = response.getheader("ETag", "")
        tag = found if _ETAG.fullmatch(found) else ""
        old, self._tag = self._tag[1], (self._tag[0], tag)
        if not old or not tag or old == tag:
            return False
        self._changes += 1
        return whole and self._changes <= _MOST_CHANGES

    @contextmanager
    def _asked(
        self, url: str, headers: dict[str, str], patience: Patience
    ) -> Iterator[tuple[http.client.HTTPResponse, Line]]:
        for _ in range(_MOST_REDIRECTS + 1):
            parts = _checked(url)
            with _told(parts):
                line = Line(parts.hostname or "", parts.port or 443, self._context, patience)
            try:
                with _told(parts):
                    response = _response(parts, headers, line, patience)
                if response.status not in _REDIRECTS:
                    yield response, line
                    return
                with _told(parts):
                    url = urljoin(url, response.getheader("Location", ""))
            finally:
                line.hang_up()
        raise FetchError("download", f"the server sends on and on, more than {_MOST_REDIRECTS} times")


class _Visit:
    """What is wanted by one call of ``fetch``."""

    def __init__(self, desired: Desired, into: Incoming, progress: Callable[[float], None]) -> None:
        self.desired = desired
        self.into = into
        self.ranges = True
        self.kept = 0
        """Blocks so far."""
        self.is_over = False
        """What was there is discarded, and takes nothing more."""
        self._progress = progress

    def wanted(self) -> _Part:
        """The first that is missing, and all that are missing behind it without a gap."""
        missing = self.into.missing()
        last = missing[0]
        for number in missing[1:]:
            if number != last + 1:
                break
            last = number
        return _Part(missing[0] * self.into.block_size, min(self.into.size, (last + 1) * self.into.block_size))

    def take(self, response: http.client.HTTPResponse, came: _Part) -> None:
        """Keeps what is missing of what comes. Raises FetchError, OSError where the disk fails."""
        missing = set(self.into.missing())
        block = self.into.block_size
        for start in range(came.start, came.end, block):
            length = min(block, self.into.size - start)
            # A part may end within a block: that end is asked for again.
            if start + length > came.end or not missing:
                return
            with _told(None):
                data = response.read(length)
            if len(data) < length:
                raise FetchError("download", "the server closed the connection early")
            if start // block in missing:
                self.into.put(start // block, data)
                missing.discard(start // block)
                self.kept += 1
                self._progress(1 - len(missing) / self.into.blocks)


class _Connection(http.client.HTTPConnection):
    default_port = 443


def _response(parts: SplitResult, headers: dict[str, str], line: Line, patience: Patience) -> http.client.HTTPResponse:
    connection = _Connection(parts.hostname or "", parts.port or 443)
    connection.sock = line
    line.allowance = _HEAD
    # A compressed archive would be another one.
    fixed = {"Accept-Encoding": "identity", "User-Agent": "armlet", "Connection": "close"}
    patience.renewed()
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    connection.request("GET", target, headers={**fixed, **headers})
    return connection.getresponse()


def _coming(response: http.client.HTTPResponse, size: int, asked: _Part | None) -> _Part:
    """What of the archive an answer holds.

    Raises:
        FetchError: nothing of it, or not what was asked for.
    """
    if response.getheader("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
        raise FetchError("download", "the server compressed it, though it was asked not to")
    if response.status == 200:
        # What is there is passed over as it comes.
        if response.length is not None and response.length != size:
            raise FetchError("download", f"the server has {response.length} bytes, and {size} are wanted")
        return _Part(0, size)
    if response.status != 206:
        raise FetchError("download", f"the server answers {response.status}")
    found = _CONTENT_RANGE.fullmatch(response.getheader("Content-Range", "").strip())
    if not found:
        raise FetchError("download", "the server sends a part, and does not say of what")
    came, total = _Part(int(found[1]), int(found[2]) + 1), found[3]
    if total not in ("*", str(size)):
        raise FetchError("download", f"the server has {total} bytes, and {size} are wanted")
    # More of it than was asked for is as good.
    if came.start != (asked.start if asked else 0) or not came.start < came.end <= size:
        raise FetchError("download", "the server sends another part than was asked for")
    return came


def _checked(url: str) -> SplitResult:
    try:
        return checked_url(url)
    except ValueError as error:
        raise FetchError("download", f"the server sends on to an address that is refused: {error}") from error


@contextmanager
def _told(parts: SplitResult | None) -> Iterator[None]:
    """Errors of the network as ours, so that they are not taken for the disk's. Of an address only the host is told."""
    host = f" {parts.hostname}" if parts is not None else ""
    try:
        yield
    except ssl.SSLCertVerificationError as error:
        reason = f"the certificate of the server{host} is refused: {error.verify_message}"
        if error.verify_code in _UNKNOWN_SIGNER:
            reason += "; ca in section [updates] names who may have signed it"
        raise FetchError("download", reason) from error
    except ssl.SSLError as error:
        raise FetchError("download", f"TLS with the server{host} failed: {error.reason or error}") from error
    except OSError as error:
        raise FetchError("download", f"the server{host} cannot be reached: {error.strerror or error}") from error
    except (http.client.HTTPException, ValueError) as error:
        raise FetchError(
            "download", f"the server{host} does not speak HTTP as it should ({type(error).__name__})"
        ) from error
