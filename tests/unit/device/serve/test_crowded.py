"""More clients than there are places: slow ones give way, and whoever finds none is told so."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from pathlib import Path
from subprocess import PIPE

import pytest
from armlet_runtime.serve.limits import Limits

from tests.conftest import ROOT
from tests.fakes.fake_engine import FakeEngine
from tests.fakes.service import Answer, Client, serving

ASK = b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n"
BODY = b'{"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "data": [1, 2]}]}'
FEW = Limits(connections=8)


def ask(client: Client) -> Answer:
    client.send(ASK % len(BODY) + BODY)
    return client.answer()


@pytest.mark.parametrize("begun", [b"", b"POST /v2/mo", ASK % 100_000], ids=["nothing", "head", "body"])
def test_slow_clients_give_way(begun: bytes) -> None:
    with serving(FakeEngine(), FEW) as (server, _), contextlib.ExitStack() as stack:
        slow = [stack.enter_context(Client(server)) for _ in range(8)]
        for client in slow:
            client.send(begun)
        time.sleep(0.3)
        for client in slow:
            # They do go on, byte by byte.
            client.send(b"a" if begun else b"")
        with Client(server) as client:
            assert ask(client).status == 200
        if begun:
            assert slow[0].answer().status == 408
        assert slow[0].at_end()


def test_a_slow_client_gives_way_before_an_idle_one() -> None:
    with serving(FakeEngine(), FEW) as (server, _), contextlib.ExitStack() as stack:
        idle = [stack.enter_context(Client(server)) for _ in range(7)]
        assert {ask(client).status for client in idle} == {200}
        slow = stack.enter_context(Client(server))
        time.sleep(1.1)
        slow.send(b"GET")
        time.sleep(0.2)
        with Client(server) as client:
            assert ask(client).status == 200
        assert slow.answer().status == 408
        assert {ask(client).status for client in idle} == {200}


def test_a_body_that_comes_at_a_pace_keeps_its_place() -> None:
    piece = 64 << 10
    with serving(FakeEngine(), Limits(connections=1)) as (server, _), Client(server) as client:
        client.send(ASK % (20 * piece))
        for _ in range(10):
            client.send(b" " * piece)
            time.sleep(0.03)
        with Client(server) as other:
            assert other.answer().status == 503
        client.send(b" " * piece * 10)
        assert client.answer().status == 400


def test_bodies_that_do_not_come_hold_no_memory_from_those_that_do() -> None:
    with (
        serving(FakeEngine(), Limits(body_bytes=1000, bodies_bytes=1500)) as (server, _),
        Client(server) as slow,
        Client(server) as other,
    ):
        slow.send(ASK % 1000)
        time.sleep(0.2)
        other.send(ASK % 1000 + BODY + b" " * (1000 - len(BODY)))
        assert other.answer().status == 200
        assert slow.answer().status == 408


def test_everybody_who_is_turned_away_is_told() -> None:
    with serving(FakeEngine(), FEW) as (server, _), contextlib.ExitStack() as stack:
        busy = [stack.enter_context(Client(server)) for _ in range(8)]
        assert {ask(client).status for client in busy} == {200}
        turned_away = []
        for _ in range(30):
            client = stack.enter_context(Client(server))
            turned_away.append(client.answer().status)
        assert turned_away == [503] * 30


FEW_FILES = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
from tests.fakes.fake_engine import FakeEngine
from tests.fakes.service import Client, serving
with serving(FakeEngine()) as (server, _):
    print(server.port, flush=True)
    sys.stdin.read()
"""


def test_few_files_are_enough() -> None:
    """Clients alone cannot take all descriptors: workers and payloads need some."""
    environment = {"PYTHONPATH": f"{ROOT}:{ROOT / 'device'}"}
    with (
        subprocess.Popen(
            [sys.executable, "-c", FEW_FILES], env=environment, stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True
        ) as process,
        contextlib.ExitStack() as stack,
    ):
        assert process.stdout is not None
        port = int(process.stdout.readline())
        clients = [stack.enter_context(socket.create_connection(("127.0.0.1", port), 10)) for _ in range(100)]
        time.sleep(0.3)
        files = len(list(Path(f"/proc/{process.pid}/fd").iterdir()))
        assert files < 60
        clients[-1].close()
        with socket.create_connection(("127.0.0.1", port), 10) as client:
            client.sendall(b"GET /v2 HTTP/1.1\r\nHost: h\r\n\r\n")
            assert client.recv(100).startswith(b"HTTP/1.1 200 ")
        _, log = process.communicate("")
    assert log.splitlines() == ["at most 16 connections instead of 64: this process may open 64 files"]
