"""The inputs that models are tried on."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy
import onnx
import pytest
from onnx import TensorProto, helper

from armlet.errors import ArmletError, Kind
from armlet.onnx.probes import clip_without_minimum
from armlet.onnx.reference import reference_outputs
from armlet.onnx.samples import Sample, samples_for
from armlet.onnx.text_samples import DRAWN, PAGE, PAGES, draw_page, text_direction


def model(folder: Path, kind: int, shape: list[Any]) -> Path:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])], "g", [value("x", kind, shape)], [value("y", kind, shape)]
    )
    path = folder / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), str(path))
    return path


def test_text_is_drawn_both_ways_and_as_the_classifier_takes_it() -> None:
    samples = tuple(text_direction())
    known = [sample.expected for sample in samples if sample.expected is not None]
    assert known.count(0) == known.count(1) >= 3
    assert len(known) < len(samples)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("text-direction", (1, 3, 48, 192)),
        ("text-detection", (1, 3, 160, 160)),
        ("text-recognition", (1, 3, 48, 160)),
    ],
)
def test_what_is_drawn_has_the_models_form_and_is_the_same_every_time(name: str, shape: tuple[int, ...]) -> None:
    arrays = [one.pixels for one in DRAWN[name]()]
    assert len(arrays) >= 4
    for array in arrays:
        assert (array.shape, array.dtype) == (shape, numpy.float32)
        assert array.min() == -1
        assert 0.9 < array.max() <= 1
    assert len({array.tobytes() for array in arrays}) == len(arrays)
    assert [array.tobytes() for array in arrays] == [one.pixels.tobytes() for one in DRAWN[name]()]


def test_a_model_of_a_known_name_gets_what_is_drawn_for_it(tmp_path: Path) -> None:
    samples = samples_for("text-direction", model(tmp_path, TensorProto.FLOAT, [1, 3, 48, 192]), {})
    for sample, drawn in zip(samples, text_direction(), strict=True):
        assert (sample.name, sample.expected) == (drawn.name, drawn.expected)
        assert sample.inputs["x"].tobytes() == drawn.pixels.tobytes()


def test_every_word_of_a_page_lies_on_it_and_apart_from_the_others() -> None:
    for page in PAGES:
        _, boxes = draw_page(page)
        assert len(boxes) == len(page)
        for left, top, right, bottom in boxes:
            assert 0 < left < right < PAGE
            assert 0 < top < bottom < PAGE
        ordered = sorted(boxes, key=lambda box: box[1])
        assert all(upper[3] < lower[1] for upper, lower in itertools.pairwise(ordered))


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
    wrong = Sample(name="s", inputs={"x": numpy.zeros((1, 3), numpy.float32)})
    with pytest.raises(ArmletError) as caught:
        reference_outputs(model(tmp_path, TensorProto.FLOAT, [2, 2]), [wrong])
    assert caught.value.kind is Kind.INPUT
