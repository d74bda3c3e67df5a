"""The inference service on the target: its Python and its library, as its core, asked from outside over HTTP."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import numpy
import pytest
from armlet_runtime.ort import Tensor

from armlet.process import Command, HostRunner
from tests.emulated import MODEL, Emulated, children, emulated
from tests.served import HEADER_LENGTH, request_of, tensors_of
from tests.smoked import REAL

pytestmark = REAL

SKUS = ("demo-a53", "demo-a7")
XNN = "XnnpackExecutionProvider"


@pytest.fixture(scope="module", params=SKUS)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Emulated:
    return emulated(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def service(made: Emulated) -> Iterator[int]:
    """It serves; the process."""
    with made.device.serving(made.command, made.environment, seconds=120) as process:
        yield process.pid
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


def test_it_answers_as_x86_does(made: Emulated, service: int) -> None:
    assert made.device.demand_golden(made.payload) == 2
    known = [sample for sample in made.samples if sample.expected is not None]
    for sample in known[:2]:
        ((name, pixels),) = sample.inputs.items()
        (scores,) = made.device.infer(MODEL, {name: Tensor(pixels.tobytes(), "float32", pixels.shape)}).values()
        assert numpy.argmax(scores.tolist()) == sample.expected


def test_xnnpack_runs_the_convolutions(made: Emulated, service: int) -> None:
    told = made.device.json(f"/v2/models/{MODEL}")["armlet"]
    assert told["providers"][0] == XNN
    assert {one["provider"] for one in told["nodes"] if one["operator"] == "Conv"} == {XNN}
    assert told["skipped"] == {}


def test_a_worker_that_is_killed_comes_back(made: Emulated, service: int) -> None:
    (worker,) = children(service)
    os.kill(worker, signal.SIGKILL)
    end = time.monotonic() + 60
    while children(service) in ([], [worker]) or made.device.state(MODEL)[0] != "READY":
        assert time.monotonic() < end
        time.sleep(0.1)
    assert made.device.demand_golden(made.payload) == 2


def test_the_json_before_a_tensor_may_have_any_length(made: Emulated, service: int) -> None:
    """The tensor then begins at an odd address, which 32-bit ARM cannot load all types from."""
    ((name, pixels),) = made.samples[0].inputs.items()
    tensor = Tensor(pixels.tobytes(), "float32", pixels.shape)
    body, length = request_of({name: tensor})
    wanted = made.device.infer(MODEL, {name: tensor})
    for odd in range(1, 4):
        padded = body[:length] + b" " * odd + body[length:]
        headers = {"Inference_Header_Content_Length": str(length + odd)}
        status, fields, data = made.device.ask(f"/v2/models/{MODEL}/infer", padded, **headers)
        assert status == 200
        got = tensors_of(data, int(fields[HEADER_LENGTH]))
        assert {key: one.tobytes() for key, one in got.items()} == {key: one.tobytes() for key, one in wanted.items()}


_ODD = """
import sys
from armlet_runtime import ort
library, model, size = sys.argv[1:]
session = ort.InferenceSession(model, providers=["XNNPACK", "CPU"], library=library)
(taken,) = session.get_inputs()
for odd in range(4):
    data = memoryview(bytearray(int(size) + odd))[odd:]
    (scores,) = session.run(None, {taken.name: ort.Tensor(data, "float32", taken.shape)})
print("all four")
"""


def test_a_tensor_at_an_odd_address_is_taken(made: Emulated) -> None:
    """XNNPACK ended the process with SIGBUS there, on 32-bit ARM."""
    ((_, pixels),) = made.samples[0].inputs.items()
    files = (made.library, next(made.payload.glob("model.*")), pixels.nbytes)
    command = (*made.python, "-c", _ODD, *map(str, files))
    done = HostRunner().run(Command(argv=command, env=made.environment))
    assert (done.code, done.tail[-1]) == (0, "all four"), done.output
