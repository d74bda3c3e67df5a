"""A mirror on a real socket that can do what real mirrors do on a bad day."""

from __future__ import annotations

import re
import socket
import struct
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from urllib.parse import unquote

from tests.fakes.local_server import answering


@dataclass(frozen=True, kw_only=True)
class Fault:
    """How one request goes wrong. ``after``: bytes of the body that are sent before it does."""

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    after: int | None = None
    stall: bool = False
    trickle: bool = False
    reset: bool = False
    body: bytes | None = None


@dataclass
class FakeMirror:
    """Serves ``files`` (path without the leading slash -> content); each request takes the next of its ``faults``."""

    files: dict[str, bytes] = field(default_factory=dict)
    faults: deque[Fault | None] = field(default_factory=deque)
    ranges: bool = True
    chunked: bool = False
    seen: list[tuple[str, str | None]] = field(default_factory=list)
    """(path, ``Range`` header) of each request."""
    url: str = ""
    closing: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def serving(self) -> Iterator[FakeMirror]:
        with answering(_handler(self)) as place:
            self.url = f"http://{place}"
            try:
                yield self
            finally:
                self.closing.set()


def _handler(mirror: FakeMirror) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            wanted_range = self.headers.get("Range")
            path = unquote(self.path).lstrip("/")
            mirror.seen.append((path, wanted_range))
            fault = mirror.faults.popleft() if mirror.faults else None
            fault = fault or Fault()
            if fault.status is not None:
                self._empty(fault.status, fault.headers)
            elif path not in mirror.files:
                self._empty(404, {})
            else:
                self._content(mirror.files[path] if fault.body is None else fault.body, wanted_range, fault)

        def _empty(self, status: int, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": "0", **headers}.items():
                self.send_header(name, value)
            self.end_headers()

        def _content(self, content: bytes, wanted_range: str | None, fault: Fault) -> None:
            start = int(re.findall(r"\d+", wanted_range)[0]) if wanted_range and mirror.ranges else 0
            if start >= len(content) > 0 and start:
                self._empty(416, {"Content-Range": f"bytes */{len(content)}"})
                return
            body = content[start:]
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            if mirror.chunked:
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for block in (body[at : at + 1000] for at in range(0, len(body), 1000)):
                    self.wfile.write(f"{len(block):x}\r\n".encode() + block + b"\r\n")
                self.wfile.write(b"0\r\n\r\n")
                return
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self._send(body, fault)

        def _send(self, body: bytes, fault: Fault) -> None:
            after = len(body) if fault.after is None else fault.after
            self.wfile.write(body[:after])
            self.wfile.flush()
            if fault.trickle:
                for byte in body[after:]:
                    if mirror.closing.wait(0.02):
                        break
                    try:
                        self.wfile.write(bytes([byte]))
                    except OSError:
                        break
            if fault.stall:
                mirror.closing.wait(30)
            if fault.reset:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler
