"""The service's front end before a fake engine, and a client that may misbehave."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from armlet_runtime.serve.http import Server
from armlet_runtime.serve.limits import Limits
from armlet_runtime.serve.listening import Address, TcpAddress
from armlet_runtime.serve.routes import Routes, lanes

from tests.fakes.fake_engine import FakeEngine


@contextmanager
def serving(
    engine: FakeEngine, limits: Limits | None = None, address: Address | None = None
) -> Iterator[tuple[Server, list[tuple[str, int]]]]:
    """A running server, and (endpoint, status) of its answers so far."""
    limits = limits or Limits()
    counted: list[tuple[str, int]] = []
    routes = Routes(engine, limits, lambda: "up 1\n", lambda name, status: counted.append((name, status)))
    server = Server(address or TcpAddress(port=0), routes, lanes(limits), limits)
    server.start()
    try:
        yield server, counted
    finally:
        server.stop()


@dataclass
class Answer:
    """``body`` as JSON where it is."""

    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


class Client:
    """One connection, byte by byte."""

    def __init__(self, server: Server, seconds: float = 10.0) -> None:
        if server.where.startswith("unix:"):
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(server.where.removeprefix("unix:"))
        else:
            self.socket = socket.create_connection(("127.0.0.1", server.port))
        self.socket.settimeout(seconds)
        self._rest = b""

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, raw: bytes) -> None:
        self.socket.sendall(raw)

    def ask(self, method: str, path: str, body: bytes | str | dict[str, Any] = b"", **headers: str) -> Answer:
        """One request; underscores in header names stand for hyphens."""
        raw = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
        lines = [f"{method} {path} HTTP/1.1", "Host: x"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        if raw or method == "POST":
            lines.append(f"Content-Length: {len(raw)}")
        self.send("\r\n".join([*lines, "", ""]).encode() + raw)
        return self.answer(head_only=method == "HEAD")

    def line(self) -> bytes:
        """Up to the end of a head."""
        while b"\r\n\r\n" not in self._rest:
            self._more()
        head, _, self._rest = self._rest.partition(b"\r\n\r\n")
        return head

    def answer(self, head_only: bool = False) -> Answer:
        lines = self.line().decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        size = 0 if head_only else int(headers.get("content-length", "0"))
        while len(self._rest) < size:
            self._more()
        raw, self._rest = self._rest[:size], self._rest[size:]
        return Answer(int(lines[0].split(" ")[1]), headers, raw)

    def at_end(self) -> bool:
        """Whether the server has closed, and nothing is left to read."""
        return not self._rest and self.socket.recv(1) == b""

    def _more(self) -> None:
        data = self.socket.recv(65536)
        if not data:
            raise EOFError(self._rest)
        self._rest += data
