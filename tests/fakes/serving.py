"""Models that do one thing each, and an engine that serves them from payloads made by hand."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from armlet_runtime import ort
from armlet_runtime.serve.config import parse
from armlet_runtime.serve.interface import Refused, Request
from armlet_runtime.serve.payloads import FactorySet
from armlet_runtime.serve.supervisor import Supervisor

from tests.fakes import handmade

_FLOAT, _INT64, _BOOL = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL
_SIZE = 192


def _model(nodes: list[Any], inputs: list[Any], outputs: list[Any], **graph: Any) -> bytes:
    made = onnx.helper.make_graph(nodes, "graph", inputs, outputs, **graph)
    opsets = [onnx.helper.make_opsetid("", 21)]
    return bytes(onnx.helper.make_model(made, opset_imports=opsets, ir_version=10).SerializeToString())


def adds(
    root: Path, number: float, *, name: str = "add", right: bool = True, declared: str = "float", **fields: Any
) -> Path:
    """A payload of ``y = x + number`` over [n, 3]; its golden vector only holds where ``right``.

    ``declared`` is the type of x in payload.json.
    """
    info = onnx.helper.make_tensor_value_info
    constant = onnx.numpy_helper.from_array(np.array(number, dtype=np.float32), "c")
    node = onnx.helper.make_node("Add", ["x", "c"], ["y"], name="the_sum")
    data = _model([node], [info("x", _FLOAT, ["n", 3])], [info("y", _FLOAT, ["n", 3])], initializer=[constant])
    x = np.arange(3, dtype=np.float32).reshape(1, 3)
    golden = [({"x": x}, {"y": x + np.float32(number) + np.float32(0 if right else 1)})]
    return handmade.write(
        root, name, data, [("x", declared, ["n", 3])], [("y", "float", ["n", 3])], golden=golden, **fields
    )


def takes_long(root: Path, *, name: str = "slow", **fields: Any) -> Path:
    """A payload of a model that multiplies matrices ``times`` times, and can be interrupted in between."""
    info, node = onnx.helper.make_tensor_value_info, onnx.helper.make_node
    body = onnx.helper.make_graph(
        [node("MatMul", ["m", "w"], ["m_out"]), node("Identity", ["go"], ["go_out"])],
        "body",
        [info("i", _INT64, []), info("go", _BOOL, []), info("m", _FLOAT, [_SIZE, _SIZE])],
        [info("go_out", _BOOL, []), info("m_out", _FLOAT, [_SIZE, _SIZE])],
    )
    eye = np.eye(_SIZE, dtype=np.float32)
    data = _model(
        [node("Loop", ["times", "", "w"], ["last"], body=body), node("ReduceMax", ["last"], ["top"], keepdims=0)],
        [info("times", _INT64, [])],
        [info("top", _FLOAT, [])],
        initializer=[onnx.numpy_helper.from_array(eye, "w")],
    )
    return handmade.write(root, name, data, [("times", "int64", [])], [("top", "float", [])], **fields)


def takes_memory(root: Path, *, name: str = "hog") -> Path:
    """A payload of a model that fills a tensor of the size it is told, in floats."""
    info, node = onnx.helper.make_tensor_value_info, onnx.helper.make_node
    one = onnx.numpy_helper.from_array(np.ones(1, dtype=np.float32), "value")
    data = _model(
        [node("ConstantOfShape", ["size"], ["all"], value=one), node("ReduceSum", ["all"], ["sum"], keepdims=0)],
        [info("size", _INT64, [1])],
        [info("sum", _FLOAT, [])],
    )
    return handmade.write(root, name, data, [("size", "int64", [1])], [("sum", "float", [])])


class Service:
    """An engine, and short ways to ask it."""

    def __init__(self, root: Path, text: str, **keeper: Any) -> None:
        self.root = root
        self.catalogue = FactorySet(root, handmade.verify_hashes, lambda _: ())
        self.engine = Supervisor(parse(text), self.catalogue, None, keeper)

    def settle(self) -> Service:
        """Wait until every model serves or has failed."""
        until(self.engine.settled)
        return self

    def pid(self, model: str) -> int:
        """Of the worker that serves."""
        return next(info.pid or 0 for info in self.engine.models() if info.name == model)

    def ask(self, model: str, seconds: float = 20.0, **inputs: Any) -> Any:
        """The first output, as lists; ``inputs`` are lists or (list, dtype)."""
        return self.send(model, seconds, lambda: False, **inputs)

    def send(self, model: str, seconds: float, cancelled: Callable[[], bool], **inputs: Any) -> Any:
        """As :meth:`ask`, for a caller who may go away."""
        given = {name: ort.Tensor.from_list(*_typed(value)) for name, value in inputs.items()}
        request = Request(model, None, given, None, time.monotonic() + seconds)
        return next(iter(self.engine.infer(request, cancelled).outputs.values())).tolist()

    def add(self, value: float = 0.0, model: str = "add", seconds: float = 20.0) -> float:
        """What the adding model makes of a number."""
        return float(self.ask(model, seconds, x=[[value] * 3])[0][0])

    def info(self, model: str) -> Any:
        """What is told of it."""
        return next(info for info in self.engine.models() if info.name == model)


@contextlib.contextmanager
def serving(root: Path, text: str = "", **keeper: Any) -> Iterator[Service]:
    """A service of all payloads below ``root``, settled."""
    service = Service(root, text, **keeper)
    service.engine.start()
    try:
        yield service.settle()
    finally:
        service.engine.close(5.0)


class Asking:
    """Something asked in a thread of its own."""

    def __init__(self, ask: Callable[[], Any]) -> None:
        self.result: Any = None
        self.refused: Refused | None = None
        self.ended_at = 0.0
        self._ask = ask
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.result = self._ask()
        except Refused as refused:
            self.refused = refused
        self.ended_at = time.monotonic()

    def end(self) -> Asking:
        """Wait for it."""
        self.thread.join(60)
        assert not self.thread.is_alive()
        return self

    @property
    def kind(self) -> str:
        """``ok``, or the kind of refusal."""
        return self.refused.kind if self.refused else "ok"


def until(true: Callable[[], Any], seconds: float = 30.0) -> None:
    """Wait for something to become true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.005)


def gone(pid: int) -> bool:
    """Whether there is no such process, or only what is left to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def _typed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, tuple) else (value, "float32")
