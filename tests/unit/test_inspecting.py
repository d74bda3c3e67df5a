"""What ``model.inspect`` says of small models."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest
from onnx import helper

from armlet.coverage import costs
from armlet.coverage.compare import Row, compare
from armlet.coverage.graph import Graph
from armlet.coverage.tables import load
from armlet.errors import ArmletError, Kind
from armlet.onnx.convert import save_optimised
from armlet.onnx.inspecting import Inspection, inspection
from armlet.onnx.levels import LEVELS
from armlet.onnx.ortgraph import graph_of, named
from armlet.onnx.placing import Placed
from armlet.onnx.samples import random_sample
from armlet.qemu.inspected import demand
from armlet.verbs.model_inspect import told
from tests.conftest import ROOT
from tests.fakes.placed_models import SOURCE_SET, model_of, placements, seen

ONES = numpy.ones
NODES = [
    helper.make_node("Conv", ["x", "w", "b"], ["a"], name="conv", pads=[1, 1, 1, 1]),
    helper.make_node("Relu", ["a"], ["c"], name="relu"),
    helper.make_node("GlobalAveragePool", ["c"], ["y"], name="pool"),
]
CONSTANTS = {"w": ONES((8, 4, 3, 3), numpy.float32), "b": ONES(8, numpy.float32)}
SHAPE = (1, 4, 10, 10)
RAN = (
    Row(name="Transpose", op="Transpose", provider="cpu", shape=(1, 10, 10, 4), us=10, bytes=1600),
    Row(name="XnnpackExecutionProvider_Conv_0", op="Conv", provider="xnnpack", shape=(1, 10, 10, 8), us=60, bytes=3200),
    Row(name="Transpose_token_4", op="Transpose", provider="cpu", shape=(1, 8, 10, 10), us=20, bytes=3200),
    Row(name="pool", op="GlobalAveragePool", provider="cpu", shape=(1, 8, 1, 1), us=10, bytes=32),
)


def cost(
    op: str,
    shape: Any,
    constants: Any = None,
    inputs: str = "x w",
    *,
    opset: int = 13,
    kind: str = "float32",
    **attributes: Any,
) -> int | None:
    node = helper.make_node(op, inputs.split(), ["y"], name="n", **attributes)
    graph = seen(model_of([node], shape, constants, opset=opset, kind=kind))
    (only,) = graph.nodes
    return costs.macs(graph, only)


def inspected(ran: tuple[Row, ...] | None = None, *, shape: Any = SHAPE, **more: Any) -> Inspection:
    graph = seen(model_of(NODES, shape, CONSTANTS))
    chosen = placements(graph)
    placed = Placed(graph=graph, placements=chosen, model=b"", extension=".ort", level="basic")
    return inspection(
        placed,
        model="m.onnx",
        sku="demo-a53",
        ort_version="1.21.0",
        flavor="minimal",
        providers=("xnnpack", "cpu"),
        tables={"xnnpack": load(ROOT, SOURCE_SET, "xnnpack")},
        compared=None if ran is None else compare(graph, chosen, ran, refused=more.get("refused", "")),
        **more,
    )


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (lambda: cost("Conv", (1, 4, 8, 8), {"w": ONES((6, 2, 3, 3), numpy.float32)}, group=2), 6 * 36 * 2 * 9),
        (lambda: cost("ConvTranspose", (1, 4, 8, 8), {"w": ONES((4, 6, 3, 3), numpy.float32)}), 4 * 64 * 6 * 9),
        (lambda: cost("MatMul", (2, 3, 5), {"w": ONES((5, 7), numpy.float32)}), 2 * 3 * 5 * 7),
        (
            lambda: cost(
                "Gemm", (5, 3), {"w": ONES((5, 7), numpy.float32), "c": ONES(7, numpy.float32)}, "x w c", transA=1
            ),
            3 * 5 * 7,
        ),
        (lambda: cost("Relu", (1, 4, 8, 8), None, "x"), 0),
    ],
)
def test_multiply_accumulates(found: Any, expected: int) -> None:
    assert found() == expected


def scaled(shape: Any) -> Graph:
    """A network behind scikit-learn's scaler, of whose output ONNX Runtime knows nothing; and one behind another."""
    nodes = [
        helper.make_node("Scaler", ["x"], ["s"], domain="ai.onnx.ml", offset=[0.0], scale=[1.0]),
        helper.make_node("Sub", ["s", "m"], ["c"]),
        helper.make_node("MatMul", ["c", "w"], ["h"]),
        helper.make_node("Concat", ["h", "h"], ["t"], axis=1),
        helper.make_node("Gemm", ["t", "v"], ["y"]),
    ]
    constants = {"m": ONES(5, numpy.float32), "w": ONES((5, 7), numpy.float32), "v": ONES((14, 3), numpy.float32)}
    model = model_of(nodes, shape, constants)
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 1))
    return seen(model)


def inspected_graph(graph: Graph) -> Inspection:
    return inspection(
        Placed(graph=graph, placements=placements(graph), model=b"", extension=".ort", level="basic"),
        model="m.onnx",
        sku="demo-a53",
        ort_version="1.21.0",
        flavor="minimal",
        providers=("xnnpack", "cpu"),
        tables={"xnnpack": load(ROOT, SOURCE_SET, "xnnpack")},
    )


def test_shapes_that_onnx_runtime_does_not_know_are_counted_where_they_follow() -> None:
    graph = scaled((2, 5))
    assert graph.value("s").shape is None, "the test needs what ONNX Runtime does not know"
    found = inspected_graph(graph)
    assert [line.macs for line in found.nodes] == [0, 0, 2 * 5 * 7, 0, 2 * 14 * 3]
    assert [line.outputs[0] for line in found.nodes][2:4] == ["float[2,7]", "float[2,14]"]
    assert (found.macs_unknown, found.unknown_tensors, found.free) == (0, 0, False)
    # What providers are asked about is what ONNX Runtime knows.
    assert graph.value("s").shape is None


def test_what_cannot_be_known_is_not_called_zero() -> None:
    nodes = [
        helper.make_node("Reshape", ["x", "r"], ["a"]),
        helper.make_node("MatMul", ["a", "w"], ["y"], name="product"),
    ]
    model = model_of(nodes, ("n",), {"w": ONES((5, 7), numpy.float32)})
    model.graph.input.append(helper.make_tensor_value_info("r", 7, ["k"]))
    found = inspected_graph(seen(model))
    assert [line.macs for line in found.nodes] == [0, None]
    assert (found.macs, found.macs_unknown, found.unknown_tensors) == (0, 1, 2)
    short, whole = told(found, whole=False), told(found, whole=True)
    assert "MACs unknown" in short
    assert "0 MACs" not in short
    assert "2 tensors of a shape that is not known" in short
    assert "?" in next(line for line in whole.splitlines() if line.startswith("product"))
    json.dumps(found.to_json())


def test_the_report_counts_in_english() -> None:
    found = inspected(RAN)
    assert found.verified is not None
    one = replace(
        found,
        nodes=found.nodes[2:],
        verified=replace(found.verified, transposes=1),
        macs=1000,
        macs_by_provider={"cpu": 1, "xnnpack": 999},
    )
    text = told(one, whole=False)
    for wrong in ("1 nodes", "1 islands", "1 Transposes", "0% on cpu", "100% on xnnpack"):
        assert not re.search(rf"(?<!\d){wrong}", text), wrong
    assert "1 island of nodes on xnnpack:" in text
    assert "under 1% on cpu, over 99% on xnnpack" in text
    assert "island" not in told(replace(found, islands=()), whole=False)


def test_recurrent_layers_count_their_gates() -> None:
    node = helper.make_node("LSTM", ["x", "w", "r"], ["y"], name="lstm", hidden_size=5)
    constants = {"w": ONES((1, 20, 3), numpy.float32), "r": ONES((1, 20, 5), numpy.float32)}
    graph = seen(model_of([node], (7, 2, 3), constants))
    assert costs.macs(graph, graph.nodes[0]) == 7 * 2 * (20 * 3 + 20 * 5)


def test_parameters_and_memory() -> None:
    found = inspected()
    conv, relu, pool = found.nodes
    assert (conv.parameters, found.parameters) == (8 * 4 * 9 + 8, 8 * 4 * 9 + 8)
    # What is between a convolution and the activation that is one with it is never there.
    assert (conv.activation_bytes, relu.activation_bytes, pool.activation_bytes) == (0, 3200, 32)
    # The input too, as at any one time.
    assert found.activation_bytes == 1600 + 3232
    assert found.peak_bytes <= found.activation_bytes
    assert (found.peak_bytes, found.peak_at) == (1600 + 3200, "relu")
    assert conv.outputs == ("float[1,8,10,10]",)
    assert relu.fused_into == "conv"


def test_tensors_live_from_the_first_to_the_last_who_needs_them() -> None:
    nodes = [
        helper.make_node("Sigmoid", ["x"], ["a"], name="one"),
        helper.make_node("Sigmoid", ["a"], ["b"], name="two"),
        helper.make_node("Add", ["a", "b"], ["y"], name="three"),
    ]
    graph = seen(model_of(nodes, (10,)))
    assert costs.peak_bytes(graph, placements(graph)) == (120, "three")


def test_free_dimensions_count_as_one_and_that_is_said() -> None:
    found = inspected(shape=("n", 4, 10, 10))
    assert found.free
    assert found.macs == inspected().macs
    assert "--shape fixes them" in told(found, whole=False)
    assert found.nodes[0].inputs[0] == "float[?,4,10,10]"


def test_the_report_before_a_run_and_after_one() -> None:
    before, after = inspected(), inspected(RAN)
    assert {(one.op, one.count, one.bytes) for one in before.transposes} == {
        ("Conv", 1, 1600),
        ("GlobalAveragePool", 1, 3200),
    }
    assert {one.op: one.share for one in after.transposes} == {"Conv": 0.1, "GlobalAveragePool": 0.2}
    assert after.verified is not None
    assert (after.verified.agrees, after.verified.transposes, after.verified.us, after.verified.merged) == (
        True,
        2,
        100,
        0,
    )
    assert [line.us for line in after.nodes] == [60, None, 10]
    demand(before)
    demand(after)
    assert "--verify runs it" in told(before, whole=False)
    assert "all 3 nodes ran as predicted" in told(after, whole=False)
    assert "fused into conv" in told(after, whole=True)
    made = json.loads(json.dumps(after.to_json()))
    assert (made["schema"], made["nodes"][2]["reasons"]["xnnpack"]) == (1, "it has no rule for this operator")


def test_a_disagreement_ends_with_the_code_of_the_target() -> None:
    found = inspected((*RAN[:-1], replace(RAN[-1], provider="xnnpack")))
    assert "predicted" in told(found, whole=False)
    with pytest.raises(ArmletError, match="in 1 place: pool was predicted: cpu, and found: xnnpack") as caught:
        demand(found)
    assert caught.value.kind is Kind.TARGET


def test_a_refusal_that_nobody_predicted_is_a_disagreement() -> None:
    with pytest.raises(ArmletError, match="found: no room"):
        demand(inspected((), refused="no room"))


def test_every_node_gets_a_name_and_keeps_its_own() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Relu", ["a"], ["y"], name="Relu_0")]
    assert [node.name for node in named(model_of(nodes, (3,))).graph.node] == ["Relu_0_2", "Relu_0"]


class TestOrtFormat:
    def graph(self, **more: Any) -> Graph:
        node = helper.make_node("Conv", ["x", "w"], ["y"], name="conv")
        return seen(
            model_of([node], ("n", 4, 8, 8), {"w": numpy.arange(36, dtype=numpy.float32).reshape(1, 4, 3, 3)}), **more
        )

    def test_has_what_a_runtime_reads(self) -> None:
        graph = self.graph()
        (conv,) = graph.nodes
        assert (conv.op, conv.since, conv.attributes["group"], conv.attributes["auto_pad"]) == ("Conv", 11, 1, "NOTSET")
        assert graph.value("x").shape == (None, 4, 8, 8)
        assert graph.value("y").shape == (None, 1, 6, 6)
        assert list(graph.constants["w"].numbers())[:3] == [0.0, 1.0, 2.0]
        assert (graph.inputs, graph.outputs, graph.opset) == (("x",), ("y",), 13)
        assert conv.types["T"] == "float"
        assert graph.resolved is not None
        assert "Conv" in graph.resolved
        assert self.graph(alone=False).resolved is None

    def test_an_initialiser_that_is_an_input_too_is_no_constant(self) -> None:
        model = model_of([helper.make_node("Add", ["x", "w"], ["y"], name="add")], (2,), {"w": ONES(2, numpy.float32)})
        model.graph.input.append(helper.make_tensor_value_info("w", 1, [2]))
        graph = seen(model)
        assert ("w" in graph.constants, graph.inputs) == (False, ("x",))

    @pytest.mark.parametrize("cut", [9, 200, 600])
    def test_damage_is_an_error(self, cut: int) -> None:
        data = save_optimised(model_of(NODES, SHAPE, CONSTANTS), LEVELS["cpu"], save_as="ORT", where=Path("m"))
        with pytest.raises(ArmletError) as caught:
            graph_of(data[:cut])
        assert caught.value.kind is Kind.INPUT


def test_a_sample_is_made_for_a_free_batch_and_no_other_free_dimension() -> None:
    sample = random_sample(seen(model_of(NODES, ("n", 4, 10, 10), CONSTANTS)).fed(), where=Path("m"))
    assert sample.inputs["x"].shape == SHAPE
    with pytest.raises(ArmletError, match="free dimensions") as caught:
        random_sample(seen(model_of(NODES, (1, 4, "h", 10), CONSTANTS)).fed(), where=Path("m"))
    assert "--shape x=1,4,<size>,10" in caught.value.hint
