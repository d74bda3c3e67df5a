"""Whatever comes over a connection, the next client is answered; so it is when descriptors have run out."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from armlet_runtime.serve.http import Server
from armlet_runtime.serve.limits import Limits
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import ROOT
from tests.fakes.fake_engine import FakeEngine
from tests.fakes.service import Client, serving

BODY = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1]}]}).encode()
FRAGMENTS = [
    b"GET /v2 HTTP/1.1\r\nHost: h\r\n\r\n",
    b"GET /v2 HTTP/1.0\r\n\r\n",
    b"HEAD /metrics HTTP/1.1\r\nHost: h\r\n\r\n",
    b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY),
    b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n",
    b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n",
    b"POST /v2/repository/index HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"Content-Length: 4\r\n",
    b"Connection: close\r\n",
    b"\r\n",
    b"\r",
    b"\n",
    b"{}",
]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    limits = Limits(head_seconds=0.5, stall_seconds=0.5, idle_seconds=1.0, head_bytes=2048, body_bytes=4096)
    with serving(FakeEngine(), limits) as (one, _):
        yield one


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(FRAGMENTS) | st.binary(max_size=40), max_size=8), st.booleans())
def test_any_stream(server: Server, stream: list[bytes], half_closed: bool) -> None:
    with Client(server) as client, contextlib.suppress(OSError):
        for part in stream:
            client.send(part)
        if half_closed:
            client.socket.shutdown(socket.SHUT_WR)
    with Client(server) as other:
        assert other.ask("POST", "/v2/models/echo/infer", BODY).status == 200
    assert server.live()


FEW = """
import resource, sys
from tests.fakes.fake_engine import FakeEngine
from tests.fakes.service import serving
with serving(FakeEngine()) as (server, _):
    resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))
    print(server.port, flush=True)
    sys.stdin.readline()
"""


def test_without_free_descriptors_it_waits_and_then_goes_on() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", FEW],
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'device'}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        port = int(process.stdout.readline())
        stat = Path(f"/proc/{process.pid}/stat")
        with contextlib.ExitStack() as stack:
            for _ in range(40):
                stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            time.sleep(0.3)
            before = ticks(stat)
            time.sleep(1.0)
            # It does not go round and round: at most a fifth of a core's 100 ticks per second.
            assert ticks(stat) - before < 20
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.settimeout(10)
            client.sendall(FRAGMENTS[0])
            assert client.recv(100).startswith(b"HTTP/1.1 200")
        process.kill()


def ticks(stat: Path) -> int:
    """CPU time of a process so far, in hundredths of a second."""
    words = stat.read_text().rpartition(")")[2].split()
    return int(words[11]) + int(words[12])
