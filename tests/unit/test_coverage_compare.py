"""A prediction against rows of a profile."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from onnx import helper

from armlet.coverage import costs
from armlet.coverage.compare import Comparison, Row, compare
from armlet.coverage.graph import Graph
from armlet.coverage.predict import Placement
from tests.fakes.placed_models import model_of, placements, seen

NODES = [
    helper.make_node("Conv", ["x", "w"], ["a"], name="conv"),
    helper.make_node("Relu", ["a"], ["b"], name="relu"),
    helper.make_node("Sigmoid", ["b"], ["y"], name="sigmoid"),
]
FUSED = Row(name="XnnpackExecutionProvider_Conv_0", op="Conv", provider="xnnpack", shape=(1, 6, 6, 4))
AFTER = Row(name="sigmoid", op="Sigmoid", provider="cpu", shape=(1, 6, 6, 4))
TURNED = Row(name="Transpose_token_7", op="Transpose", provider="cpu", shape=(1, 4, 6, 6))


@pytest.fixture(scope="module")
def made() -> tuple[Graph, list[Placement]]:
    graph = seen(model_of(NODES, (1, 4, 8, 8), {"w": numpy.ones((4, 4, 3, 3), numpy.float32)}))
    return graph, placements(graph)


def differ(made: tuple[Graph, list[Placement]], *rows: Row, **more: Any) -> list[tuple[str, str, str]]:
    return [(one.node, one.predicted, one.found) for one in found(made, *rows, **more).disagreements]


def found(made: tuple[Graph, list[Placement]], *rows: Row, **more: Any) -> Comparison:
    return compare(*made, rows, **more)


def test_what_was_predicted_agrees_and_every_node_has_its_row(made: Any) -> None:
    result = found(made, TURNED, FUSED, AFTER)
    assert result.disagreements == []
    assert [result.rows[one.node.index] for one in made[1]] == [FUSED, FUSED, AFTER]
    assert result.added == [TURNED]


def test_nodes_that_were_made_anew_keep_their_names(made: Any) -> None:
    assert differ(made, FUSED, Row(name="sigmoid_token_3_token_12", op="Sigmoid", provider="cpu", shape=None)) == []


def test_another_provider_is_told(made: Any) -> None:
    other = Row(name="sigmoid", op="Sigmoid", provider="xnnpack", shape=None)
    assert differ(made, FUSED, other) == [("sigmoid", "cpu", "xnnpack")]


def test_a_fusion_that_did_not_happen_is_told_of_both(made: Any) -> None:
    conv = Row(name="conv_token_1", op="Conv", provider="xnnpack", shape=(1, 6, 6, 4))
    relu = Row(name="relu", op="Relu", provider="cpu", shape=(1, 6, 6, 4))
    told = differ(made, conv, relu, AFTER)
    assert [name for name, _, _ in told] == ["conv", "relu"]
    assert told[1][1:] == ("fused into conv", "on cpu")


@pytest.mark.parametrize("shape", [(1, 4, 6, 6), (1, 6, 6, 5)])
def test_a_fused_node_of_another_shape_is_another_one(made: Any, shape: tuple[int, ...]) -> None:
    row = Row(name=FUSED.name, op="Conv", provider="xnnpack", shape=shape)
    told = differ(made, row, AFTER)
    assert [(name, predicted) for name, predicted, _ in told][1] == (FUSED.name, "no such node")
    assert told[0][0] == "conv"


def test_a_missing_node_and_a_strange_one_are_told_unless_the_runtime_optimises(made: Any) -> None:
    strange = Row(name="fused sigmoid", op="QuickGelu", provider="cpu", shape=None)
    assert differ(made, FUSED, strange) == [
        ("sigmoid", "cpu", "no such node"),
        ("fused sigmoid", "no such node", "QuickGelu on cpu"),
    ]
    assert differ(made, FUSED, strange, optimised_at_load=True) == []
    elsewhere = Row(name="new", op="Conv", provider="xnnpack", shape=None)
    assert differ(made, FUSED, AFTER, elsewhere, optimised_at_load=True)


def test_a_model_that_does_not_run_must_have_been_predicted_not_to(made: Any) -> None:
    assert differ(made, refused="no kernel") == [("the model", "loads", "no kernel")]
    graph, chosen = made
    chosen[2].trouble = "it fails"
    try:
        assert differ(made, refused="no kernel") == []
        assert differ(made, FUSED, AFTER) == [("sigmoid", "it fails", "loads and runs")]
        chosen[2].trouble, chosen[2].hazard = "", "it may fail"
        assert differ(made, refused="no kernel") == []
        assert differ(made, FUSED, AFTER) == []
    finally:
        chosen[2].trouble = chosen[2].hazard = ""
    assert graph.nodes


class TestNodesWithoutNames:
    """ONNX Runtime takes HardSwish apart, and its parts have none."""

    def made(self) -> tuple[Graph, list[Placement]]:
        nodes = [
            helper.make_node("Conv", ["x", "w"], ["a"]),
            helper.make_node("HardSwish", ["a"], ["b"]),
            helper.make_node("Conv", ["b", "w"], ["c"]),
            helper.make_node("HardSwish", ["c"], ["y"]),
        ]
        graph = seen(model_of(nodes, (1, 4, 8, 8), {"w": numpy.ones((4, 4, 3, 3), numpy.float32)}, opset=14))
        return graph, placements(graph)

    def test_each_is_called_as_the_profile_calls_it(self) -> None:
        graph, chosen = self.made()
        assert all(node.name for node in graph.nodes)
        assert len({node.name for node in graph.nodes}) == 6
        assert {node.name for node in graph.nodes if node.op == "Mul"} == {
            f"Mul_{node.index}" for node in graph.nodes if node.op == "Mul"
        }
        assert costs.peak_bytes(graph, chosen)[1]

    def test_are_found_by_their_operator_where_their_numbers_differ(self) -> None:
        graph, chosen = self.made()
        rows = []
        for at, one in enumerate(chosen):
            own = {"Conv": f"{one.node.name}_token_{at}", "Mul": f"Mul_{40 + at}", "HardSigmoid": f"_token_{at}"}
            rows.append(Row(name=own[one.node.op], op=one.node.op, provider=one.provider, shape=None))
        result = compare(graph, chosen, rows)
        assert result.disagreements == []
        assert result.rows == {one.node.index: row for one, row in zip(chosen, rows, strict=True)}

    def test_one_on_another_provider_is_told_with_its_name(self) -> None:
        graph, chosen = self.made()
        rows = [Row(name=one.node.name, op=one.node.op, provider=one.provider, shape=None) for one in chosen]
        rows[-1] = Row(name=rows[-1].name, op="Mul", provider="xnnpack", shape=None)
        (told,) = compare(graph, chosen, rows).disagreements
        assert (told.node, told.predicted, told.found) == (chosen[-1].node.name, "cpu", "xnnpack")
