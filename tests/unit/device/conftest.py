"""The library of PyPI's ``onnxruntime`` wheel to bind, its Python API to compare with, and tiny models."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import pytest
from armlet_runtime import ort

IR_VERSION = 10
OPSET = 21


def tested_library() -> str:
    """``$ARMLET_ORT_LIBRARY``, or the wheel's file that exports the C API; its Python module does not."""
    (of_the_wheel,) = (Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so.*")
    return os.environ.get("ARMLET_ORT_LIBRARY") or str(of_the_wheel)


@pytest.fixture(scope="session")
def library() -> ort.Library:
    """The library under test."""
    return ort.load_library(tested_library())


@pytest.fixture(autouse=True)
def default_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the binding finds when nobody names a library."""
    monkeypatch.setenv("ARMLET_ORT_LIBRARY", tested_library())


@pytest.fixture(scope="session")
def official() -> Any:
    """The official Python package."""
    return onnxruntime


ValueInfo = tuple[str, str, Any]
Build = Callable[..., bytes]


@pytest.fixture(scope="session")
def build() -> Build:
    """``build(op, inputs, outputs, **attributes)``: a model of one node, in ONNX format.

    Inputs and outputs are (name, ONNX type such as "FLOAT", shape); a value info of the onnx package is
    taken as it is.
    """
    helper = onnx.helper

    def info(value: Any) -> Any:
        if not isinstance(value, tuple):
            return value
        name, element, shape = value
        return helper.make_tensor_value_info(name, getattr(onnx.TensorProto, element), shape)

    def make(op: str, inputs: list[Any], outputs: list[Any], *, domain: str = "", **attributes: Any) -> bytes:
        ins, outs = [info(value) for value in inputs], [info(value) for value in outputs]
        node = helper.make_node(op, [i.name for i in ins], [o.name for o in outs], domain=domain, **attributes)
        return serialise([node], ins, outs)

    def serialise(nodes: list[Any], ins: list[Any], outs: list[Any], **graph: Any) -> bytes:
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", 3)]
        proto = helper.make_graph(nodes, "graph", ins, outs, **graph)
        model = helper.make_model(proto, opset_imports=opsets, ir_version=IR_VERSION, producer_name="armlet")
        helper.set_model_props(model, {"labels": "cat,dog", "käse": "ja"})
        model.model_version = 7
        model.doc_string = "adds"
        return bytes(model.SerializeToString())

    make.graph = serialise  # type: ignore[attr-defined]
    make.info = info  # type: ignore[attr-defined]
    return make


@pytest.fixture(scope="session")
def adder(build: Build) -> bytes:
    """``z = x + y`` over float tensors of shape [n, 3]."""
    return build("Add", [("x", "FLOAT", ["n", 3]), ("y", "FLOAT", ["n", 3])], [("z", "FLOAT", ["n", 3])])


@pytest.fixture
def session(adder: bytes, library: ort.Library) -> Iterator[ort.InferenceSession]:
    """A session of :func:`adder`."""
    with ort.InferenceSession(adder, library=library) as made:
        yield made


@pytest.fixture
def no_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if NumPy could not be imported."""
    monkeypatch.setattr("armlet_runtime.ort._numpy.numpy", None)
