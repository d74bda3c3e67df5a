"""The server before slow, broken, hurried and hostile clients."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from armlet_runtime.serve.http import Server
from armlet_runtime.serve.limits import Limits
from armlet_runtime.serve.listening import TcpAddress, UnixAddress
from armlet_runtime.serve.routes import Routes, lanes

from tests.fakes.fake_engine import FakeEngine
from tests.fakes.service import Client, serving

INFER = "/v2/models/echo/infer"
BODY = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "data": [1, 2]}]}
JSON = json.dumps(BODY).encode()
RAW = b"POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s" % (INFER.encode(), len(JSON), JSON)
QUICK = Limits(head_seconds=1.0, stall_seconds=1.0, body_seconds=5.0, idle_seconds=1.0)


def eventually(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    """Wait for another thread to have done something."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(FakeEngine()) as (one, _):
        yield one


def test_many_requests_over_one_connection(server: Server) -> None:
    with Client(server) as client:
        assert [client.ask("POST", INFER, BODY).status for _ in range(50)] == [200] * 50


def test_pipelined_requests_are_answered_in_their_order(server: Server) -> None:
    with Client(server) as client:
        one = (
            b"POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}GET /v2/health/live HTTP/1.1\r\nHost: h\r\n\r\n"
        )
        client.send((one % INFER.encode()) * 20 + b"GET /nothing HTTP/1.1\r\nHost: h\r\n\r\n" * 2000)
        assert [client.answer().status for _ in range(40)] == [400, 200] * 20
        assert {client.answer().status for _ in range(2000)} == {404}


def test_a_request_may_come_byte_by_byte(server: Server) -> None:
    raw = b"\r\nPOST /v2/repository/index HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}"
    with Client(server) as client:
        for byte in raw:
            client.send(bytes([byte]))
            time.sleep(0.001)
        assert client.answer().status == 200


def test_head_has_the_length_and_no_body(server: Server) -> None:
    with Client(server) as client:
        body = client.ask("GET", "/v2").raw
        answer = client.ask("HEAD", "/v2")
        assert (answer.status, answer.headers["content-length"]) == (200, str(len(body)))
        assert client.ask("GET", "/v2/health/live").status == 200


def test_http_1_0_is_answered_and_closed(server: Server) -> None:
    with Client(server) as client:
        client.send(b"GET /v2/health/live HTTP/1.0\r\n\r\n")
        answer = client.answer()
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert client.at_end()


def test_continue_is_said_before_a_body_that_will_be_read(server: Server) -> None:
    with Client(server) as client:
        head = f"POST {INFER} HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n"
        client.send((head % 2).encode())
        assert client.line() == b"HTTP/1.1 100 Continue"
        client.send(b"{}")
        assert client.answer().status == 400
        client.send((head % (2 << 30)).encode())
        assert client.answer().status == 413


@pytest.mark.parametrize("size", [2 << 30, (32 << 20) + 1, 10**18])
def test_two_gigabytes_are_refused_before_they_are_read(server: Server, size: int) -> None:
    with Client(server) as client:
        client.send(f"POST {INFER} HTTP/1.1\r\nHost: h\r\nContent-Length: {size}\r\n\r\n".encode())
        answer = client.answer()
        assert answer.status == 413
        assert str(size) in answer.body["error"]
        assert client.at_end()


def test_the_refusal_arrives_although_the_client_goes_on_sending(server: Server) -> None:
    with Client(server) as client:
        client.send(f"POST {INFER} HTTP/1.1\r\nHost: h\r\nContent-Length: {2 << 30}\r\n\r\n".encode())
        client.send(bytes(4 << 20))
        assert client.answer().status == 413


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: h\r\nX: " + b"a" * 20000, 431),
        (b"GET / HTTP/1.1\r\nHost: h\r\n" + b"".join(b"X%d: 1\r\n" % n for n in range(100)) + b"\r\n", 431),
        (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400),
        (b"POST /v2 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
    ],
)
def test_bad_heads_end_the_connection(server: Server, raw: bytes, status: int) -> None:
    with Client(server) as client:
        client.send(raw)
        assert client.answer().status == status
        assert client.at_end()


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("POST", "/v2", "GET, HEAD"),
        ("GET", INFER, "POST"),
        ("DELETE", "/v2/models/echo", "GET, HEAD"),
        ("PUT", INFER, "POST"),
    ],
)
def test_wrong_methods_are_told_the_right_ones(server: Server, method: str, path: str, allow: str) -> None:
    with Client(server) as client:
        answer = client.ask(method, path)
        assert (answer.status, answer.headers["allow"]) == (405, allow)


@pytest.mark.parametrize(
    "sent",
    [b"GET /v2 HT", b"POST /v2/repository/index HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n12345"],
    ids=["half a head", "half a body"],
)
def test_a_client_that_stalls_is_told_and_holds_nobody_up(sent: bytes) -> None:
    with serving(FakeEngine(), QUICK) as (server, counted), contextlib.ExitStack() as stack:
        stalled = [stack.enter_context(Client(server)) for _ in range(30)]
        for client in stalled:
            client.send(sent)
        with Client(server) as other:
            assert other.ask("POST", INFER, BODY).status == 200
        assert counted[0] == ("infer", 200)
        for client in stalled:
            assert client.answer().status == 408
            assert client.at_end()
        eventually(lambda: server.connections == 0)


def test_a_client_that_asks_nothing_is_closed_without_a_word() -> None:
    with serving(FakeEngine(), QUICK) as (server, counted), Client(server) as client:
        assert client.at_end()
        assert counted == []


def test_a_client_that_does_not_read_its_answer_is_given_up() -> None:
    engine = FakeEngine()
    count = 4 << 20
    with serving(engine, QUICK) as (server, _), Client(server) as client:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        header = (
            b'{"inputs":[{"name":"x","datatype":"FP32","shape":[%d],"parameters":{"binary_data_size":%d}}],'
            b'"parameters":{"binary_data_output":true}}' % (count, 4 * count)
        )
        client.send(
            b"POST %s HTTP/1.1\r\nHost: h\r\nInference-Header-Content-Length: %d\r\nContent-Length: %d\r\n\r\n"
            % (INFER.encode(), len(header), len(header) + 4 * count)
        )
        client.send(header + bytes(4 * count))
        eventually(lambda: bool(engine.seen))
        eventually(lambda: server.connections == 0, 10.0)


def test_a_client_that_leaves_cancels_its_inference() -> None:
    engine = FakeEngine(gate=threading.Event())
    with serving(engine) as (server, _):
        with Client(server) as client:
            client.send(RAW)
            eventually(lambda: engine.active == 1)
        eventually(lambda: engine.cancelled == 1)
        eventually(lambda: server.connections == 0)


def test_only_so_much_is_read_ahead() -> None:
    engine = FakeEngine(gate=threading.Event())
    with serving(engine) as (server, _), Client(server, seconds=0.5) as client:
        client.send(RAW)
        with pytest.raises(TimeoutError):
            client.send(bytes(64 << 20))


def test_a_client_may_close_its_side_and_read_on(server: Server) -> None:
    with Client(server) as client:
        client.send(b"GET /v2 HTTP/1.1\r\nHost: h\r\n\r\n" * 3 + b"GET /half")
        client.socket.shutdown(socket.SHUT_WR)
        assert [client.answer().status for _ in range(4)] == [200] * 3 + [400]
        assert client.at_end()


@pytest.mark.parametrize("sent", [RAW[:-1], RAW[: -len(JSON)], RAW[:20]], ids=["body", "no body", "head"])
def test_a_request_that_its_client_cuts_short_is_told(server: Server, sent: bytes) -> None:
    with Client(server) as client:
        client.send(sent)
        client.socket.shutdown(socket.SHUT_WR)
        answer = client.answer()
        assert (answer.status, answer.headers["connection"]) == (400, "close")
        assert client.at_end()


def test_a_client_that_closes_its_side_gives_up_its_inference() -> None:
    engine = FakeEngine(gate=threading.Event())
    with serving(engine) as (server, _), Client(server) as client:
        client.send(RAW)
        eventually(lambda: engine.active == 1)
        client.socket.shutdown(socket.SHUT_WR)
        assert client.answer().status == 499


def test_a_client_that_resets_its_connection_does_no_harm(server: Server) -> None:
    for _ in range(20):
        with Client(server) as client:
            client.send(b"POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n123" % INFER.encode())
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with Client(server) as client:
        assert client.ask("GET", "/v2").status == 200


def test_overload_is_told_at_once_and_passes() -> None:
    limits = Limits(inferences=2, waiting=2, retry_after=3.0)
    engine = FakeEngine(gate=threading.Event())
    with serving(engine, limits) as (server, _), contextlib.ExitStack() as stack:
        waiting = [stack.enter_context(Client(server)) for _ in range(4)]
        for client in waiting:
            client.send(RAW)
        eventually(lambda: server.lanes["infer"].room == 0)
        with Client(server) as client:
            answer = client.ask("POST", INFER, BODY)
            assert (answer.status, answer.headers["retry-after"]) == (503, "3")
            assert client.ask("GET", "/v2/health/ready").status == 200
            assert engine.gate is not None
            engine.gate.set()
            assert [one.answer().status for one in waiting] == [200] * 4
            eventually(lambda: server.lanes["infer"].room == 4)
            assert client.ask("POST", INFER, BODY).status == 200


def test_bodies_in_hand_are_bounded_together() -> None:
    limits = Limits(body_bytes=1000, bodies_bytes=1500)
    with serving(FakeEngine(), limits) as (server, _), Client(server) as first, Client(server) as second:
        head = b"POST %s HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1000\r\n\r\n" % INFER.encode()
        first.send(head)
        assert b"100 Continue" in first.line()
        first.send(b"1")
        second.send(head)
        answer = second.answer()
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        first.send(b"1" * 999)
        assert first.answer().status == 400
        with Client(server) as third:
            assert third.ask("POST", INFER, b"1" * 1000).status == 400


def test_one_connection_too_many_is_turned_away_and_an_idle_one_is_not_in_the_way() -> None:
    with serving(FakeEngine(), Limits(connections=4)) as (server, _), contextlib.ExitStack() as stack:
        idle = [stack.enter_context(Client(server)) for _ in range(4)]
        for client in idle:
            client.ask("GET", "/v2")
        with Client(server) as client:
            answer = client.answer()
            assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        time.sleep(1.1)
        with Client(server) as client:
            assert client.ask("GET", "/v2").status == 200
        assert idle[0].at_end()
        assert [client.ask("GET", "/v2").status for client in idle[1:]] == [200] * 3


def test_the_end_lets_what_is_under_way_end() -> None:
    engine = FakeEngine(seconds=0.3)
    with serving(engine) as (server, _), Client(server) as client, Client(server) as idle:
        idle.ask("GET", "/v2")
        client.send(RAW)
        eventually(lambda: engine.active == 1)
        ending = threading.Thread(target=server.stop, args=(5.0,))
        ending.start()
        answer = client.answer()
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert idle.at_end()
        ending.join(5.0)
        assert not ending.is_alive()
        with pytest.raises(ConnectionRefusedError):
            Client(server)
        assert not server.live()


def test_the_end_breaks_off_nobody_who_has_connected() -> None:
    with serving(FakeEngine()) as (server, _), contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(server)) for _ in range(60)]
        ending = threading.Thread(target=server.stop, args=(5.0,))
        ending.start()
        for client in clients:
            client.send(RAW)
        assert {client.answer().status for client in clients} <= {200, 503}
        ending.join(5.0)
        assert not ending.is_alive()


def test_a_bug_in_an_endpoint_is_500_and_no_traceback_for_the_client(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    engine = FakeEngine()
    engine.functions["echo"] = (engine.functions["echo"][0], lambda inputs: {"y": inputs["nothing"]})
    with serving(engine) as (broken, _), Client(broken) as client:
        answer = client.ask("POST", INFER, BODY)
        assert answer.status == 500
        assert "Traceback" not in answer.raw.decode()
        assert client.ask("GET", "/v2").status == 200
    assert caplog.records


def test_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with serving(FakeEngine(), address=UnixAddress(str(path), 0o600)) as (server, _), Client(server) as client:
        assert client.ask("POST", INFER, BODY).status == 200
        assert path.stat().st_mode & 0o777 == 0o600
    assert not path.exists()


def test_the_reading_thread_is_live(server: Server) -> None:
    assert server.live()


def test_one_that_never_started_frees_its_port() -> None:
    routes = Routes(FakeEngine(), Limits(), lambda: "", lambda name, status: None)
    server = Server(TcpAddress(port=0), routes, lanes(Limits()), Limits())
    server.stop()
    with pytest.raises(ConnectionRefusedError):
        Client(server)
    assert not server.live()


def test_a_request_whose_deadline_passed_while_it_waited_never_reaches_the_engine() -> None:
    engine = FakeEngine(gate=threading.Event())
    with (
        serving(engine, Limits(inferences=1, waiting=1)) as (server, _),
        Client(server) as first,
        Client(server) as late,
    ):
        first.send(RAW)
        eventually(lambda: engine.active == 1)
        late.socket.settimeout(10)
        hurried = json.dumps({**BODY, "parameters": {"timeout": 1000}}).encode()
        late.send(
            b"POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s" % (INFER.encode(), len(hurried), hurried)
        )
        eventually(lambda: server.lanes["infer"].room == 0)
        time.sleep(0.01)
        assert engine.gate is not None
        engine.gate.set()
        assert [first.answer().status, late.answer().status] == [200, 504]
        assert len(engine.seen) == 1
