"""A real HTTPS server whose answers are a test's: right ones, and every kind of wrong ones."""

from __future__ import annotations

import re
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.certificates import Pair


class Request(BaseHTTPRequestHandler):
    """What a behaviour is given, to look at and to answer."""

    protocol_version = "HTTP/1.1"
    server: LyingServer

    def do_GET(self) -> None:
        # The library mends the path.
        asked = self.requestline.split()[1]
        self.server.requests.append((asked, {key.lower(): value for key, value in self.headers.items()}))
        self.close_connection = True
        # Whoever was lied to hangs up.
        with suppress(OSError):
            self.server.behaviour(self)

    def say(self, status: int, body: bytes = b"", **headers: str) -> None:
        """``headers``: underscores for dashes; an empty one is left out, ``Content_Length`` is right by default."""
        self.send_response(status)
        for key, value in {"Content_Length": str(len(body)), **headers}.items():
            if value:
                self.send_header(key.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def part(self, size: int) -> tuple[int, int] | None:
        """The range that is asked for: start, and what follows its end."""
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        return (int(found[1]), min(size, int(found[2] or size) + 1)) if found else None

    def serve(self, data: bytes, *, etag: str = "", upto: int | None = None) -> None:
        """As a right server does; ``upto``: the connection closes after so many bytes of the body."""
        part = self.part(len(data))
        if part and etag and self.headers.get("If-Range", etag) != etag:
            part = None
        start, end = part or (0, len(data))
        told = {"Content_Range": f"bytes {start}-{end - 1}/{len(data)}"} if part else {}
        body = data[start:end]
        if etag:
            told["ETag"] = etag
        self.say(206 if part else 200, body[:upto], Content_Length=str(len(body)), **told)

    def log_message(self, *_: Any) -> None:
        pass


Behaviour = Callable[[Request], None]


class LyingServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, pair: Pair, clients: Path | None = None, address: str = "127.0.0.1") -> None:
        """``clients``: the authority of whoever may connect; None: anybody."""
        super().__init__((address, 0), Request)
        self.behaviour: Behaviour = lambda request: request.say(404)
        self.requests: list[tuple[str, dict[str, str]]] = []
        """(what was asked for, headers), keys in lower case."""
        self.ended = threading.Event()
        """Behaviours that wait do so with this."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=clients)
        context.load_cert_chain(pair.cert, pair.key)
        if clients:
            context.verify_mode = ssl.CERT_REQUIRED
        self.context = context

    @property
    def url(self) -> str:
        return f"https://localhost:{self.server_address[1]}/m.payload"

    def finish_request(self, request: Any, client_address: Any) -> None:
        # In the connection's own thread, so that one who does not greet keeps nobody waiting.
        with suppress(OSError), self.context.wrap_socket(request, server_side=True) as secured:
            super().finish_request(secured, client_address)

    def handle_error(self, *_: Any) -> None:
        pass


@contextmanager
def serving(pair: Pair, clients: Path | None = None, address: str = "127.0.0.1") -> Iterator[LyingServer]:
    server = LyingServer(pair, clients, address)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()


def raw(request: Request, *pieces: bytes) -> None:
    for piece in pieces:
        request.wfile.write(piece)


def endless(request: Request, head: bytes, piece: bytes) -> None:
    request.wfile.write(head)
    while not request.server.ended.is_set():
        request.wfile.write(piece)


def chunked(data: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(data), size):
        piece = data[start : start + size]
        yield b"%x;a=b\r\n%s\r\n" % (len(piece), piece)
    yield b"0\r\n\r\n"


def stalling(*pieces: bytes) -> Behaviour:
    def behave(request: Request) -> None:
        raw(request, *pieces)
        request.server.ended.wait()

    return behave


def dribbles(head: bytes, body: bytes, pause: float, size: int = 1) -> Behaviour:
    def behave(request: Request) -> None:
        request.wfile.write(head)
        for start in range(0, len(body), size):
            request.wfile.write(body[start : start + size])
            if request.server.ended.wait(pause):
                return

    return behave
