"""Heads of requests, strictly read; answers, as they go onto the wire."""

from __future__ import annotations

import contextlib

import pytest
from armlet_runtime.serve.http_message import HttpError, Response, parse_head, render
from hypothesis import given
from hypothesis import strategies as st

FIELDS = 8


def parse(*lines: str) -> object:
    return parse_head("\r\n".join(lines).encode("latin-1"), FIELDS)


def test_a_plain_request() -> None:
    head = parse_head(
        b"POST /v2/models/a%2Fb/infer?x=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 12\r\nX: 1\r\nx:  2 ", FIELDS
    )
    assert head.method == "POST"
    assert head.path == ("v2", "models", "a/b", "infer")
    assert head.query == "x=1"
    assert head.length == 12
    assert head.headers["x"] == "1, 2"
    assert head.keep_alive
    assert not head.expects_continue


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("/v2/", ("v2",)),
        ("/", ("",)),
        ("/v2//x", ("v2", "", "x")),
        ("http://host:80/v2/health", ("v2", "health")),
        ("/v2/models/%C3%A4", ("v2", "models", "ä")),
        ("/v2/../x", ("v2", "..", "x")),
    ],
)
def test_paths(target: str, path: tuple[str, ...]) -> None:
    assert parse_head(f"GET {target} HTTP/1.1\r\nHost: h".encode(), FIELDS).path == path


@pytest.mark.parametrize(
    ("connection", "version", "kept"),
    [
        ("", "1.1", True),
        ("", "1.0", False),
        ("close", "1.1", False),
        ("Keep-Alive", "1.0", True),
        ("a, CLOSE", "1.1", False),
    ],
)
def test_whether_the_connection_is_kept(connection: str, version: str, kept: bool) -> None:
    raw = f"GET / HTTP/{version}\r\nHost: h\r\nConnection: {connection}".encode()
    assert parse_head(raw, FIELDS).keep_alive is kept


@pytest.mark.parametrize(
    ("status", "lines"),
    [
        (400, ("GET /",)),
        (400, ("GET / HTTP/1.1",)),
        (400, ("GET  / HTTP/1.1", "Host: h")),
        (400, ("G(T / HTTP/1.1", "Host: h")),
        (400, ("GET /\x01 HTTP/1.1", "Host: h")),
        (400, ("GET / HTTP/x", "Host: h")),
        (400, ("GET v2 HTTP/1.1", "Host: h")),
        (400, ("OPTIONS * HTTP/1.1", "Host: h")),
        (400, ("GET /%FF HTTP/1.1", "Host: h")),
        (400, ("GET / HTTP/1.1", "Host: h", " folded")),
        (400, ("GET / HTTP/1.1", "Host : h")),
        (400, ("GET / HTTP/1.1", "Host: h\nX: y")),
        (400, ("GET / HTTP/1.1", "Host: h\0")),
        (400, ("GET / HTTP/1.1", "Host: a", "Host: b")),
        (400, ("POST / HTTP/1.1", "Host: h", "Content-Length: 1", "Content-Length: 1")),
        (400, ("POST / HTTP/1.1", "Host: h", "Content-Length: +1")),
        (400, ("POST / HTTP/1.1", "Host: h", "Content-Length: 1_0")),
        (400, ("POST / HTTP/1.1", "Host: h", "Content-Length: -1")),
        (400, ("POST / HTTP/1.1", "Host: h", "Content-Length: " + "9" * 30)),
        (400, ("POST / HTTP/1.1", "Host: h", "Content-Length: 1", "Transfer-Encoding: chunked")),
        (411, ("POST / HTTP/1.1", "Host: h", "Transfer-Encoding: chunked")),
        (417, ("POST / HTTP/1.1", "Host: h", "Expect: tea")),
        (431, ("GET / HTTP/1.1", "Host: h", *(f"X{number}: y" for number in range(FIELDS)))),
        (505, ("GET / HTTP/2.0", "Host: h")),
    ],
)
def test_what_is_refused(status: int, lines: tuple[str, ...]) -> None:
    with pytest.raises(HttpError) as caught:
        parse(*lines)
    assert caught.value.status == status


@given(st.binary(max_size=200))
def test_no_head_makes_it_fail_otherwise(raw: bytes) -> None:
    with contextlib.suppress(HttpError):
        assert parse_head(b"POST / HTTP/1.1\r\nHost: h\r\n" + raw, FIELDS).length >= 0


def test_an_answer_and_its_head_alone() -> None:
    response = Response(503, (b"ab", memoryview(b""), bytearray(b"c")), headers=(("Retry-After", "1"),))
    parts = render(response, with_body=True, keep_alive=False)
    head, body = b"".join(parts).split(b"\r\n\r\n")
    assert body == b"abc"
    lines = head.decode().split("\r\n")
    assert lines[0] == "HTTP/1.1 503 Service Unavailable"
    assert {"Content-Length: 3", "Retry-After: 1", "Connection: close"} <= set(lines)
    assert b"".join(render(response, with_body=False, keep_alive=True)).endswith(b"Connection: keep-alive\r\n\r\n")


def test_no_answer_can_be_split_by_what_it_says() -> None:
    head = b"".join(render(Response(499, headers=(("X", "ü"),)), with_body=True, keep_alive=True)).decode("latin-1")
    assert head.startswith("HTTP/1.1 499 ")
