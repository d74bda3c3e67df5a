"""Archives by HTTPS from servers that are right, odd, or lie: the right bytes come, or nothing that counts."""

from __future__ import annotations

import hashlib
import random
import socket
import ssl
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from armlet_runtime.update.download import UrlFetcher
from armlet_runtime.update.interface import Desired, FetchError
from armlet_runtime.update.line import tls_context

from tests.certificates import Authority, Pair
from tests.fakes.incoming import FakeIncoming
from tests.fakes.lying_server import (
    Behaviour,
    LyingServer,
    Request,
    chunked,
    dribbles,
    endless,
    raw,
    serving,
    stalling,
)

BLOCK = 4096
DATA = random.Random(6).randbytes(10 * BLOCK + 77)
STALL = 0.6
"""Seconds."""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"), "authority")


@pytest.fixture(scope="module")
def pair(authority: Authority) -> Pair:
    return authority.vouch("server")


@pytest.fixture
def server(pair: Pair) -> Iterator[LyingServer]:
    with serving(pair) as running:
        yield running


@pytest.fixture
def fetcher(authority: Authority) -> UrlFetcher:
    return UrlFetcher(tls_context(str(authority.ca)), stall_seconds=STALL, pause_seconds=0)


def wish(url: str, data: bytes = DATA) -> Desired:
    return Desired("m", "1", 1, "0" * 64, len(data), hashlib.sha256(data).hexdigest(), url)


def fetch(
    fetcher: UrlFetcher, url: str, into: FakeIncoming, cancelled: Callable[[], bool] = lambda: False
) -> list[float]:
    """What was told of its progress."""
    told: list[float] = []
    fetcher.fetch(wish(url), into, told.append, cancelled)
    return told


def new(*held: int) -> FakeIncoming:
    into = FakeIncoming(len(DATA), BLOCK)
    into.held = {number: DATA[number * BLOCK : (number + 1) * BLOCK] for number in held}
    return into


def moved(request: Request, to: str, status: int = 302) -> None:
    if request.path.startswith("/m.payload"):
        request.say(status, b"look there", Location=to)
    else:
        request.serve(DATA)


def short_parts(request: Request) -> None:
    start, _ = request.part(len(DATA)) or (0, 0)
    end = min(start + 2 * BLOCK + 100, len(DATA))
    request.say(206, DATA[start:end], Content_Range=f"bytes {start}-{end - 1}/{len(DATA)}")


def no_ranges(request: Request) -> None:
    request.say(416) if request.part(len(DATA)) else request.serve(DATA)


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"

ODD: dict[str, Behaviour] = {
    "right": lambda r: r.serve(DATA),
    "without-length": lambda r: r.say(200, DATA, Content_Length=""),
    "sends-more": lambda r: r.say(200, DATA + b"more" * 9999, Content_Length=""),
    "sends-more-than-its-length": lambda r: r.say(200, DATA + b"more" * 9999, Content_Length=str(len(DATA))),
    "chunks": lambda r: raw(r, CHUNKED, *chunked(DATA, 1000)),
    "tiny-chunks": lambda r: raw(r, CHUNKED, b"".join(chunked(DATA, 3))),
    "ignores-ranges": lambda r: r.say(200, DATA),
    "refuses-ranges": no_ranges,
    "short-parts": short_parts,
    "total-unknown": lambda r: r.serve(DATA) if not r.part(1) else short_parts(r),
    "says-identity": lambda r: r.say(200, DATA, Content_Encoding="identity"),
    "continues": lambda r: raw(r, b"HTTP/1.1 100 Continue\r\n\r\n", OK + b"\r\n", DATA),
    "old-http": lambda r: raw(r, b"HTTP/1.0 200 fine\r\n\r\n", DATA),
    "moved": lambda r: moved(r, "there?signed=secret"),
    "moved-for-good": lambda r: moved(r, r.server.url.replace("/m.", "/n."), 308),
    "closes-early": lambda r: r.serve(DATA, upto=2 * BLOCK + 5),
    "weak-tags": lambda r: r.serve(DATA, etag='W/"1"', upto=3 * BLOCK),
}
HELD = ((), (0, 1), (1, 3, 4, 9), (10,), tuple(range(11)))


@pytest.mark.parametrize("held", HELD, ids=str)
@pytest.mark.parametrize("odd", ODD)
def test_comes_to_the_right_bytes(server: LyingServer, fetcher: UrlFetcher, odd: str, held: tuple[int, ...]) -> None:
    server.behaviour = ODD[odd]
    into = new(*held)
    told = fetch(fetcher, server.url, into)
    assert into.content == DATA
    assert not set(held) & set(into.puts)
    assert into.syncs
    assert told == sorted(told)
    assert told[-1:] in ([1.0], [])


LIES: dict[str, Behaviour] = {
    "nothing": lambda r: None,
    "not-http": lambda r: raw(r, b"SSH-2.0-OpenSSH\r\n"),
    "binary": lambda r: raw(r, bytes(range(256)) * 9),
    "no-content": lambda r: r.say(204),
    "not-found": lambda r: r.say(404, DATA),
    "broken": lambda r: r.say(500, DATA),
    "switches": lambda r: raw(r, b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"),
    "partial-of-nothing": lambda r: r.say(206, DATA),
    "another-part": lambda r: r.say(206, DATA[5:], Content_Range=f"bytes 5-{len(DATA) - 1}/{len(DATA)}"),
    "another-total": lambda r: r.say(206, DATA, Content_Range=f"bytes 0-{len(DATA) - 1}/{len(DATA) + 1}"),
    "backward-part": lambda r: r.say(206, DATA, Content_Range=f"bytes 0--1/{len(DATA)}"),
    "huge-part": lambda r: r.say(206, DATA, Content_Range=f"bytes 0-{10**17}/*"),
    "many-parts": lambda r: r.say(206, b"--x\r\n", Content_Type="multipart/byteranges; boundary=x"),
    "never-any-range": lambda r: r.say(416, Content_Range="bytes */5"),
    "longer": lambda r: r.say(200, DATA, Content_Length=str(len(DATA) + 1)),
    "shorter": lambda r: r.say(200, DATA[:-1]),
    "huge-length": lambda r: r.say(200, DATA, Content_Length="9" * 30),
    "negative-length": lambda r: r.say(200, b"", Content_Length="-5"),
    "closes-in-the-first-block": lambda r: r.serve(DATA, upto=BLOCK - 1),
    "compresses": lambda r: r.say(200, DATA, Content_Encoding="gzip"),
    "less-than-a-block": lambda r: r.say(206, DATA[:9], Content_Range=f"bytes 0-8/{len(DATA)}"),
    "no-chunk": lambda r: raw(r, CHUNKED, b"zz\r\n" + DATA),
    "negative-chunk": lambda r: raw(r, CHUNKED, b"-5\r\n" + DATA),
    "no-chunks-at-all": lambda r: raw(r, CHUNKED, b"0\r\n\r\n"),
    "endless-trailers": lambda r: endless(r, CHUNKED + b"0\r\n", b"a: b\r\n" * 1000),
    "endless-chunk-size": lambda r: endless(r, CHUNKED, b"0" * 10000),
    "endless-headers": lambda r: endless(r, OK, b"a: b\r\n" * 1000),
    "endless-header": lambda r: endless(r, OK + b"a: ", b"b" * 10000),
    "endless-status": lambda r: endless(r, b"HTTP/1.1 200 ", b"b" * 10000),
    "continues-on-and-on": lambda r: endless(r, b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    "moved-in-a-circle": lambda r: r.say(302, Location=r.path + "x"),
    "moved-nowhere": lambda r: r.say(302),
    "moved-to-http": lambda r: moved(r, "http://localhost/there"),
    "moved-to-a-file": lambda r: moved(r, "file:///etc/passwd"),
    "moved-to-a-user": lambda r: moved(r, r.server.url.replace("//", "//user:secret@")),
    "moved-to-rubbish": lambda r: moved(r, "https://[::1"),
}


@pytest.mark.parametrize("held", [(), (0, 1)], ids=str)
@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_refused(server: LyingServer, fetcher: UrlFetcher, lie: str, held: tuple[int, ...]) -> None:
    server.behaviour = LIES[lie]
    into = new(*held)
    started = time.monotonic()
    with pytest.raises(FetchError) as caught:
        fetch(fetcher, server.url + "?signed=secret", into)
    assert time.monotonic() - started < 10
    assert caught.value.category == "download"
    assert caught.value.again
    assert "secret" not in caught.value.reason
    # What was there stays, and nothing was put in a wrong place.
    assert {*held} <= into.held.keys()
    assert all(data == DATA[number * BLOCK : (number + 1) * BLOCK] for number, data in into.held.items())


def test_it_goes_on_where_it_was_cut(server: LyingServer, fetcher: UrlFetcher) -> None:
    server.behaviour = lambda request: request.serve(DATA, etag='"1"', upto=3 * BLOCK + 1)
    into = new()
    fetch(fetcher, server.url, into)
    assert into.puts == list(range(11))
    asked = [(headers.get("range"), headers.get("if-range")) for _, headers in server.requests]
    last = len(DATA) - 1
    assert asked == [(None, None), *((f"bytes={at * BLOCK}-{last}", '"1"') for at in (3, 6, 9))]
    assert {headers["accept-encoding"] for _, headers in server.requests} == {"identity"}
    assert {headers["host"] for _, headers in server.requests} == {server.url.split("/")[2]}


@pytest.mark.parametrize("target", ["/", "//a//b", "/a/../b", "/a%2Fb?c=d&e=%26?f", "/?a=//b:c@d"])
def test_an_address_is_asked_for_as_it_is(server: LyingServer, fetcher: UrlFetcher, target: str) -> None:
    server.behaviour = lambda request: request.serve(DATA)
    fetch(fetcher, server.url.replace("/m.payload", target), new())
    assert [request for request, _ in server.requests] == [target]


def test_holes_are_asked_for_one_by_one(server: LyingServer, fetcher: UrlFetcher) -> None:
    server.behaviour = lambda request: request.serve(DATA)
    into = new(1, 2, 5)
    fetch(fetcher, server.url, into)
    assert into.content == DATA
    asked = [headers["range"] for _, headers in server.requests]
    parts = ((0, BLOCK), (3 * BLOCK, 5 * BLOCK), (6 * BLOCK, len(DATA)))
    assert asked == [f"bytes={start}-{end - 1}" for start, end in parts]


def test_another_file_begins_anew(server: LyingServer, fetcher: UrlFetcher) -> None:
    old = bytes(len(DATA))
    contents = iter([(old, '"old"')])

    def changed(request: Request) -> None:
        data, tag = next(contents, (DATA, '"new"'))
        request.serve(data, etag=tag, upto=4 * BLOCK if data is old else None)

    server.behaviour = changed
    into = new()
    with pytest.raises(FetchError, match="another file") as caught:
        fetch(fetcher, server.url, into)
    assert caught.value.again
    assert (into.held, into.discards) == ({}, 1)
    into = new()
    fetch(fetcher, server.url, into)
    assert into.content == DATA


def test_a_tag_for_each_answer_does_not_begin_anew_for_ever(server: LyingServer, fetcher: UrlFetcher) -> None:
    def many(request: Request) -> None:
        request.serve(DATA, etag=f'"{len(server.requests)}"', upto=2 * BLOCK)

    server.behaviour = many
    into = new()
    with pytest.raises(FetchError, match="another file"):
        fetch(fetcher, server.url, into)
    into = new()
    fetch(fetcher, server.url, into)
    assert into.content == DATA
    assert len(server.requests) < 15


STALLS: dict[str, Behaviour] = {
    "before-the-head": stalling(b""),
    "in-the-head": stalling(b"HTTP/1.1 2"),
    "in-the-body": stalling(OK, b"\r\n", DATA[:1000]),
    "a-head-of-drops": dribbles(OK, b"a: b\r\n" * 99, STALL / 4),
}


@pytest.mark.parametrize("stall", STALLS)
def test_a_stall_is_told(server: LyingServer, fetcher: UrlFetcher, stall: str) -> None:
    server.behaviour = STALLS[stall]
    started = time.monotonic()
    with pytest.raises(FetchError, match="sent nothing"):
        fetch(fetcher, server.url, new())
    assert STALL <= time.monotonic() - started < STALL + 2


def test_slow_is_no_error(server: LyingServer, fetcher: UrlFetcher) -> None:
    server.behaviour = dribbles(OK + b"\r\n", DATA, STALL / 4, len(DATA) // 10)
    into = new()
    started = time.monotonic()
    fetch(fetcher, server.url, into)
    assert time.monotonic() - started > 2 * STALL
    assert into.content == DATA


WAITS: dict[str, Behaviour] = {
    **{name: STALLS[name] for name in ("before-the-head", "in-the-body")},
    "while-bytes-come": lambda r: endless(r, CHUNKED, b"1\r\nx\r\n"),
    "between-connections": lambda r: r.serve(DATA, upto=BLOCK),
}


@pytest.mark.parametrize("where", [*WAITS, "greeting", "name", "connecting"])
def test_it_is_called_off_within_a_second(
    server: LyingServer, authority: Authority, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    patient = UrlFetcher(tls_context(str(authority.ca)), stall_seconds=60, pause_seconds=60)
    off = threading.Event()
    url = server.url
    with socket.create_server(("127.0.0.1", 0), backlog=1) as silent:
        if where in WAITS:
            server.behaviour = WAITS[where]
        elif where == "name":
            monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: off.wait(30) and [])
        else:
            url = f"https://localhost:{silent.getsockname()[1]}/"
        if where == "connecting":
            # One that answers no more greetings of TCP.
            crowd = [socket.socket() for _ in range(4)]
            for one in crowd:
                one.setblocking(False)
                one.connect_ex(silent.getsockname())
        timer = threading.Timer(0.5, off.set)
        timer.start()
        started = time.monotonic()
        with pytest.raises(FetchError, match="called off"):
            fetch(patient, url, new(), off.is_set)
        assert time.monotonic() - started < 1.5
        timer.join()
        if where == "connecting":
            for one in crowd:
                one.close()


def test_the_disk_fails_as_the_disk(server: LyingServer, fetcher: UrlFetcher) -> None:
    server.behaviour = lambda request: request.serve(DATA)
    into = new()
    into.full_after = 3
    with pytest.raises(OSError, match="No space"):
        fetch(fetcher, server.url, into)
    assert len(into.held) == 3


def test_memory_is_a_few_blocks(server: LyingServer, fetcher: UrlFetcher) -> None:
    class Nowhere(FakeIncoming):
        def put(self, number: int, data: bytes) -> None:
            self.held[number] = b""

    block, piece = 32 << 10, bytes(16 << 10)
    size = 1000 * block
    into = Nowhere(size, block)

    def much(request: Request) -> None:
        raw(request, OK + b"\r\n")
        for _ in range(size // len(piece)):
            request.wfile.write(piece)

    server.behaviour = much
    tracemalloc.start()
    try:
        fetcher.fetch(wish(server.url, b"x" * size), into, lambda _: None, lambda: False)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert not into.missing()
    # The wish itself was made of the whole.
    assert peak - size < 1 << 20


def test_who_the_server_is(server: LyingServer, authority: Authority, tmp_path: Path) -> None:
    other = Authority(tmp_path, "other")
    for pair, hint in (
        (other.vouch("other-server"), r"unable to get.*; ca in section \[updates\]"),
        (authority.vouch("old", expired=True), "expired$"),
        (authority.vouch("elsewhere", host="elsewhere.example"), "mismatch"),
    ):
        with serving(pair) as wrong, pytest.raises(FetchError, match=f"certificate.*{hint}"):
            fetch(UrlFetcher(tls_context(str(authority.ca))), wrong.url, new())
    with pytest.raises(FetchError, match="certificate"):
        fetch(UrlFetcher(tls_context()), server.url, new())


def test_who_the_client_is(authority: Authority, pair: Pair) -> None:
    client = authority.vouch("device-1")
    with serving(pair, clients=authority.ca) as server:
        server.behaviour = lambda request: request.serve(DATA)
        into = new()
        shown = tls_context(str(authority.ca), str(client.cert), str(client.key))
        fetch(UrlFetcher(shown), server.url, into)
        assert into.content == DATA
        with pytest.raises(FetchError):
            fetch(UrlFetcher(tls_context(str(authority.ca))), server.url, new())


def test_nobody_is_there(fetcher: UrlFetcher) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    for url in (f"https://127.0.0.1:{port}/", "https://no-such-host.invalid/", f"https://{'a' * 70}.invalid/"):
        with pytest.raises(FetchError, match="cannot be reached"):
            fetch(fetcher, url, new())


def test_files_that_are_none(tmp_path: Path, authority: Authority) -> None:
    (tmp_path / "no.pem").write_text("no certificate")
    with pytest.raises(FileNotFoundError):
        tls_context(str(tmp_path / "missing.pem"))
    with pytest.raises(ssl.SSLError):
        tls_context(str(tmp_path / "no.pem"))
    with pytest.raises(ssl.SSLError):
        tls_context(str(authority.ca), str(tmp_path / "no.pem"))
