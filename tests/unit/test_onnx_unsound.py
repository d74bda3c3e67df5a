"""Models that are read well and make no sense."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from armlet.errors import ArmletError, Kind
from armlet.onnx.model_files import is_cut_short
from armlet.onnx.operators import element_types


def _domain_without_opset(model: Any) -> None:
    model.graph.node[0].domain = "com.example"


def _types_that_contradict(model: Any) -> None:
    model.graph.initializer.add(name="x", data_type=TensorProto.INT64, dims=[2], raw_data=bytes(16))


def _unknown_type_of_a_constant(model: Any) -> None:
    model.graph.initializer.add(name="c", data_type=999, dims=[1], raw_data=b"0000")


def _unknown_type_of_an_input(model: Any) -> None:
    model.graph.input.append(helper.make_tensor_value_info("z", 77, [1]))


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (_domain_without_opset, "uses Relu of com.example, and does not say which opset of it"),
        (_types_that_contradict, "its types cannot be told: "),
        (_unknown_type_of_a_constant, "has a tensor of the element type 999"),
        (_unknown_type_of_an_input, "has a tensor of the element type 77"),
    ],
)
def test_its_element_types_are_refused(tmp_path: Path, spoil: Callable[[Any], None], told: str) -> None:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path = tmp_path / "m.onnx"
    onnx.save(model, str(path))
    assert element_types(path) == {"float"}
    spoil(model)
    onnx.save(model, str(path))
    with pytest.raises(ArmletError) as caught:
        element_types(path)
    assert caught.value.kind is Kind.INPUT
    assert caught.value.where == str(path)
    assert caught.value.what.startswith(told)


@pytest.mark.parametrize("fill", [b"\0", b"\x08\0", b"\x0a\0"])
def test_a_large_damaged_file_is_refused_at_once(fill: bytes) -> None:
    data = b"\x08\x08" + fill * (30_000_000 // len(fill))
    started = time.process_time()
    assert not is_cut_short(data)
    assert time.process_time() - started < 2
