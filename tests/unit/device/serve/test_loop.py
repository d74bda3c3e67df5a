"""A sensor's loop and inference beside it."""

from __future__ import annotations

import array
import functools
import gc
import re
import struct
import threading
import time
import tracemalloc
from typing import Any

import numpy as np
import onnx
import pytest
from armlet_runtime import ort
from armlet_runtime.serve.loop import Frame, SensorLoop
from armlet_runtime.serve.queue import Policy

from tests.conftest import ROOT
from tests.fakes.serving import until


@pytest.fixture
def summing(build: Any, library: ort.Library) -> ort.InferenceSession:
    """``z = x + y`` of [1, 3]."""
    return ort.InferenceSession(
        build("Add", [("x", "FLOAT", [1, 3]), ("y", "FLOAT", [1, 3])], [("z", "FLOAT", [1, 3])]), library=library
    )


def fill(frame: Frame, value: float) -> None:
    for tensor in frame.inputs.values():
        tensor.data[:4] = struct.pack("f", value)


def first(frame: Frame) -> float:
    value: float = frame.outputs["z"].memoryview[0, 0]
    return value


def test_readings_come_out_in_order(summing: ort.InferenceSession) -> None:
    got: list[float] = []
    with SensorLoop(summing, lambda frame: got.append(first(frame)), policy="block", patience=30.0) as loop:
        for number in range(50):
            frame = loop.take()
            fill(frame, number)
            assert loop.give(frame)
    assert got == [2.0 * number for number in range(50)]
    assert (loop.computed, loop.dropped) == (50, 0)


@pytest.mark.parametrize(
    ("policy", "kept"), [("drop-oldest", [0, 7, 8, 9]), ("drop-newest", [0, 1, 2, 3]), ("block", [0, 1, 2, 3])]
)
def test_the_sensor_never_waits(summing: ort.InferenceSession, policy: Policy, kept: list[int]) -> None:
    gate, inside, got = threading.Event(), threading.Event(), []

    def act(frame: Frame) -> None:
        got.append(first(frame) / 2)
        inside.set()
        gate.wait(30)

    with SensorLoop(summing, act, capacity=3, policy=policy) as loop:
        began = time.monotonic()
        for number in range(10):
            frame = loop.take()
            fill(frame, number)
            loop.give(frame)
            inside.wait(30)
        assert time.monotonic() - began < 5.0
        gate.set()
    assert got == kept
    assert (loop.computed, loop.dropped) == (4, 6)


def test_the_sensor_waits_as_long_as_it_has_patience(summing: ort.InferenceSession) -> None:
    gate, inside = threading.Event(), threading.Event()

    def act(frame: Frame) -> None:
        inside.set()
        gate.wait(30)

    with SensorLoop(summing, act, capacity=1, policy="block", patience=0.1) as loop:
        loop.give(loop.take())
        inside.wait(30)
        loop.give(loop.take())
        began = time.monotonic()
        assert not loop.give(loop.take())
        assert 0.1 <= time.monotonic() - began < 5.0
        gate.set()


def test_buffers_are_made_once(summing: ort.InferenceSession) -> None:
    seen: set[int] = set()
    with SensorLoop(summing, lambda frame: seen.add(id(frame)), capacity=2, policy="block", patience=30.0) as loop:

        def run(count: int) -> None:
            for _ in range(count):
                loop.give(loop.take())

        run(50)
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        run(2000)
        until(lambda: loop.computed == 2050)
        # A call through ctypes leaves small cycles for the collector.
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
    assert len(seen) <= 4
    assert grown < 16_000


def test_free_dimensions(build: Any, library: ort.Library) -> None:
    session = ort.InferenceSession(
        build("Add", [("x", "FLOAT", ["n", 3]), ("y", "FLOAT", ["n", 3])], [("z", "FLOAT", ["n", 3])]), library=library
    )
    with pytest.raises(ValueError, match='"x" has free dimensions'):
        SensorLoop(session, lambda _: None)
    got: list[Any] = []
    shapes = {"x": (2, 3), "y": (2, 3)}
    with SensorLoop(session, lambda frame: got.append(np.asarray(frame.outputs["z"])), shapes=shapes) as loop:
        frame = loop.take()
        frame.inputs["x"].data[:] = np.full((2, 3), 2.5, np.float32).tobytes()
        loop.give(frame)
    assert got[0].tolist() == [[2.5] * 3] * 2


def test_the_example_of_the_page_runs(build: Any, library: ort.Library, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "service.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(from armlet_runtime.*?)```", page, re.DOTALL)
    model = build("Identity", [("image", "FLOAT", [2, 2])], [("z", "FLOAT", [2, 2])])
    monkeypatch.setattr(ort, "InferenceSession", functools.partial(_session, model, library, ort.InferenceSession))
    got: list[Any] = []

    class FakeCamera:
        readings = 3

        def read(self) -> Any:
            type(self).readings -= 1
            return np.full((2, 2), self.readings, np.float32)

        def __bool__(self) -> bool:
            return self.readings > 0

    camera = FakeCamera()

    def act(frame: Frame) -> None:
        assert frame.error is None
        got.append(frame.outputs["z"].tolist())

    exec(example, {"act": act, "camera": camera, "running": camera})
    assert got[-1] == [[0.0, 0.0], [0.0, 0.0]]


def _session(model: bytes, library: ort.Library, make: Any, path: str, **_: Any) -> Any:
    assert path == "model.ort"
    return make(model, library=library)


VALUE = np.array([[1.5, -2.0, 3.0]], np.float32)


@pytest.mark.parametrize(
    "value",
    [
        VALUE,
        np.asfortranarray(np.repeat(VALUE, 2, axis=1))[:, ::2],
        VALUE.tolist(),
        VALUE.tobytes(),
        bytearray(VALUE.tobytes()),
        ort.Tensor(VALUE.tobytes(), "float32", (1, 3)),
    ],
)
def test_what_an_input_takes(summing: ort.InferenceSession, value: Any) -> None:
    frame = Frame(summing, {})
    frame.set("x", value)
    assert frame.inputs["x"].tolist() == VALUE.tolist()


@pytest.mark.parametrize(
    "value",
    [
        VALUE.astype(np.float64),
        VALUE[0],
        VALUE.tobytes()[:-1],
        [[1.0, 2.0]],
        [[1.0, [2.0], 3.0]],
        memoryview(array.array("i", [1, 2, 3])),
    ],
)
def test_what_an_input_does_not_take(summing: ort.InferenceSession, value: Any) -> None:
    frame = Frame(summing, {})
    with pytest.raises(ValueError, match='"x"'):
        frame.set("x", value)
    assert frame.inputs["x"].tolist() == [[0.0, 0.0, 0.0]]


def test_a_run_that_fails_is_told(library: ort.Library) -> None:
    helper = onnx.helper
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "x"], ["y"])],
        "graph",
        [info("x", onnx.TensorProto.INT64, [1])],
        [info("y", onnx.TensorProto.FLOAT, [1])],
        initializer=[onnx.numpy_helper.from_array(np.zeros(2, np.float32), "table")],
    )
    opsets = [helper.make_opsetid("", 21)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    errors: list[Any] = []
    session = ort.InferenceSession(model, library=library)
    with SensorLoop(session, lambda f: errors.append(f.error), policy="block", patience=30.0) as loop:
        for index in (0, 99, 1):
            frame = loop.take()
            frame.inputs["x"].memoryview[0] = index
            loop.give(frame)
    assert [error is None for error in errors] == [True, False, True]


def test_what_the_user_does_wrong(summing: ort.InferenceSession) -> None:
    def act(frame: Frame) -> None:
        raise KeyError("door")

    loop = SensorLoop(summing, act, capacity=1).__enter__()
    loop.give(loop.take())
    until(lambda: loop.fault)
    frame = loop.take()
    with pytest.raises(RuntimeError, match="the loop has ended"):
        loop.give(frame)
    with pytest.raises(KeyError, match="door"):
        loop.close()
    # The frame that act was given never came back.
    loop.take(), loop.take()
    with pytest.raises(RuntimeError, match="give the frame that was taken"):
        loop.take()
