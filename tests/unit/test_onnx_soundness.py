"""Models that do harm or make no sense: each gets one clear error before anything is done with it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from armlet.errors import ArmletError, Kind
from armlet.onnx import model_files
from armlet.onnx.reading import input_shapes, read
from armlet.onnx.soundness import DEEPEST

Spoil = Callable[[Any], None]


def value(name: str, *shape: int | str) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def made() -> Any:
    """x (2 x 3) * w (3 x 4) -> y, through a Relu."""
    weights = numpy_helper.from_array(numpy.ones((3, 4), numpy.float32), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"], name="m"), helper.make_node("Relu", ["h"], ["y"], name="r")]
    graph = helper.make_graph(nodes, "g", [value("x", 2, 3)], [value("y", 2, 4)], [weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def saved(folder: Path, model: Any) -> Path:
    path = folder / "m.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def refused(path: Path) -> str:
    with pytest.raises(ArmletError) as caught:
        read(path)
    error = caught.value
    assert (error.kind, error.where) == (Kind.INPUT, str(path))
    assert error.hint
    assert "\n" not in error.what
    return error.what


def with_weight(model: Any, array: Any) -> None:
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(array, "w"))


def nan(model: Any) -> None:
    array = numpy.ones((3, 4), numpy.float32)
    array[1, 2] = numpy.nan
    with_weight(model, array)


def infinite(model: Any) -> None:
    with_weight(model, numpy.full((3, 4), numpy.inf, numpy.float16))


def circle(model: Any) -> None:
    model.graph.node.insert(0, helper.make_node("Add", ["x", "b"], ["a"], name="first"))
    model.graph.node.insert(1, helper.make_node("Neg", ["a"], ["b"], name="second"))


def circle_of_one(model: Any) -> None:
    model.graph.node.add(op_type="Neg", name="self", input=["z"], output=["z"])


def nested(model: Any, depth: int = DEEPEST) -> None:
    leaf = inner = helper.make_graph([helper.make_node("Neg", ["x"], ["e"])], "e", [], [value("e", 2, 3)])
    for number in range(depth):
        out = f"o{number}"
        node = helper.make_node("If", ["c"], [out], then_branch=inner, else_branch=leaf)
        inner = helper.make_graph([node], out, [], [value(out, 2, 3)])
    model.graph.initializer.add(name="c", data_type=TensorProto.BOOL, dims=[], raw_data=b"\1")
    model.graph.node.extend(inner.node)


def function_that_calls_itself(model: Any) -> None:
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    body = [helper.make_node("F", ["a"], ["b"], domain="mine")]
    model.functions.append(helper.make_function("mine", "F", ["a"], ["b"], body, opsets))
    model.opset_import.append(helper.make_opsetid("mine", 1))


def unknown_domain(model: Any) -> None:
    model.graph.node[1].domain = "com.example"
    model.opset_import.append(helper.make_opsetid("com.example", 1))


def dims(*sizes: int) -> Spoil:
    def spoil(model: Any) -> None:
        for dim, size in zip(model.graph.input[0].type.tensor_type.shape.dim, sizes, strict=True):
            dim.dim_value = size

    return spoil


def weight_dims(*sizes: int) -> Spoil:
    return lambda model: model.graph.initializer[0].dims.__setitem__(slice(None), sizes)


def renamed(get: Callable[[Any], Any], name: str) -> Spoil:
    return lambda model: get(model).__setattr__("name", name)


@pytest.mark.parametrize(
    ("spoil", "part"),
    [
        (nan, 'constant "w" has NaN among its numbers (1 of 12)'),
        (infinite, 'constant "w" has infinity among its numbers (12 of 12)'),
        (circle, "its graph is a circle: Add first -> Neg second"),
        (circle_of_one, "its graph is a circle: Neg self"),
        (lambda model: nested(model, 20), "deep"),
        (function_that_calls_itself, "functions that call themselves: F"),
        (unknown_domain, "Relu of the domain com.example, which ONNX Runtime does not know"),
        (dims(0, 3), '"x" has a dimension of 0'),
        (dims(-2, 3), '"x" has a negative dimension'),
        (dims(2**62, 3), '"x" has more elements than can be counted'),
        (weight_dims(3, -4), 'constant "w" has a negative dimension'),
        (weight_dims(0, 4), 'constant "w" has a dimension of 0'),
        (weight_dims(2**40, 2**40), 'constant "w" has more than 2 GiB'),
        (weight_dims(3, 5), 'constant "w" of 3x5 has 48 bytes, and needs 60'),
        (lambda model: model.graph.input.append(value("x", 2, 3)), 'two inputs named "x"'),
        (lambda model: model.graph.initializer.append(model.graph.initializer[0]), 'two constants named "w"'),
        (lambda model: model.graph.node.append(model.graph.node[1]), 'two values named "y"'),
        (lambda model: model.graph.node[1].input.__setitem__(0, "q"), 'Relu r reads "q", which nothing gives'),
        (lambda model: model.graph.output.append(value("q", 1)), 'output "q" is given by nothing'),
        (lambda model: model.graph.node.append(model.graph.node.pop(0)), 'not in order: Relu r reads "h" before'),
    ],
)
def test_a_model_that_makes_no_sense_is_refused(tmp_path: Path, spoil: Spoil, part: str) -> None:
    model = made()
    read(saved(tmp_path, model))
    spoil(model)
    assert part in refused(saved(tmp_path, model))


def test_what_looks_odd_and_is_not(tmp_path: Path) -> None:
    """Infinity as a limit, an empty optional value, a free batch, graphs inside graphs, a function of its own."""
    model = made()
    nested(model, DEEPEST - 1)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    model.graph.initializer.append(numpy_helper.from_array(numpy.asarray(numpy.inf, numpy.float32), "limit"))
    model.graph.initializer.append(numpy_helper.from_array(numpy.zeros(0, numpy.float32), "none"))
    model.graph.node.append(helper.make_node("Min", ["y", "limit"], ["z"]))
    opsets = [helper.make_opsetid("", 17)]
    body = [helper.make_node("Neg", ["a"], ["b"])]
    model.functions.append(helper.make_function("mine", "F", ["a"], ["b"], body, opsets))
    model.opset_import.append(helper.make_opsetid("mine", 1))
    model.graph.node.append(helper.make_node("F", ["y"], ["f"], domain="mine"))
    assert len(read(saved(tmp_path, model)).functions) == 1


def test_minus_one_is_a_dimension_that_is_free(tmp_path: Path) -> None:
    """As Paddle's exporter writes it."""
    model = made()
    dims(-1, 3)(model)
    assert input_shapes(read(saved(tmp_path, model))) == {"x": (None, 3)}


def test_a_model_nested_deeper_than_protobuf_reads_is_refused(tmp_path: Path) -> None:
    """Written by hand: no library makes such a file. Node -> attribute -> graph -> node, a thousand times."""
    data = b""
    for _ in range(1000):
        for key in (b"\x32", b"\x2a", b"\x0a"):
            data = key + _varint(len(data)) + data
    path = tmp_path / "m.onnx"
    path.write_bytes(b"\x08\x08\x3a" + _varint(len(data)) + data)
    assert "nested too deeply" in refused(path)


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])


def test_every_cut_is_noticed(tmp_path: Path) -> None:
    data = made().SerializeToString()
    path = tmp_path / "m.onnx"
    for size in range(len(data)):
        path.write_bytes(data[:size])
        assert any(words in refused(path) for words in ("cut short", "no ONNX model"))
    path.write_bytes(data[:-20])
    assert "cut short" in refused(path)


def test_size_is_looked_at_before_anything_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.onnx"
    with path.open("wb") as stream:
        stream.truncate(2**31)
    assert "has 2147483648 bytes, and a model may have 2 GiB" in refused(path)


def test_a_pipe_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    os.mkfifo(path)
    assert "is no file" in refused(path)


def external(folder: Path, **entries: str) -> Path:
    """``made()`` with its weights in a file beside it, described by ``entries``."""
    model = made()
    tensor = model.graph.initializer[0]
    data = bytes(tensor.raw_data)
    (folder / "w.bin").write_bytes(data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, text in {"location": "w.bin", "offset": "0", "length": str(len(data)), **entries}.items():
        tensor.external_data.add(key=key, value=text)
    return saved(folder, model)


def test_external_data_is_read_from_the_models_folder(tmp_path: Path) -> None:
    (tensor,) = read(external(tmp_path)).graph.initializer
    assert (numpy_helper.to_array(tensor) == 1).all()


@pytest.mark.parametrize(
    ("entries", "part"),
    [
        ({"location": "nowhere.bin"}, "there is no file nowhere.bin"),
        ({"location": "/etc/hostname"}, "no file below the model's folder"),
        ({"location": "../w.bin"}, "no file below the model's folder"),
        ({"location": "a/../../w.bin"}, "no file below the model's folder"),
        ({"location": ""}, "no file below the model's folder"),
        ({"location": "link.bin"}, "a link that leads out of the model's folder"),
        ({"location": "folder/w.bin"}, "a link that leads out of the model's folder"),
        ({"offset": "4"}, "is cut short: w ends at byte 52"),
        ({"offset": "-4"}, "negative offset"),
        ({"length": "many"}, "no number"),
        ({"length": "44"}, "has 44 bytes, and needs 48"),
        ({"length": str(2**40)}, "is cut short"),
    ],
)
def test_external_data_that_is_refused(tmp_path: Path, entries: dict[str, str], part: str) -> None:
    folder, outside = tmp_path / "model", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (outside / "w.bin").write_bytes(bytes(48))
    (folder / "link.bin").symlink_to(outside / "w.bin")
    (folder / "folder").symlink_to(outside)
    assert part in refused(external(folder, **entries))


def test_nan_in_external_data(tmp_path: Path) -> None:
    path = external(tmp_path)
    (tmp_path / "w.bin").write_bytes(numpy.full(12, numpy.nan, numpy.float32).tobytes())
    assert "has NaN among its numbers (12 of 12)" in refused(path)


def test_much_external_data_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_files, "LARGEST", 40)
    model = onnx.load_model_from_string(external(tmp_path).read_bytes())
    with pytest.raises(ArmletError, match="more than 2 GiB of data"):
        model_files.load_external(iter(model.graph.initializer), tmp_path / "m.onnx")
    assert not model.graph.initializer[0].raw_data
