"""A model in the form that one SKU's runtime takes, and files of the ORT format that it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from armlet import config
from armlet.errors import ArmletError, Kind
from armlet.onnx.convert import convert, save_optimised
from armlet.onnx.fit import Taker, fit
from armlet.onnx.levels import INT8
from armlet.onnx.ortfile import demand_version, format_version
from armlet.onnx.reading import Limits
from armlet.spec.sku import Flavor
from tests.fakes.recipes import FakeProject


def taker(flavor: Flavor = "minimal", ort_format: tuple[int, int] = (4, 6)) -> Taker:
    return Taker(
        sku="demo-a53",
        ort_version="1.21.0",
        flavor=flavor,
        providers=("cpu",),
        limits=Limits(opsets={"ai.onnx": 22}, onnx_ir_max=10),
        ort_format=ort_format,
    )


def written(folder: Path, op: str = "MatMul", domain: str = "", *, constant: bool = False) -> Path:
    """``y = op(x, w)``; with ``constant``, ``y = x * op(w, w)``."""
    weights = numpy.linspace(-1, 1, 64 * 64, dtype=numpy.float32).reshape(64, 64)
    nodes = [helper.make_node(op, ["x", "w"], ["y"], domain=domain)]
    if constant:
        nodes = [helper.make_node(op, ["w", "w"], ["f"]), helper.make_node("Mul", ["x", "f"], ["y"])]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [64, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [64, 64])],
        [numpy_helper.from_array(weights, "w")],
    )
    imports = [helper.make_opsetid("", 13), *([helper.make_opsetid(domain, 1)] if domain else [])]
    path = folder / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=8), str(path))
    return path


def outside(folder: Path) -> Path:
    """The same with its weights in ``weights.bin``."""
    path = folder / "outside.onnx"
    model = onnx.load(str(written(folder)))
    onnx.save_model(model, str(path), save_as_external_data=True, location="weights.bin", size_threshold=0)
    return path


def weights_of(model: Path) -> object:
    return numpy_helper.to_array(onnx.load(str(model)).graph.initializer[0]).tolist()


def test_what_a_runtime_takes_is_known_before_it_is_built(tmp_path: Path) -> None:
    planned = Taker.planned(config.resolve(FakeProject(tmp_path).paths, "demo-a53"))
    assert (planned.flavor, planned.suffix, planned.providers) == ("minimal", ".ort", ("xnnpack", "cpu"))
    assert planned.ort_format == (4, 6)
    assert planned.limits == Limits(opsets={"ai.onnx": 22, "ai.onnx.ml": 4, "com.microsoft": 1}, onnx_ir_max=10)


@pytest.mark.parametrize("flavor", ["reduced", "full"])
def test_an_onnx_runtime_gets_onnx_with_its_data_beside_it(tmp_path: Path, flavor: Flavor) -> None:
    source = outside(tmp_path)
    (tmp_path / "out").mkdir()
    made = fit(source, tmp_path / "out" / "m.onnx", taker(flavor))
    assert made.data == tmp_path / "out" / "m.onnx.data"
    assert made.size < 4096 <= made.data.stat().st_size
    assert weights_of(made.path) == weights_of(source)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"m.onnx", "m.onnx.data"}


def test_a_model_with_all_inside_stays_one_file(tmp_path: Path) -> None:
    made = fit(written(tmp_path), tmp_path / "m.onnx", taker("reduced"))
    assert made.data is None


def test_an_ort_file_has_all_inside(tmp_path: Path) -> None:
    made = fit(outside(tmp_path), tmp_path / "m.ort", taker())
    assert made.data is None
    assert made.size > 64 * 64 * 4


def test_a_runtime_that_reads_other_formats_is_told(tmp_path: Path) -> None:
    with pytest.raises(ArmletError, match="writes ORT format 6, and demo-a53 reads 3 to 5") as caught:
        fit(written(tmp_path), tmp_path / "m.ort", taker(ort_format=(3, 5)))
    assert caught.value.kind is Kind.HOST


@pytest.mark.parametrize("flavor", ["minimal", "reduced"])
def test_a_layout_for_x86_is_refused(tmp_path: Path, flavor: Flavor) -> None:
    with pytest.raises(ArmletError, match=r"com\.microsoft\.nchwc") as caught:
        fit(written(tmp_path, "Conv", "com.microsoft.nchwc"), tmp_path / f"m{taker(flavor).suffix}", taker(flavor))
    assert caught.value.kind is Kind.INPUT


def test_constants_that_this_machine_computed_are_told(tmp_path: Path) -> None:
    folded = fit(written(tmp_path, constant=True), tmp_path / "m.ort", taker())
    assert folded.operators == {"Mul": 1}
    assert [concern.partition(" of ")[0] for concern in folded.concerns] == ["1 MatMul"]
    assert fit(written(tmp_path, "Add", constant=True), tmp_path / "m.ort", taker()).concerns == ()
    assert fit(written(tmp_path), tmp_path / "m.ort", taker()).concerns == ()


def test_int8_activations_stay_what_they_are(tmp_path: Path) -> None:
    """On x86 ONNX Runtime would make uint8 of them, which no XNNPACK kernel multiplies with int8 weights."""
    random = numpy.random.default_rng(0)
    one = numpy.asarray(0.05, numpy.float32)
    zero = numpy.asarray(0, numpy.int8)
    constants: dict[str, Any] = {"s": one, "z": zero, "w": random.integers(-127, 128, (4, 3, 3, 3), dtype=numpy.int8)}
    graph = helper.make_graph(
        [
            helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
            helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
            helper.make_node("DequantizeLinear", ["w", "s", "z"], ["v"]),
            helper.make_node("Conv", ["d", "v"], ["c"]),
            helper.make_node("QuantizeLinear", ["c", "s", "z"], ["r"]),
            helper.make_node("DequantizeLinear", ["r", "s", "z"], ["y"]),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    made = onnx.load_model_from_string(save_optimised(model, INT8, save_as="ONNX", where=tmp_path))
    assert "QLinearConv" in {node.op_type for node in made.graph.node}
    assert TensorProto.UINT8 not in {tensor.data_type for tensor in made.graph.initializer}


@pytest.fixture
def ort(tmp_path: Path) -> bytes:
    return convert(written(tmp_path), tmp_path / "m.ort", providers=("cpu",)).path.read_bytes()


def test_a_format_within_the_range_is_taken(ort: bytes) -> None:
    demand_version(ort, (4, 6), by="demo-a53")
    demand_version(ort, (6, 6), by="demo-a53")


@pytest.mark.parametrize(("version", "taken", "reads"), [(b"4", (5, 6), "5 to 6"), (b"7", (6, 6), "reads 6")])
def test_a_file_of_another_version_is_refused(ort: bytes, version: bytes, taken: tuple[int, int], reads: str) -> None:
    other = ort.replace(b"\x01\x00\x00\x006\x00", b"\x01\x00\x00\x00" + version + b"\x00", 1)
    assert format_version(other) == int(version)
    with pytest.raises(ArmletError) as caught:
        demand_version(other, taken, by="demo-a53", where="m.ort")
    assert caught.value.kind is Kind.INPUT
    assert caught.value.where == "m.ort"
    assert f"version {int(version)} of the ORT format" in caught.value.what
    assert reads in caught.value.what
    assert "model.convert" in caught.value.hint


@pytest.mark.parametrize("size", [8, 12, 20, 40, 60])
def test_a_file_that_was_cut_is_damaged(ort: bytes, size: int) -> None:
    with pytest.raises(ArmletError, match="damaged") as caught:
        format_version(ort[:size], where="m.ort")
    assert (caught.value.kind, caught.value.where) == (Kind.INPUT, "m.ort")


def test_a_version_that_is_no_number_is_damage(ort: bytes) -> None:
    with pytest.raises(ArmletError, match="damaged"):
        format_version(ort.replace(b"\x01\x00\x00\x006\x00", b"\x01\x00\x00\x00x\x00", 1))


@pytest.mark.parametrize("data", [b"", b"ORTM", b"\x08\x07nothing of the kind"])
def test_what_is_no_ort_file_is_told(data: bytes) -> None:
    with pytest.raises(ArmletError, match="not an ORT-format model"):
        demand_version(data, (4, 6), by="demo-a53")
