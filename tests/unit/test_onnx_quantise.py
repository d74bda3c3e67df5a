"""A model's int8 version: near the floats, the same bytes every time, and clear words where there is none."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from armlet.digest import of_file
from armlet.errors import ArmletError, Kind
from armlet.events import Event, Note, silent
from armlet.onnx.convert import convert, keep_onnx
from armlet.onnx.levels import INT8, LEVELS, level_for
from armlet.onnx.operators import required
from armlet.onnx.quantise import calibration_digest, quantise, signal_to_error
from armlet.onnx.reading import Limits
from armlet.onnx.reference import reference_outputs
from armlet.onnx.samples import Sample, samples_for
from armlet.onnx.versions import versions
from armlet.paths import Paths
from armlet.process import Command, HostRunner
from armlet.spec.sku import Model, Provider, Quantise
from tests.conftest import ROOT

XNNPACK: tuple[Provider, ...] = ("xnnpack", "cpu")
CPU: tuple[Provider, ...] = ("cpu",)


def network(folder: Path, *, opset: int = 11, weighted: bool = True) -> Path:
    """Two convolutions with activations and, behind them, a fully connected layer."""
    random = numpy.random.default_rng(5)

    def constant(name: str, *shape: int) -> Any:
        return numpy_helper.from_array(random.standard_normal(shape).astype(numpy.float32), name)

    nodes = [helper.make_node("Relu", ["x"], ["r"])]
    if weighted:
        nodes = [
            helper.make_node("Conv", ["x", "w0", "b0"], ["c0"], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", ["c0"], ["a0"]),
            helper.make_node("Conv", ["a0", "w1"], ["c1"]),
            helper.make_node("Relu", ["c1"], ["a1"]),
            helper.make_node("GlobalAveragePool", ["a1"], ["p"]),
            helper.make_node("Flatten", ["p"], ["f"]),
            helper.make_node("Gemm", ["f", "w2"], ["r"]),
        ]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, "h", "w"])],
        [helper.make_tensor_value_info("r", TensorProto.FLOAT, None)],
        [constant("w0", 8, 3, 3, 3), constant("b0", 8), constant("w1", 6, 8, 1, 1), constant("w2", 6, 4)],
    )
    path = folder / "network.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=7), str(path))
    return path


SHAPES = {"x": (1, 3, 9, 7)}


def made(folder: Path, how: Quantise | None = None, **more: Any) -> Any:
    model = network(folder, opset=more.pop("opset", 11))
    samples = samples_for("network", model, SHAPES)
    out = folder / "int8.onnx"
    return quantise(model, out, how=how or Quantise(), samples=samples, shapes=SHAPES, **more)


def operators(model: Path) -> Counter[str]:
    return Counter(node.op_type for node in onnx.load(str(model)).graph.node)


def constants(model: Path) -> list[Any]:
    return [numpy_helper.to_array(tensor) for tensor in onnx.load(str(model)).graph.initializer]


def weights(model: Path) -> list[Any]:
    return [array for array in constants(model) if array.ndim == 4]


@pytest.mark.parametrize(
    ("how", "dtype"),
    [(Quantise(), "int8"), (Quantise(activation="uint8", weight="uint8", per_channel=False), "uint8")],
)
def test_the_answers_are_near_those_of_the_floats(tmp_path: Path, how: Quantise, dtype: str) -> None:
    quantised = made(tmp_path, how)
    model, samples = tmp_path / "network.onnx", samples_for("network", tmp_path / "network.onnx", SHAPES)
    int8 = reference_outputs(quantised.path, samples, as_written=True)
    assert signal_to_error(reference_outputs(model, samples), int8) > 20
    assert {str(array.dtype) for array in weights(quantised.path)} == {dtype}


def test_weights_have_a_scale_per_channel_and_keep_off_the_lowest_number(tmp_path: Path) -> None:
    """-128 is what MLAS's kernel for cores without dot products cannot bear twice in a row."""
    found = weights(made(tmp_path).path)
    assert min(array.min() for array in found) == -127
    assert all(numpy.abs(channel).max() == 127 for array in found for channel in array)


def test_activations_go_into_the_rounding_before_them(tmp_path: Path) -> None:
    found = operators(made(tmp_path).path)
    assert (found["Conv"], found["Relu"]) == (2, 0)


@pytest.mark.parametrize(
    ("providers", "convolution", "level"),
    [(XNNPACK, "QLinearConv", "extended"), (CPU, "com.microsoft:QLinearConv", "all")],
)
def test_the_conversion_makes_int8_operators_of_it(
    tmp_path: Path, providers: tuple[Provider, ...], convolution: str, level: str
) -> None:
    """XNNPACK takes ONNX's own QLinearConv; a QDQ group that is left cannot be loaded out of an ORT-format model."""
    quantised = made(tmp_path)
    converted = convert(quantised.path, tmp_path / "m.ort", providers=providers)
    assert converted.level is not None
    assert converted.level.name == level
    assert converted.operators[convolution] == 2
    assert converted.operators["com.microsoft:QGemm"] == 1
    assert "Conv" not in converted.operators
    assert converted.concerns == ()
    asked = required(quantised.path, providers=providers)
    domain, _, name = convolution.rpartition(":")
    assert any(name in names for names in asked[domain or "ai.onnx"].values())


def test_the_conversion_of_an_int8_model_tells_of_free_shapes_too(tmp_path: Path) -> None:
    model = network(tmp_path)
    samples = samples_for("network", model, SHAPES)
    quantised = quantise(model, tmp_path / "int8.onnx", how=Quantise(), samples=samples)
    (concern,) = convert(quantised.path, tmp_path / "m.ort", providers=XNNPACK).concerns
    assert concern.startswith("2 of 2 convolutions")


def test_weights_of_minus_128_are_told_of(tmp_path: Path) -> None:
    value = helper.make_tensor_value_info
    for lowest, concerns in ((-127, 0), (-128, 1)):
        graph = helper.make_graph(
            [helper.make_node("MatMulInteger", ["x", "w"], ["y"])],
            "g",
            [value("x", TensorProto.UINT8, [2, 4])],
            [value("y", TensorProto.INT32, [2, 3])],
            [numpy_helper.from_array(numpy.full((4, 3), lowest, numpy.int8), "w")],
        )
        model = tmp_path / "m.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), str(model))
        assert len(convert(model, tmp_path / "m.ort", providers=CPU).concerns) == concerns


def lowest(folder: Path, operator: str) -> Path:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("DequantizeLinear", ["w", "s"], ["f"]), helper.make_node(operator, ["x", "f"], ["y"])],
        "g",
        [value("x", TensorProto.FLOAT, [3, 3])],
        [value("y", TensorProto.FLOAT, [3, 3])],
        [
            numpy_helper.from_array(numpy.full((3, 3), -128, numpy.int8), "w"),
            numpy_helper.from_array(numpy.asarray(0.1, numpy.float32), "s"),
        ],
    )
    model = folder / "lowest.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), str(model))
    return model


def test_minus_128_harms_where_products_are_summed_alone(tmp_path: Path) -> None:
    """Constants of Add and Mul are quantised like activations, and reach the lowest number."""
    found = {
        operator: len(keep_onnx(lowest(tmp_path, operator), tmp_path / "m.onnx", providers=CPU).concerns)
        for operator in ("MatMul", "Mul", "Add")
    }
    assert found == {"MatMul": 1, "Mul": 0, "Add": 0}


def test_convolutions_that_stayed_in_float_keep_their_form() -> None:
    assert level_for(XNNPACK, quantised=True) is INT8
    assert "ConvActivationFusion" in INT8.without
    assert level_for(XNNPACK) is LEVELS["xnnpack"]
    assert level_for(CPU, quantised=True) is LEVELS["cpu"]


def test_an_old_model_is_raised_to_the_opset_that_scales_per_channel(tmp_path: Path) -> None:
    assert onnx.load(str(made(tmp_path, opset=11).path)).opset_import[0].version == 13
    whole = Quantise(per_channel=False)
    assert onnx.load(str(made(tmp_path, whole, opset=11).path)).opset_import[0].version == 11


def test_what_is_told_of_it(tmp_path: Path) -> None:
    events: list[Event] = []
    quantised = made(tmp_path, emit=events.append)
    assert (quantised.sha256, quantised.size) == (of_file(quantised.path), quantised.path.stat().st_size)
    assert (quantised.format, quantised.activation, quantised.weight, quantised.per_channel) == (
        *("qdq", "int8", "int8"),
        True,
    )
    assert quantised.calibration == calibration_digest(samples_for("network", tmp_path / "network.onnx", SHAPES))
    assert any("3 samples" in event.text for event in events if isinstance(event, Note))


def test_another_sample_is_another_calibration() -> None:
    one = Sample(name="s", inputs={"x": numpy.zeros((1, 2), numpy.float32)})
    others = [
        Sample(name="t", inputs=one.inputs),
        Sample(name="s", inputs={"y": one.inputs["x"]}),
        Sample(name="s", inputs={"x": one.inputs["x"].reshape(2, 1)}),
        Sample(name="s", inputs={"x": one.inputs["x"] + 1}),
    ]
    assert len({calibration_digest([sample]) for sample in (one, *others)}) == 5


def test_equal_input_gives_equal_bytes(tmp_path: Path) -> None:
    """In processes whose hashes are seeded differently: sets and maps come in another order."""
    model = network(tmp_path)
    code = (
        "import sys; from pathlib import Path; from armlet.onnx.quantise import *; "
        "from armlet.onnx.samples import samples_for; m = Path(sys.argv[1]); s = {'x': (1, 3, 9, 7)}; "
        "q = quantise(m, Path(sys.argv[2]), how=Quantise(), "
        "samples=samples_for('network', m, s), shapes=s)"
    )
    found = []
    for seed in ("1", "2"):
        out = tmp_path / f"{seed}.onnx"
        environment = {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed}
        done = HostRunner().run(
            Command(argv=(sys.executable, "-c", code, str(model), str(out)), env=environment), silent
        )
        assert done.code == 0, done.output
        found.append(of_file(out))
    assert found[0] == found[1]


def refused(*arguments: Any, **more: Any) -> ArmletError:
    with pytest.raises(ArmletError) as caught:
        quantise(*arguments, how=Quantise(), shapes=SHAPES, **more)
    assert caught.value.kind is Kind.INPUT
    assert caught.value.hint
    return caught.value


def test_a_model_with_nothing_to_gain(tmp_path: Path) -> None:
    model = network(tmp_path, weighted=False)
    told = refused(model, tmp_path / "o.onnx", samples=samples_for("network", model, SHAPES))
    assert "no convolution" in told.what
    assert not (tmp_path / "o.onnx").exists()


def test_a_model_that_is_quantised_already(tmp_path: Path) -> None:
    quantised = made(tmp_path)
    told = refused(quantised.path, tmp_path / "o.onnx", samples=samples_for("network", quantised.path, SHAPES))
    assert "DequantizeLinear, QuantizeLinear" in told.what


def test_no_samples(tmp_path: Path) -> None:
    assert "no samples" in refused(network(tmp_path), tmp_path / "o.onnx", samples=()).what


def test_samples_that_the_model_does_not_take(tmp_path: Path) -> None:
    wrong = Sample(name="s", inputs={"x": numpy.zeros((1, 3, 2, 2), numpy.float32)})
    assert "cannot quantise" in refused(network(tmp_path), tmp_path / "o.onnx", samples=[wrong]).what


@pytest.mark.parametrize("size", [3e38, numpy.inf])
def test_samples_that_overflow_the_model(tmp_path: Path, size: float) -> None:
    huge = Sample(name="s", inputs={"x": numpy.full((1, 3, 9, 7), size, numpy.float32)})
    out = tmp_path / "o.onnx"
    refused(network(tmp_path), out, samples=[huge])
    assert not out.exists()


def test_a_runtime_that_is_too_old_for_scales_per_channel(tmp_path: Path) -> None:
    model = network(tmp_path)
    samples = samples_for("network", model, SHAPES)
    told = refused(model, tmp_path / "o.onnx", samples=samples, limits=Limits(opsets={"ai.onnx": 12}))
    assert "needs opset 13" in told.what
    assert "per_channel: false" in told.hint


def test_the_distance_of_outputs_in_decibels() -> None:
    one, other = [[numpy.asarray([3.0, 4.0])]], [[numpy.asarray([3.0, 4.5])]]
    assert signal_to_error(one, other) == pytest.approx(20)
    assert signal_to_error(one, one) == float("inf")
    assert signal_to_error(one, [[numpy.asarray([3.0])]]) == float("-inf")
    assert signal_to_error(one, [[numpy.asarray([3.0, float("nan")])]]) == float("-inf")


def test_a_models_int8_version_comes_after_it_and_has_its_samples(tmp_path: Path, paths: Paths) -> None:
    file = network(paths.root)
    inputs: dict[str, tuple[int, ...]] = dict(SHAPES)
    plain = Model(name="network", licence="MIT", sha256=of_file(file), path="network.onnx", inputs=inputs)
    wanted = plain.model_copy(update={"quantise": Quantise()})
    assert [found.name for found in versions(plain, paths, tmp_path)] == ["network"]
    first, second = versions(wanted, paths, tmp_path)
    assert (first.path, first.quantised) == (file, None)
    assert (second.name, second.of) == ("network-int8", file)
    assert second.quantised is not None
    assert calibration_digest(second.samples()) == calibration_digest(first.samples()) == second.quantised.calibration


def dense(folder: Path, bias: Any, *, shared: bool = False, vector: bool = False) -> Path:
    """Rows of six through a fully connected layer of four; ``shared``: something else reads the bias too."""
    random = numpy.random.default_rng(1)
    arrays = {"w": random.standard_normal((6, 4)), "v": random.standard_normal(4), "b": numpy.asarray(bias)}
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["y"])]
    nodes += [helper.make_node("Mul", ["y", "b"], ["z"])] if shared else []
    nodes += [helper.make_node("MatMul", ["y", "v"], ["z"])] if vector else []
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 6])],
        [helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array.astype(numpy.float32), name) for name, array in arrays.items()],
    )
    model = folder / "dense.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), str(model))
    return model


@pytest.mark.parametrize("more", [{}, {"shared": True}, {"vector": True}])
@pytest.mark.parametrize(
    "bias",
    [[1, -2, 3, -4], [[1, -2, 3, -4]], [0.5], 0.5, [[0.5]], [[1], [2]], [[1, -2, 3, -4], [5, 6, 7, 8]]],
    ids=["list", "row", "one", "number", "matrix of one", "column", "matrix"],
)
def test_whatever_form_a_bias_has(tmp_path: Path, bias: Any, more: dict[str, bool]) -> None:
    """skl2onnx writes rows. ONNX Runtime's quantiser stops at any but the first form."""
    model = dense(tmp_path, bias, **more)
    samples = samples_for("dense", model, {})
    quantised = quantise(model, tmp_path / "int8.onnx", how=Quantise(), samples=samples)
    int8 = reference_outputs(quantised.path, samples, as_written=True)
    assert signal_to_error(reference_outputs(model, samples), int8) > 20
    assert [array.dtype for array in constants(quantised.path) if array.shape == (6, 4)] == [numpy.int8]
