"""The inputs that models are tried on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import onnx
import pytest
from onnx import TensorProto, helper

from armlet.errors import ArmletError, Kind
from armlet.onnx.probes import clip_without_minimum
from armlet.onnx.reference import reference_outputs
from armlet.onnx.samples import Sample, samples_for, text_direction


def model(folder: Path, kind: int, shape: list[Any]) -> Path:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])], "g", [value("x", kind, shape)], [value("y", kind, shape)]
    )
    path = folder / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), str(path))
    return path


def test_text_is_drawn_both_ways_and_as_the_classifier_takes_it() -> None:
    samples = text_direction("x")
    known = [sample.expected for sample in samples if sample.expected is not None]
    assert known.count(0) == known.count(1) >= 3
    assert len(known) < len(samples)
    arrays = [sample.inputs["x"] for sample in samples]
    for array in arrays:
        assert (array.shape, array.dtype) == ((1, 3, 48, 192), numpy.float32)
        assert array.min() == -1
        assert 0.9 < array.max() <= 1
    assert len({array.tobytes() for array in arrays}) == len(arrays)
    assert [array.tobytes() for array in arrays] == [sample.inputs["x"].tobytes() for sample in text_direction("x")]


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        (TensorProto.FLOAT, "float32"),
        (TensorProto.FLOAT16, "float16"),
        (TensorProto.INT64, "int64"),
        (TensorProto.UINT8, "uint8"),
        (TensorProto.BOOL, "bool"),
    ],
)
def test_a_model_that_nothing_is_drawn_for_gets_random_numbers(tmp_path: Path, kind: int, dtype: str) -> None:
    path = model(tmp_path, kind, [2, "n"])
    samples = samples_for("other", path, {"x": (2, 3)})
    assert len(samples) > 1
    assert all(sample.inputs["x"].shape == (2, 3) for sample in samples)
    assert all(str(sample.inputs["x"].dtype) == dtype for sample in samples)
    again = samples_for("other", path, {"x": (2, 3)})
    assert [s.inputs["x"].tobytes() for s in samples] == [s.inputs["x"].tobytes() for s in again]


def test_free_dimensions_and_strings_get_no_random_numbers(tmp_path: Path) -> None:
    with pytest.raises(ArmletError) as caught:
        samples_for("other", model(tmp_path, TensorProto.FLOAT, [2, "n"]), {})
    assert caught.value.kind is Kind.INPUT
    assert "inputs:" in caught.value.hint
    with pytest.raises(ArmletError):
        samples_for("other", model(tmp_path, TensorProto.STRING, [2]), {})


@pytest.mark.parametrize("opset", [11, 12, 13, 17])
def test_the_clip_probe_lets_negative_numbers_through(tmp_path: Path, opset: int) -> None:
    path = clip_without_minimum(tmp_path / "clip.onnx", opset=opset)
    x = numpy.linspace(-2, 2, 16, dtype=numpy.float32).reshape(1, 1, 4, 4)
    ((unbounded, at_most_half),) = reference_outputs(path, [Sample(name="s", inputs={"x": x})])
    assert unbounded.min() < -1
    assert at_most_half.min() < -1
    assert at_most_half.max() == 0.5


def test_samples_that_a_model_does_not_take(tmp_path: Path) -> None:
    with pytest.raises(ArmletError) as caught:
        reference_outputs(model(tmp_path, TensorProto.FLOAT, [2, 2]), text_direction("x"))
    assert caught.value.kind is Kind.INPUT
