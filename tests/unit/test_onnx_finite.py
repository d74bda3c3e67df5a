"""NaN and infinity: in constants of every kind, in outputs, in preprocessing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest
from onnx import TensorProto, helper, numpy_helper

from armlet.errors import ArmletError, Kind
from armlet.onnx.exporting import Run
from armlet.onnx.importing import Imported, Options, import_model
from armlet.onnx.model_sources import source_of
from armlet.onnx.normalise import wish_of
from armlet.onnx.parity import worst_of
from armlet.onnx.reading import read
from armlet.paths import Paths
from tests.fakes.runner import FakeRunner

NAN, INF = float("nan"), float("inf")


def written(folder: Path, *nodes: Any, domain: str = "") -> Path:
    """A model that gives ``y`` of ``x`` (1 x 3)."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 3]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:])
    opsets = [helper.make_opsetid("", 17), *([helper.make_opsetid(domain, 3)] if domain else [])]
    path = folder / "in.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())
    return path


def constant(**value: Any) -> Any:
    return helper.make_node("Constant", [], ["k"], **value)


def times() -> Any:
    return helper.make_node("Mul", ["x", "k"], ["y"])


@pytest.mark.parametrize(
    ("nodes", "part"),
    [
        ((constant(value_float=NAN), times()), "NaN"),
        ((constant(value_floats=[1.0, NAN, 2.0]), times()), "(1 of 3)"),
        ((constant(value=numpy_helper.from_array(numpy.asarray([NAN], numpy.float32))), times()), "NaN"),
        ((helper.make_node("LeakyRelu", ["x"], ["y"], alpha=NAN),), 'attribute "alpha" of LeakyRelu y'),
        (
            (
                constant(value=numpy_helper.from_array(numpy.full((3, 3), INF, numpy.float32))),
                helper.make_node("Identity", ["k"], ["w"]),
                helper.make_node("MatMul", ["x", "w"], ["y"]),
            ),
            "infinity among its numbers (9 of 9)",
        ),
    ],
)
def test_constants_outside_the_initialisers(tmp_path: Path, nodes: tuple[Any, ...], part: str) -> None:
    with pytest.raises(ArmletError) as caught:
        read(written(tmp_path, *nodes))
    assert caught.value.kind is Kind.INPUT
    assert part in caught.value.what


def test_infinity_as_a_limit_and_nan_for_a_missing_value_are_right(tmp_path: Path) -> None:
    limit = (constant(value_float=INF), helper.make_node("Min", ["x", "k"], ["y"]))
    assert read(written(tmp_path, *limit))
    imputer = helper.make_node(
        "Imputer", ["x"], ["y"], domain="ai.onnx.ml", imputed_value_floats=[0.0], replaced_value_float=NAN
    )
    assert read(written(tmp_path, imputer, domain="ai.onnx.ml"))


def imported(folder: Path, paths: Paths, *nodes: Any) -> Imported:
    written(folder, *nodes)
    return import_model(source_of("in.onnx", folder), folder / "out" / "m.onnx", Options(), paths, FakeRunner())


@pytest.mark.parametrize(("value", "shown"), [(0.0, "NaN"), (1.0, "infinity")])
def test_outputs_without_a_finite_number_prove_nothing(tmp_path: Path, paths: Paths, value: float, shown: str) -> None:
    # 0 / 0 and 1 / 0.
    nodes = (
        helper.make_node("Sub", ["x", "x"], ["z"]),
        constant(value_float=value),
        helper.make_node("Add", ["z", "k"], ["a"]),
        helper.make_node("Div", ["a", "z"], ["y"]),
    )
    with pytest.raises(ArmletError, match=f"gives nothing but {shown} on random numbers 1") as caught:
        imported(tmp_path, paths, *nodes)
    assert caught.value.kind is Kind.INPUT
    assert not (tmp_path / "out" / "m.onnx").exists()


def test_nan_beside_finite_numbers_is_warned_of(tmp_path: Path, paths: Paths) -> None:
    done = imported(tmp_path, paths, helper.make_node("Sqrt", ["x"], ["y"]))
    assert any('output "y" has NaN' in warning for warning in done.record.warnings)


def test_nan_at_one_place_alone_differs() -> None:
    run = Run(name="s", inputs={}, outputs=(numpy.array([1.0, 2.0]),))
    assert worst_of(run, (numpy.array([1.0, NAN]),), ("y",), Path("m")).difference == INF


@pytest.mark.parametrize(
    "text",
    [
        *("mean=1e39", "std=1e39", "scale=1e39", "std=1e-45", "scale=0", "scale=1e-40", "scale=-1e-60"),
        *("mean=1e38 std=1e-30", "scale=1e-30 std=1e30", "scale=1e30 std=1e-30"),
    ],
)
def test_preprocessing_that_float32_cannot_hold(text: str) -> None:
    with pytest.raises(ArmletError, match="float32"):
        wish_of(text)
