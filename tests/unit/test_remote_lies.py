"""What an object server says in its headers, and answers without end, is not believed either."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler

import pytest

from armlet.remote.objects import Objects, Unavailable
from armlet.remote.settings import address
from tests.fakes.local_server import answering

ODD_SIZES = ["²", "9" * 5000, "-1", "1.5", "x", ""]


class Lying(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    head = b""
    ends = threading.Event()

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.close_connection = True
        with suppress(OSError):
            self.wfile.write(self.head + b"\r\n")
            while b"chunked" in self.head and not self.ends.is_set():
                self.wfile.write(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")

    do_HEAD = do_PUT = do_GET

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def lying(head: str) -> Iterator[Objects]:
    ends = threading.Event()
    handler = type("Handler", (Lying,), {"head": head.encode("latin-1"), "ends": ends})
    with answering(handler) as place:
        try:
            yield Objects(address("X", f"http://{place}"))
        finally:
            ends.set()


@pytest.mark.parametrize("size", ODD_SIZES)
def test_a_size_that_is_none_is_told(size: str) -> None:
    with lying(f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n") as objects, pytest.raises(Unavailable):
        objects.size("a")


@pytest.mark.parametrize("size", ODD_SIZES)
def test_what_is_read_goes_by_what_came(size: str) -> None:
    with lying(f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n") as objects, suppress(Unavailable):
        found = objects.read("a", io.BytesIO(), most=10)
        assert found is not None
        assert found.size == 0


def test_a_pause_that_is_none_is_no_pause() -> None:
    head = "HTTP/1.1 503 No\r\nRetry-After: ²\r\nContent-Length: 0\r\n"
    with lying(head) as objects, pytest.raises(Unavailable, match="503"):
        objects.read("a", io.BytesIO(), most=10)


@pytest.mark.parametrize("status", [201, 403])
def test_an_answer_without_end_is_not_waited_for(status: int) -> None:
    head = f"HTTP/1.1 {status} x\r\nTransfer-Encoding: chunked\r\n"

    def written(objects: Objects) -> None:
        with suppress(Unavailable):
            objects.write("a", io.BytesIO(b"x"), 1)

    with lying(head) as objects:
        assert _ends(lambda: written(objects))


def _ends(run: Callable[[], None]) -> bool:
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(5)
    return not thread.is_alive()
