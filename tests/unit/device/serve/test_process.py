"""A process that is no worker, or a broken one: it is given up, and whoever asked it hears of it."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from armlet_runtime import ort
from armlet_runtime.serve.call import Call
from armlet_runtime.serve.interface import Refused, Request
from armlet_runtime.serve.job import Job
from armlet_runtime.serve.process import WorkerProcess

from tests.fakes.serving import gone

JOB = Job("m", "1.0", "/", "/m.onnx", (), 1, (0,), (), ())


class Heard:
    """Notes what a worker's owner is told."""

    def __init__(self) -> None:
        self.ended_ones = threading.Event()
        self.told: list[Any] = []

    def became_ready(self, worker: Any, ready: Any) -> None:
        self.told.append(ready)

    def failed(self, worker: Any, reason: str, fault: str = "trial") -> None:
        self.told.append(reason)

    def ended(self, worker: Any) -> None:
        self.ended_ones.set()


Starts = Callable[[str], tuple[WorkerProcess, Heard]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Starts]:
    """Starts a "worker" that runs some lines of Python; ``s`` is its socket."""
    made: list[WorkerProcess] = []

    def begin(lines: str) -> tuple[WorkerProcess, Heard]:
        script = tmp_path / "python"
        body = f"import os, socket, struct, sys, time\ns = socket.socket(fileno=int(sys.argv[5]))\n{lines}\n"
        (tmp_path / "body.py").write_text(body)
        script.write_text(f'#!/bin/sh\nexec {sys.executable} {tmp_path}/body.py "$@"\n')
        script.chmod(0o755)
        heard = Heard()
        made.append(WorkerProcess(JOB, heard, str(script)))
        return made[-1], heard

    yield begin
    for worker in made:
        worker.kill("ends with the test")


def call() -> Call:
    x = ort.Tensor.from_list([1.0], "float32")
    return Call(Request("m", None, {"x": x}, None, time.monotonic() + 30))


FRAME = "def frame(text, body=0): s.sendall(struct.pack('<4sIQ', b'AWF1', len(text), body) + text)\n"


@pytest.mark.parametrize(
    "lines",
    [
        "s.sendall(b'HTTP/1.1 200 OK' * 9)",
        FRAME + "frame(b'{\"op\": 3}')",
        FRAME + 'frame(b\'{"op": "ready"}\')',
        FRAME + 'frame(b\'{"op": "ready", "ready": {"nodes": 7}}\')',
        FRAME + 'frame(b\'{"op": "answer"}\', 2**62)',
    ],
)
def test_nonsense_ends_it(start: Starts, lines: str) -> None:
    worker, heard = start(f"{lines}\ntime.sleep(60)")
    asked = call()
    assert worker.compute(asked)
    assert heard.ended_ones.wait(10)
    assert worker.how.startswith("spoke nonsense")
    with pytest.raises(Refused, match="spoke nonsense") as caught:
        asked.result()
    assert caught.value.kind == "internal"
    assert gone(worker.pid)
    # One that is gone never sees a call, and so does not lose it.
    assert not worker.compute(call())


@pytest.mark.parametrize(
    ("lines", "how"),
    [("sys.exit(3)", "ended with exit code 3"), ("os.kill(os.getpid(), 11)", "was ended by SIGSEGV")],
)
def test_how_it_ended(start: Starts, lines: str, how: str) -> None:
    worker, heard = start(lines)
    assert heard.ended_ones.wait(10)
    assert worker.how == how
    assert worker.crashed == ("SIGSEGV" in how)


def test_one_that_hangs_up_and_stays(start: Starts) -> None:
    worker, heard = start("s.close()\ntime.sleep(60)")
    began = time.monotonic()
    assert heard.ended_ones.wait(20)
    assert time.monotonic() - began < 10
    assert worker.how == "hung up, and did not end"
    assert gone(worker.pid)


def test_one_that_does_not_stop_when_told(start: Starts) -> None:
    worker, heard = start("time.sleep(60)")
    worker.stop(0.2)
    assert heard.ended_ones.wait(10)
    assert worker.how == "did not end when told to"


def test_an_answer_to_another_call_is_no_answer(start: Starts) -> None:
    lines = FRAME + 'frame(b\'{"op": "answer", "id": -1}\')\ntime.sleep(0.3)\nsys.exit(0)'
    worker, _ = start(lines)
    asked = call()
    worker.compute(asked)
    with pytest.raises(Refused, match="ended with exit code 0"):
        asked.result()


def test_no_such_interpreter() -> None:
    with pytest.raises(OSError, match="No such file"):
        WorkerProcess(JOB, Heard(), "/none/python")
