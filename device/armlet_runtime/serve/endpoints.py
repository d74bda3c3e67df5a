"""What the server and the routes know of each other."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, Callable, Protocol

from .http_message import Head, HttpError, Response


@dataclass(frozen=True)
class HttpRequest:
    """All of a request. ``body`` is the handler's own and may be kept."""

    head: Head
    parameters: tuple[str, ...]
    """What the path has where the route has a blank."""
    body: memoryview
    cancelled: Callable[[], bool]
    """Whether the client has closed its side: it is gone, most likely."""
    received: float
    """When all of it was there, by :func:`time.monotonic`."""


@dataclass(frozen=True)
class Endpoint:
    """Who answers a request. ``handle`` may raise :class:`HttpError`; ``name`` is for metrics."""

    name: str
    lane: str
    body_bytes: int
    """The largest body that is read."""
    handle: Callable[[HttpRequest], Response]


class Router(Protocol):
    """What requests are answered from."""

    def find(self, head: Head) -> tuple[Endpoint, tuple[str, ...]]:
        """The endpoint and the path's parameters; raises :class:`HttpError`. Quick: all reading waits for it."""

    def answered(self, endpoint: str, status: int) -> None:
        """An answer goes out; ``endpoint`` is empty where none was reached."""


def json_response(content: Any, status: int = 200) -> Response:
    """``content`` as JSON; raises :class:`ValueError` for what JSON does not have."""
    return Response(status, (json.dumps(content, allow_nan=False).encode("ascii"),))


def error_response(error: HttpError) -> Response:
    """The protocol's form of an error."""
    response = json_response({"error": error.message}, error.status)
    response.headers = error.headers
    return response


def overloaded(why: str, retry_after: float) -> HttpError:
    """503, with the whole seconds after which it is worth another try."""
    return HttpError(503, why, (("Retry-After", str(max(math.ceil(retry_after), 1))),))
