"""``model.quantise``: what of a model stays in floats, what is told, what the record says."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from armlet.events import Event, Note
from armlet.onnx.bake import baked_in
from armlet.onnx.normalise import wish_of
from armlet.onnx.quantise import quantise, signal_to_error
from armlet.onnx.quantising import Right, quantise_file
from armlet.onnx.record import begun, write_record
from armlet.onnx.reference import reference_outputs
from armlet.onnx.sample_files import load_samples
from armlet.onnx.samples import samples_for
from armlet.spec.model_record import Preprocessing
from armlet.spec.sku import Quantise
from armlet.verbs.model_quantise import as_json, told


def saved(folder: Path, nodes: list[Any], shapes: list[list[int]], constants: dict[str, Any], domain: str = "") -> Path:
    opsets = [helper.make_opsetid("", 13), *([helper.make_opsetid(domain, 1)] if domain else [])]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shapes[0])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shapes[1])],
        [numpy_helper.from_array(numpy.asarray(array, numpy.float32), name) for name, array in constants.items()],
    )
    path = folder / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), str(path))
    return path


def filters(folder: Path) -> Path:
    weights = numpy.random.default_rng(3).standard_normal((8, 3, 3, 3))
    return saved(folder, [helper.make_node("Conv", ["x", "w"], ["y"])], [[1, 3, 8, 8], [1, 8, 6, 6]], {"w": weights})


def frames(folder: Path) -> Path:
    random = numpy.random.default_rng(4)
    folder.mkdir()
    for number in range(6):
        numpy.savez(folder / f"{number}.npz", x=random.integers(0, 256, (1, 8, 8, 3), dtype=numpy.uint8))
    return folder


def test_preprocessing_that_was_put_inside_stays_in_floats(tmp_path: Path) -> None:
    model, samples = filters(tmp_path), frames(tmp_path / "samples")
    wish = wish_of("mean=0.48,0.45,0.40 std=0.1,0.2,0.3 layout=nhwc input=uint8")
    made, inside, _ = baked_in(onnx.load(str(model)), wish, model)
    model.write_bytes(made.SerializeToString())
    write_record(model, begun(model).model_copy(update={"preprocessing": Preprocessing(inside=(inside,))}))
    done = quantise_file(model, tmp_path / "i.onnx", samples, Quantise())

    loaded = load_samples(samples)
    everything = quantise(model, tmp_path / "all.onnx", how=Quantise(), samples=loaded)
    floats = reference_outputs(model, loaded)
    assert done.near_float_db > signal_to_error(floats, reference_outputs(everything.path, loaded, as_written=True))
    graph = onnx.load(str(done.made.path)).graph
    givers = {name: node.op_type for node in graph.node for name in node.output}
    (scaling,) = (node for node in graph.node if node.op_type == "Mul")
    assert [givers.get(name) for name in scaling.input] == ["Cast", None]
    assert done.made.in_float == ()


def test_values_behind_scikit_learns_operators_are_quantised(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Scaler", ["x"], ["s"], domain="ai.onnx.ml", offset=[0.5], scale=[2.0]),
        helper.make_node("MatMul", ["s", "w"], ["m"]),
        helper.make_node("Relu", ["m"], ["y"]),
    ]
    weights = numpy.random.default_rng(3).standard_normal((6, 4))
    model = saved(tmp_path, nodes, [[2, 6], [2, 4]], {"w": weights}, "ai.onnx.ml")
    made = quantise(model, tmp_path / "i.onnx", how=Quantise(), samples=samples_for("m", model, {}))
    givers = {name: node.op_type for node in onnx.load(str(made.path)).graph.node for name in node.output}
    (product,) = (node for node in onnx.load(str(made.path)).graph.node if node.op_type == "MatMul")
    assert [givers[name] for name in product.input] == ["DequantizeLinear"] * 2


def test_what_the_quantiser_logs_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's root logger would print it as it is."""
    loud: list[str] = []
    handler = logging.Handler()
    monkeypatch.setattr(handler, "emit", lambda record: loud.append(record.getMessage()))
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    nodes = [helper.make_node("Relu", ["c"], ["b"]), helper.make_node("Gemm", ["x", "w", "b"], ["y"])]
    nodes.insert(0, helper.make_node("ReduceMean", ["x"], ["c"]))
    model = saved(tmp_path, nodes, [[2, 6], [2, 4]], {"w": numpy.ones((6, 4))})
    events: list[Event] = []
    quantise(model, tmp_path / "i.onnx", how=Quantise(), samples=samples_for("m", model, {}), emit=events.append)
    assert any("Bias of Gemm" in event.text for event in events if isinstance(event, Note))
    assert loud == []


def test_samples_that_say_what_is_right_are_counted(tmp_path: Path) -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    model = saved(tmp_path, nodes, [[1, 3], [1, 3]], {"w": numpy.eye(3)})
    folder = tmp_path / "samples"
    folder.mkdir()
    for number, expected in enumerate([0, 1, 1]):
        row = numpy.eye(3, dtype=numpy.float32)[number][None]
        numpy.savez(folder / f"{number}.npz", x=row, expected=expected)
    done = quantise_file(model, tmp_path / "i.onnx", folder, Quantise())
    assert done.right == Right(known=3, floats=2, int8=2)
    assert as_json(done)["right"] == {"known": 3, "floats": 2, "int8": 2}
    assert "floats 2, int8 2, of 3" in told(done)
    assert "1 of 1 in int8" in told(done)
