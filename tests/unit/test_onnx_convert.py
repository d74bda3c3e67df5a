"""Conversion: the right level for the providers, equal bytes, and clear words on models that are none."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from armlet.digest import of_file
from armlet.errors import ArmletError, Kind
from armlet.events import Event, Note
from armlet.onnx.convert import convert, keep_onnx
from armlet.onnx.levels import LEVELS, level_for
from armlet.onnx.operators import element_types, required
from armlet.onnx.ortfile import canonical, format_version
from armlet.onnx.reading import Limits
from armlet.process import Command, HostRunner
from armlet.spec.sku import Provider

XNNPACK: tuple[Provider, ...] = ("xnnpack", "cpu")
FIXED = {"x": (1, 3, 8, 8)}


def conv_relu(folder: Path, *, shape: list[Any] | None = None, opset: int = 13, ir: int = 8) -> Path:
    weights = numpy.linspace(-1, 1, 4 * 3 * 3 * 3, dtype=numpy.float32).reshape(4, 3, 3, 3)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Relu", ["c"], ["y"])],
        "conv_relu",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape or [1, 3, "h", "w"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weights, "w")],
    )
    return save(folder / "model.onnx", graph, opset=opset, ir=ir)


def save(path: Path, graph: Any, *, opset: int = 13, ir: int = 8) -> Path:
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir), str(path))
    return path


def run(model: Path, x: Any) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


def test_a_chain_with_xnnpack_keeps_the_operators_it_takes(tmp_path: Path) -> None:
    made = convert(conv_relu(tmp_path), tmp_path / "m.ort", providers=XNNPACK, shapes=FIXED)
    assert made.operators == {"Conv": 1, "Relu": 1}
    assert made.level is not None
    assert made.level.name == "basic"
    assert "FusedConv" in made.level.reason
    assert made.concerns == ()
    assert (made.size, made.sha256) == (made.path.stat().st_size, of_file(made.path))


def test_a_conversion_for_the_cpu_provider_fuses_what_only_it_takes(tmp_path: Path) -> None:
    made = convert(conv_relu(tmp_path), tmp_path / "m.ort", providers=("cpu",), shapes=FIXED)
    assert made.operators == {"com.microsoft:FusedConv": 1}


def test_nothing_is_laid_out_for_the_converting_machine(tmp_path: Path) -> None:
    assert not any("nchwc" in name for name in required(conv_relu(tmp_path), providers=("cpu",)))


def test_the_weakest_provider_of_a_chain_decides() -> None:
    assert level_for(("xnnpack", "acl", "cpu")) is LEVELS["xnnpack"]
    assert level_for(("acl", "cpu")) is LEVELS["acl"]
    assert level_for(("cpu",)) is LEVELS["cpu"]


def test_the_converted_model_computes_the_same(tmp_path: Path) -> None:
    model = conv_relu(tmp_path)
    made = convert(model, tmp_path / "m.ort", providers=XNNPACK, shapes=FIXED)
    x = numpy.random.default_rng(0).standard_normal((1, 3, 8, 8)).astype(numpy.float32)
    numpy.testing.assert_allclose(run(made.path, x), run(model, x), atol=1e-6)


def test_equal_input_gives_equal_bytes_in_every_process(tmp_path: Path, root: Path) -> None:
    model = conv_relu(tmp_path)
    here = convert(model, tmp_path / "here.ort", providers=XNNPACK, shapes=FIXED)
    again = convert(model, tmp_path / "again.ort", providers=XNNPACK, shapes=FIXED)
    script = (
        "import sys; from pathlib import Path; from armlet.onnx.convert import convert;"
        "convert(Path(sys.argv[1]), Path(sys.argv[2]), providers=('xnnpack', 'cpu'), shapes={'x': (1, 3, 8, 8)})"
    )
    elsewhere = tmp_path / "elsewhere.ort"
    argv = (sys.executable, "-c", script, str(model), str(elsewhere))
    done = HostRunner().run(Command(argv=argv, cwd=root, env={"PYTHONPATH": str(root)}))
    assert done.code == 0, done.output
    assert here.sha256 == again.sha256 == of_file(elsewhere)


def test_canonical_is_what_it_makes(tmp_path: Path) -> None:
    made = convert(conv_relu(tmp_path), tmp_path / "m.ort", providers=XNNPACK)
    data = made.path.read_bytes()
    assert canonical(data) == data
    assert format_version(data) == made.format_version


def test_free_sizes_cost_xnnpack_its_convolutions_and_are_told(tmp_path: Path) -> None:
    model = conv_relu(tmp_path)
    told: list[Event] = []
    made = convert(model, tmp_path / "m.ort", providers=XNNPACK, emit=told.append)
    assert len(made.concerns) == 1
    assert "1 of 1" in made.concerns[0]
    assert any(isinstance(event, Note) and made.concerns[0] in event.text for event in told)
    assert convert(model, tmp_path / "m.ort", providers=("cpu",)).concerns == ()


def test_a_model_that_came_fused_is_told(tmp_path: Path) -> None:
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "fused.onnx")
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    onnxruntime.InferenceSession(str(conv_relu(tmp_path)), options, providers=["CPUExecutionProvider"])
    made = convert(tmp_path / "fused.onnx", tmp_path / "m.ort", providers=XNNPACK)
    assert "fused with their activations" in " ".join(made.concerns)


def test_a_path_with_spaces_and_umlauts(tmp_path: Path) -> None:
    folder = tmp_path / "mö del s"
    folder.mkdir()
    made = convert(conv_relu(folder), folder / "näme.ort", providers=XNNPACK, shapes=FIXED)
    assert made.path.is_file()


def test_operators_of_inner_graphs_are_required_too(tmp_path: Path) -> None:
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])

    def branch(op: str) -> Any:
        inner = helper.make_tensor_value_info("b", TensorProto.FLOAT, [2])
        return helper.make_graph([helper.make_node(op, ["x"], ["b"])], op, [], [inner])

    graph = helper.make_graph(
        [helper.make_node("If", ["c"], ["y"], then_branch=branch("Exp"), else_branch=branch("Neg"))],
        "outer",
        [
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [2]),
        ],
        [out],
    )
    assert required(save(tmp_path / "if.onnx", graph), providers=XNNPACK) == {"ai.onnx": {13: {"If", "Exp", "Neg"}}}


def test_required_operators_follow_the_conversion(tmp_path: Path) -> None:
    model = conv_relu(tmp_path, opset=11)
    assert required(model, providers=XNNPACK, shapes=FIXED) == {"ai.onnx": {11: {"Conv", "Relu"}}}
    assert required(model, providers=("cpu",), shapes=FIXED) == {"com.microsoft": {1: {"FusedConv"}}}


def unknown_operator(folder: Path) -> Path:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Convolve", ["x"], ["y"])],
        "g",
        [value("x", TensorProto.FLOAT, [1])],
        [value("y", TensorProto.FLOAT, [1])],
    )
    return save(folder / "m.onnx", graph)


def without_external_data(folder: Path) -> Path:
    path = folder / "m.onnx"
    onnx.save_model(
        onnx.load(str(conv_relu(folder))), str(path), save_as_external_data=True, location="m.data", size_threshold=0
    )
    (folder / "m.data").unlink()
    return path


def written(name: str, data: bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(data)
        return folder / name

    return make


def already_converted(folder: Path) -> Path:
    return convert(conv_relu(folder), folder / "m.ort", providers=XNNPACK).path


def renamed(folder: Path) -> Path:
    return already_converted(folder).rename(folder / "m.onnx")


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda folder: folder / "missing.onnx", "no such file"),
        (lambda folder: folder, "is a directory"),
        (written("m.onnx", b""), "no ONNX model"),
        (written("m.onnx", b"\x00\x01\x02 not a model"), "no ONNX model"),
        (written("m.onnx", b"<html>404</html>"), "no ONNX model"),
        (written("m.tflite", b"\x1c\x00\x00\x00TFL3"), ".tflite is another format"),
        (written("m.pt", b"PK\x03\x04"), ".pt is another format"),
        (already_converted, "ORT format already"),
        (renamed, "ORT format already"),
        (unknown_operator, "Convolve"),
        (without_external_data, "external data"),
        (lambda folder: conv_relu(folder, opset=23, ir=10), "opset 23 of ai.onnx"),
        (lambda folder: conv_relu(folder, ir=11), "IR version 11"),
    ],
)
def test_a_model_that_is_none_gets_one_clear_error(tmp_path: Path, make: Callable[[Path], Path], part: str) -> None:
    model = make(tmp_path)
    out = tmp_path / "out" / "result.ort"
    with pytest.raises(ArmletError) as caught:
        convert(model, out, providers=XNNPACK, limits=Limits(opsets={"ai.onnx": 22}, onnx_ir_max=10))
    assert caught.value.kind is Kind.INPUT
    assert part in caught.value.what
    assert caught.value.hint
    assert caught.value.where == str(model)
    assert not out.parent.exists()


@pytest.mark.parametrize(
    ("shapes", "part"),
    [
        ({"X": (1, 3, 8, 8)}, 'no input "X"'),
        ({"w": (4, 3, 3, 3)}, 'no input "w"'),
        ({"x": (1, 3, 8)}, "1x3x8 does not fit"),
        ({"x": (1, 4, 8, 8)}, "1x4x8x8 does not fit"),
        ({"x": (1, 3, 8, 0)}, "1x3x8x0 does not fit"),
    ],
)
def test_shapes_that_do_not_fit(tmp_path: Path, shapes: dict[str, tuple[int, ...]], part: str) -> None:
    with pytest.raises(ArmletError) as caught:
        convert(conv_relu(tmp_path), tmp_path / "m.ort", providers=XNNPACK, shapes=shapes)
    assert caught.value.kind is Kind.INPUT
    assert part in caught.value.what
    assert "--shape" in caught.value.hint


def test_the_result_must_be_named_as_ort(tmp_path: Path) -> None:
    with pytest.raises(ArmletError) as caught:
        convert(conv_relu(tmp_path), tmp_path / "m.onnx.converted", providers=XNNPACK)
    assert caught.value.kind is Kind.INPUT
    assert "m.onnx.ort" in caught.value.hint


def test_a_failed_conversion_leaves_the_old_file(tmp_path: Path) -> None:
    out = tmp_path / "out" / "m.ort"
    convert(conv_relu(tmp_path), out, providers=XNNPACK)
    before = of_file(out)
    with pytest.raises(ArmletError):
        convert(unknown_operator(tmp_path), out, providers=XNNPACK)
    assert of_file(out) == before
    assert [path.name for path in out.parent.iterdir()] == ["m.ort"]


def test_a_runtime_that_optimises_by_itself_gets_the_model_as_it_is(tmp_path: Path) -> None:
    made = keep_onnx(conv_relu(tmp_path), tmp_path / "m.onnx", providers=XNNPACK, shapes=FIXED)
    assert (made.operators, made.level, made.format_version) == ({"Conv": 1, "Relu": 1}, None, None)
    x = numpy.ones(FIXED["x"], dtype=numpy.float32)
    assert (run(made.path, x) == run(tmp_path / "model.onnx", x)).all()
    assert made.concerns == ()


def test_such_a_runtime_meets_the_operators_of_every_level(tmp_path: Path) -> None:
    model = conv_relu(tmp_path)
    assert required(model, providers=XNNPACK, shapes=FIXED) == {"ai.onnx": {13: {"Conv", "Relu"}}}
    found = required(model, providers=XNNPACK, flavor="reduced", shapes=FIXED)
    assert found == {"ai.onnx": {13: {"Conv", "Relu"}}, "com.microsoft": {1: {"FusedConv"}}}


def test_element_types_of_tensors_constants_and_shapes(tmp_path: Path) -> None:
    shape = numpy_helper.from_array(numpy.array([1, -1], dtype=numpy.int64), "s")
    graph = helper.make_graph(
        [
            helper.make_node("Constant", [], ["c"], value=shape),
            helper.make_node("Reshape", ["x", "c"], ["r"]),
            helper.make_node("Cast", ["r"], ["y"], to=TensorProto.UINT8),
        ],
        "types",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 2])],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, None)],
    )
    assert element_types(save(tmp_path / "t.onnx", graph)) == {"float", "int64", "uint8"}
