"""What goes wrong with nodes that a provider has taken: mistakes of ONNX Runtime that its rules do not guard against.

Each was found by running such a model, and ``armlet/coverage/restated.py`` binds it to the code that makes it: with a
version that mends it no table is made, until the hazard has gone from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from armlet.coverage.graph import Graph

if TYPE_CHECKING:
    from armlet.coverage.predict import Placement

_LAST_FLATTENING_SOFTMAX = 12
"""Newest version of Softmax that works on all dimensions from its axis on."""


def find(graph: Graph, placements: Mapping[int, Placement], provider: str, *, resolved: frozenset[str] | None) -> None:
    """Writes into the placements of ``provider`` what the model fails on (``trouble``) or may fail on (``hazard``).

    Args:
        resolved: operators whose types an ORT-format model holds, beside those in the graph; None where the runtime
            knows every operator's.
    """
    if provider != "xnnpack":
        return
    for one in placements.values():
        if one.provider != provider or one.trouble:
            continue
        if one.fused_into is not None and not one.grouped:
            _lost_output(graph, placements[one.fused_into], one)
        if one.node.op == "Softmax" and one.node.since <= _LAST_FLATTENING_SOFTMAX and not one.grouped:
            _free_after_axis(graph, one)
        if one.node.op == "Resize" and one.moved:
            _free_when_made(graph, one)
    if resolved is not None:
        _untyped_groups(graph, placements, provider, resolved)


def _lost_output(graph: Graph, head: Placement, member: Placement) -> None:
    name = member.node.inputs[0]
    others = [node for node in graph.consumers.get(name, ()) if node is not member.node]
    if others or name in graph.outputs:
        user = others[0].name if others else "the model's output"
        member.trouble = (
            f"it is fused into {head.node.name}, whose own result {user} needs as well and then does not find "
            "(FuseActivation): have the activation's result used alone"
        )


def _free_after_axis(graph: Graph, one: Placement) -> None:
    shape = graph.value(one.node.inputs[0]).shape or ()
    axis = one.node.attributes.get("axis", 1)
    if None in shape[axis if axis >= 0 else axis + len(shape) :]:
        one.hazard = "its kernel is made for sizes that are free here, and may end the program: fix the input's shape"


def _free_when_made(graph: Graph, one: Placement) -> None:
    shape = graph.value(one.node.inputs[0]).shape or ()
    if None in shape[1:]:
        one.hazard = (
            "its kernel is made for a size that is not known by then, and refuses the model or resizes to another one: "
            "fix the input's shape"
        )


def _untyped_groups(graph: Graph, placements: Mapping[int, Placement], provider: str, resolved: frozenset[str]) -> None:
    known = resolved | {node.op for node in graph.nodes}
    for one in placements.values():
        whole = any(other.fused_into == one.node.index and other.grouped for other in placements.values())
        if one.provider == provider and whole and f"QLinear{one.node.op}" not in known:
            if one.node.op in ("MaxPool", "Resize"):
                continue
            one.trouble = (
                f"with the nodes around it it becomes QLinear{one.node.op}, "
                "whose types an ORT-format model does not hold"
            )
