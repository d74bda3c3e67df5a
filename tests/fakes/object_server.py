"""A server of objects on a real socket (HEAD, GET, PUT) that can do what real ones do on a bad day."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from urllib.parse import unquote

from tests.fakes.local_server import answering


@dataclass
class ObjectServer:
    """``objects``: path without the leading slash -> content."""

    objects: dict[str, bytes] = field(default_factory=dict)
    status: dict[str, int] = field(default_factory=dict)
    """Method -> what it answers in place of doing anything."""
    cut: int | None = None
    """Bytes of a body that it sends before it hangs up."""
    keeps: int | None = None
    """Bytes of an upload that it keeps before it hangs up."""
    uploads: int | None = None
    """How many uploads it takes before it hangs up on each."""
    seen: list[tuple[str, str]] = field(default_factory=list)
    """(method, path) of each request."""
    authorisations: set[str] = field(default_factory=set)
    url: str = ""

    @contextmanager
    def serving(self) -> Iterator[ObjectServer]:
        with answering(_handler(self)) as place:
            self.url = f"http://{place}"
            yield self

    def done(self, method: str) -> list[str]:
        return [path for found, path in self.seen if found == method]


def _handler(server: ObjectServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def do_GET(self) -> None:
            self._answer(body=True)

        def do_PUT(self) -> None:
            path = self._asked()
            data = self.rfile.read(int(self.headers["Content-Length"]))
            if "PUT" in server.status:
                self._head(server.status["PUT"], 0)
                return
            if server.uploads is not None:
                server.uploads -= 1
            if server.keeps is not None:
                server.objects[path] = data[: server.keeps]
            if server.keeps is not None or (server.uploads is not None and server.uploads < 0):
                self.close_connection = True
                return
            server.objects[path] = data
            self._head(201, 0)

        def _answer(self, *, body: bool) -> None:
            path = self._asked()
            status = server.status.get(self.command)
            data = server.objects.get(path)
            if status is not None or data is None:
                self._head(status or 404, 0)
                return
            self._head(200, len(data))
            if body:
                self.wfile.write(data[: server.cut])
                self.close_connection = server.cut is not None

        def _asked(self) -> str:
            path = unquote(self.path).lstrip("/")
            server.seen.append((self.command, path))
            server.authorisations.add(self.headers.get("Authorization", ""))
            return path

        def _head(self, status: int, length: int) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(length))
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler
