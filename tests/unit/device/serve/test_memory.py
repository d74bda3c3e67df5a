"""The service's memory does not grow with the number of requests."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from armlet_runtime.serve.unchanged import sha256_of

from tests.conftest import ROOT

REQUESTS = 10_000
# A leak of 200 bytes per request would be seen.
MOST_GROWTH = 2 << 20

SERVE_AND_ASK = """
import json, os, sys
from armlet_runtime.serve.front import front_end
from armlet_runtime.serve.limits import Limits
from armlet_runtime.serve.listening import TcpAddress
from armlet_runtime.serve.metrics import Metrics
from armlet_runtime.serve.sysinfo import resident_bytes
from tests.fakes.fake_engine import FakeEngine
from tests.fakes.service import Client

def ask(client, count):
    tensor = {"name": "x", "datatype": "FP32", "shape": [256], "parameters": {"binary_data_size": 1024}}
    header = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    for number in range(count):
        if number % 10:
            answer = client.ask("POST", "/v2/models/echo/infer", header + bytes(1024),
                                Inference_Header_Content_Length=str(len(header)))
            assert answer.status == 200
        else:
            assert client.ask("POST", "/v2/models/echo/infer", b"{").status == 400

server = front_end(FakeEngine(), Metrics(), TcpAddress(port=0), Limits())
server.start()
sizes = []
with Client(server) as client:
    for count in (2000, int(sys.argv[1])):
        ask(client, count)
        sizes.append(resident_bytes(os.getpid()))
server.stop()
print(json.dumps(sizes))
"""


def test_ten_thousand_requests_leave_memory_as_it_was() -> None:
    run = subprocess.run(
        [sys.executable, "-c", SERVE_AND_ASK, str(REQUESTS)],
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'device'}"},
        stdout=subprocess.PIPE,
        check=True,
        timeout=240,
    )
    before, after = json.loads(run.stdout)
    assert after - before < MOST_GROWTH


def test_a_worker_is_without_what_it_does_not_need() -> None:
    # OpenSSL and NumPy: some 3 and 20 MB of each worker.
    code = "import sys, armlet_runtime.serve.worker; print(*(name for name, it in sys.modules.items() if it))"
    run = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(ROOT / "device")}, stdout=subprocess.PIPE, check=True
    )
    assert not {"_hashlib", "_ssl", "numpy"} & set(run.stdout.decode().split())


@pytest.mark.parametrize("size", [0, 1, (64 << 10) - 1, 64 << 10, 200_000])
def test_a_file_is_hashed_as_it_was_signed(tmp_path: Path, size: int) -> None:
    (tmp_path / "file").write_bytes(bytes(range(250)) * (size // 250) + b"x" * (size % 250))
    assert sha256_of(tmp_path / "file") == hashlib.sha256((tmp_path / "file").read_bytes()).hexdigest()
