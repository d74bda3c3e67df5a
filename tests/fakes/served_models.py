"""The models that docs/service-api.md talks to, as ONNX, and one more; with samples to pack them with."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy
import onnx
from onnx import TensorProto, helper

from armlet.payload.wish import Wish

CREATED = "2026-01-31T12:00:00Z"
_FLOAT, _INT64 = TensorProto.FLOAT, TensorProto.INT64


def animals(folder: Path) -> Path:
    """``scores`` of [batch, 3] -> ``class``, the place of the best, and ``score``, the best."""
    nodes = [
        helper.make_node("ArgMax", ["scores"], ["class"], axis=1, keepdims=0),
        helper.make_node("ReduceMax", ["scores"], ["score"], axes=[1], keepdims=0),
    ]
    outputs = [("class", _INT64, ["batch"]), ("score", _FLOAT, ["batch"])]
    return _write(folder / "animals.onnx", nodes, [("scores", _FLOAT, ["batch", 3])], outputs)


def echo(folder: Path) -> Path:
    """``x`` of [n] -> ``y``, the same."""
    node = helper.make_node("Identity", ["x"], ["y"])
    return _write(folder / "echo.onnx", [node], [("x", _FLOAT, ["n"])], [("y", _FLOAT, ["n"])])


def samples(folder: Path, count: int = 20, **shapes: tuple[int, ...]) -> Path:
    """Input -> shape; numbers around 0 with deviation 1."""
    folder.mkdir(parents=True)
    numbers = numpy.random.default_rng(1)
    for index in range(count):
        arrays: dict[str, Any] = {name: numbers.standard_normal(shape, numpy.float32) for name, shape in shapes.items()}
        numpy.savez(folder / f"s{index:03}.npz", **arrays)
    return folder


def wish(name: str, samples: Path, **other: Any) -> Wish:
    """What their author says."""
    usual = Wish(
        name=name,
        version="1.2.0",
        generation=3,
        description=f"The model {name}",
        licence="Apache-2.0",
        samples=samples,
        created=CREATED,
    )
    return dataclasses.replace(usual, **other)


def _write(path: Path, nodes: list[Any], inputs: list[Any], outputs: list[Any]) -> Path:
    takes, gives = ([helper.make_tensor_value_info(*one) for one in some] for some in (inputs, outputs))
    graph = helper.make_graph(nodes, path.stem, takes, gives)
    onnx.save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    return path
