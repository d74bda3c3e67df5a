"""Which provider takes a node, by the project's own tables."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from onnx import helper

from armlet.coverage import islands
from armlet.coverage.predict import Placement
from armlet.coverage.tables import load
from tests.conftest import ROOT
from tests.fakes.placed_models import SOURCE_SET, model_of, placements, seen

FLOATS = numpy.float32
WEIGHTS = {"w": numpy.ones((4, 4, 3, 3), FLOATS)}
DOUBLED = numpy.asarray((1, 1, 2, 2), FLOATS)
MATRIX = {"b": numpy.ones((3, 4), FLOATS), "c": numpy.ones(4, FLOATS)}
SQUARE = (1, 4, 8, 8)


def node(op: str, inputs: str, out: str = "y", name: str = "", **attributes: Any) -> Any:
    names = ["" if one == "-" else one for one in inputs.split()]
    return helper.make_node(op, names, [out], name=name or op.lower(), **attributes)


def placed(
    nodes: list[Any], shape: Any = SQUARE, constants: Any = None, *providers: str, **more: Any
) -> dict[str, Placement]:
    graph = seen(model_of(nodes, shape, constants, **more))
    return {one.node.name: one for one in placements(graph, *providers)}


@pytest.mark.parametrize(
    ("made", "shape", "constants", "why"),
    [
        (node("Conv", "x w"), SQUARE, WEIGHTS, ""),
        (node("Conv", "x w"), ("n", 4, 8, 8), WEIGHTS, ""),
        (node("Conv", "x w"), (1, 4, "h", 8), WEIGHTS, "its height is free"),
        (node("Conv", "x w"), (1, 4, 8, "w"), WEIGHTS, "its width is free"),
        (node("Conv", "x w", auto_pad="SAME_LOWER"), SQUARE, WEIGHTS, "SAME_LOWER, which it does not take"),
        (node("Conv", "x w"), (1, 4, 8), {"w": numpy.ones((4, 4, 3), FLOATS)}, ""),
        (node("Conv", "x w"), (1, 4, 8, 8, 8), {"w": numpy.ones((4, 4, 3, 3, 3), FLOATS)}, "has 5 dimensions"),
        (node("ConvTranspose", "x w"), SQUARE, WEIGHTS, ""),
        (node("MaxPool", "x", kernel_shape=[2, 2]), SQUARE, None, ""),
        (node("MaxPool", "x", kernel_shape=[2, 2], ceil_mode=1), SQUARE, None, "ceil_mode is 1"),
        (node("MaxPool", "x", kernel_shape=[1, 1]), SQUARE, None, "kernel_shape[0] is 1"),
        (node("AveragePool", "x", kernel_shape=[2, 2]), SQUARE, None, ""),
        (node("AveragePool", "x", kernel_shape=[2, 2], count_include_pad=1), SQUARE, None, "cp_in_op"),
        (node("Softmax", "x"), (2, 3), None, ""),
        (node("Softmax", "x", axis=0), (2, 3), None, "axis is 0"),
        (node("Resize", "x - s", mode="linear"), SQUARE, {"s": DOUBLED}, ""),
        (node("Resize", "x - s", mode="linear"), SQUARE, {"s": numpy.asarray((1, 1, 0.5, 0.5), FLOATS)}, ""),
        (node("Resize", "x - s", mode="nearest"), SQUARE, {"s": DOUBLED}, 'mode is "nearest"'),
        (node("Gemm", "x b c"), (2, 3), {"b": numpy.ones((3, 4), FLOATS), "c": numpy.ones(4, FLOATS)}, ""),
        (
            node("Gemm", "x b c", alpha=0.5),
            (2, 3),
            {"b": numpy.ones((3, 4), FLOATS), "c": numpy.ones(4, FLOATS)},
            "alpha is 0.5",
        ),
        (node("MatMul", "x b"), (2, 3), {"b": numpy.ones((3, 4), FLOATS)}, ""),
        (node("MatMul", "x b"), (2, 2, 3), {"b": numpy.ones((3, 4), FLOATS)}, "has 3 dimensions"),
        (node("Sigmoid", "x"), SQUARE, None, "no rule for this operator"),
    ],
)
def test_xnnpack(made: Any, shape: Any, constants: Any, why: str) -> None:
    (one,) = placed([made], shape, constants).values()
    assert one.provider == ("cpu" if why else "xnnpack")
    assert why in one.reasons.get("xnnpack", "")
    assert not one.trouble


def test_weights_and_bounds_must_be_constant() -> None:
    graph = seen(model_of([node("MatMul", "x x")], (3, 3)))
    (one,) = placements(graph)
    assert (one.provider, one.reasons["xnnpack"].partition(" (")[0]) == ("cpu", "the second input is no constant")


def test_activations_go_into_the_node_in_front() -> None:
    nodes = [
        node("Conv", "x w", "a", "conv"),
        node("Relu", "a", "b", "relu"),
        node("MaxPool", "b", "c", "pool", kernel_shape=[2, 2]),
        node("Clip", "c low high", "d", "clip"),
        node("Sigmoid", "d", "e", "sigmoid"),
        node("Relu", "e", "y", "alone"),
    ]
    bounds = {"low": FLOATS(0), "high": FLOATS(6)}
    found = placed(nodes, SQUARE, {**WEIGHTS, **bounds})
    assert found["relu"].fused_into == found["conv"].node.index
    assert found["clip"].fused_into == found["pool"].node.index
    assert [found[name].provider for name in ("relu", "clip", "sigmoid", "alone")] == [
        "xnnpack",
        "xnnpack",
        "cpu",
        "cpu",
    ]
    assert "in front of it is not one that it takes" in found["alone"].reasons["xnnpack"]


def test_a_result_that_the_fusion_loses_is_trouble() -> None:
    nodes = [node("Conv", "x w", "a", "conv"), node("Relu", "a", "b", "relu"), node("Mul", "a b", "y", "mul")]
    assert "whose own result mul needs" in placed(nodes, SQUARE, WEIGHTS)["relu"].trouble
    both = placed(nodes[:2], SQUARE, WEIGHTS, outputs=("a", "b"))
    assert "whose own result the model's output needs" in both["relu"].trouble


def test_a_gemm_without_a_third_input_ends_the_program() -> None:
    (one,) = placed([node("Gemm", "x b")], (2, 3), {"b": numpy.ones((3, 4), FLOATS)}).values()
    assert (one.provider, one.trouble.partition(":")[0]) == ("none", "xnnpack's rules fail on it")
    assert "null pointer at gemm.cc:" in one.trouble


def test_what_is_free_when_the_kernel_is_made() -> None:
    softmax = placed([node("Softmax", "x", axis=1)], (2, "n"), opset=11)["softmax"]
    assert (softmax.provider, bool(softmax.hazard)) == ("xnnpack", True)
    scales, sizes = {"s": DOUBLED}, {"s": numpy.asarray((1, 4, 16, 16), numpy.int64)}
    by_scales = node("Resize", "x - s", mode="linear")
    assert placed([by_scales], (1, 4, "h", 8), scales)["resize"].hazard
    assert not placed([by_scales], ("n", 4, 8, 8), scales)["resize"].trouble
    assert (
        "its batch is free"
        in placed([node("Resize", "x - - s", mode="linear")], ("n", 4, 8, 8), sizes)["resize"].trouble
    )


def test_the_layout_of_old_models_is_left_alone() -> None:
    graph = seen(model_of([node("Conv", "x w")], SQUARE, WEIGHTS))
    graph.opset = 6
    (one,) = placements(graph)
    assert (one.provider, "opsets 7 to 22" in one.reasons["xnnpack"]) == ("cpu", True)


def test_acl_asks_its_kernels_first_and_then_its_rules() -> None:
    found = placed([node("Conv", "x w", "a"), node("Sigmoid", "a")], SQUARE, WEIGHTS, "acl", "xnnpack", "cpu")
    assert (found["conv"].provider, found["sigmoid"].provider) == ("acl", "cpu")
    assert found["sigmoid"].reasons["acl"] == "acl has no kernel for Sigmoid"
    free = placed([node("Conv", "x w")], (1, 4, "h", 8), WEIGHTS, "acl", "xnnpack", "cpu")["conv"]
    assert free.provider == "cpu"
    assert free.reasons["acl"].startswith("ACL does not support unknown tensor shapes: x")
    grouped = {"w": numpy.ones((4, 2, 3, 3), FLOATS)}
    assert (
        placed([node("Conv", "x w", group=2)], SQUARE, grouped, "acl", "xnnpack", "cpu")["conv"].provider == "xnnpack"
    )
    old = placed([node("Concat", "x x", axis=0)], SQUARE, None, "acl", "cpu")["concat"]
    assert old.reasons["acl"] == "acl has no kernel for version 13 of Concat, only for 4 to 10, 11"


def test_acls_mistakes_are_trouble() -> None:
    product = placed([node("MatMul", "x b")], (2, 3), {"b": numpy.ones((3, 4), FLOATS)}, "acl", "cpu")["matmul"]
    assert (product.provider, "loses that" in product.trouble) == ("acl", True)


def quantised(*, relu: bool) -> dict[str, Placement]:
    constants = {"s": FLOATS(0.1), "z": numpy.int8(0), "w": numpy.ones((4, 4, 3, 3), numpy.int8)}
    nodes = [
        node("DequantizeLinear", "x s z", "a", "before"),
        node("DequantizeLinear", "w s z", "b", "weights"),
        node("Conv", "a b", "c", "conv"),
        *([node("Relu", "c", "d", "relu")] if relu else []),
        node("QuantizeLinear", "d s z" if relu else "c s z", "y", "after"),
    ]
    graph = seen(model_of(nodes, SQUARE, constants, kind="int8"), alone=False)
    return {one.node.name: one for one in placements(graph)}


def test_quantised_groups_are_taken_as_one() -> None:
    found = quantised(relu=False)
    conv = found["conv"]
    assert (conv.provider, conv.fused_into) == ("xnnpack", None)
    assert {name for name, one in found.items() if one.fused_into == conv.node.index} == {"before", "weights", "after"}
    assert all(found[name].grouped for name in ("before", "weights", "after"))


def test_a_relu_that_does_something_breaks_up_a_quantised_group() -> None:
    found = quantised(relu=True)
    assert {one.provider for one in found.values()} == {"cpu"}
    assert found["conv"].reasons["xnnpack"].startswith("the weights are no constant")


def test_islands_and_the_transposes_between_them() -> None:
    nodes = [
        node("Conv", "x w", "a", "first"),
        node("Sigmoid", "a", "b", "sigmoid"),
        node("GlobalAveragePool", "b", "c", "pool"),
        node("Mul", "a c", "d", "mul"),
        node("Conv", "d w", "y", "second"),
    ]
    graph = seen(model_of(nodes, SQUARE, WEIGHTS))
    found = placements(graph)
    parts = islands.islands(graph, found, "xnnpack")
    assert [part.nodes for part in parts] == [("first",), ("second",)]
    assert parts[0].macs == 4 * 6 * 6 * 4 * 9
    assert parts[0].crossing == 4 * (4 * 64 + 4 * 36)
    forced = islands.forced_transposes(graph, found, load(ROOT, SOURCE_SET, "xnnpack"))
    assert {(one.op, one.side, one.tensor) for one in forced} == {
        ("Conv", "before", "x"),
        ("GlobalAveragePool", "before", "b"),
        ("GlobalAveragePool", "after", "c"),
        ("Conv", "after", "y"),
    }
    assert islands.grouped(forced)["GlobalAveragePool"] == (2, 4 * 4 * 36 + 4 * 4)
