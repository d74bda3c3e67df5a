"""What goes wrong with nodes that a provider has taken: mistakes of ONNX Runtime that its rules do not guard against.

Each was found by running such a model, and ``armlet/coverage/restated.py`` binds it to the code that makes it: with a
version that mends it no table is made, until the hazard has gone from here.

A ``trouble`` always ends in a model that does not load, does not run or ends the program; a ``hazard`` may.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from armlet.coverage.graph import Graph
from armlet.coverage.kernels import NHWC

if TYPE_CHECKING:
    from armlet.coverage.predict import Placement
    from armlet.coverage.tables import ProviderTable

    Placements = Mapping[int, Placement]
    Rule = Callable[[Graph, Placements, Placement, ProviderTable], None]

_LAST_FLATTENING_SOFTMAX = 12
"""Newest version of Softmax that works on all dimensions from its axis on."""
_SIZES = 3
"""Input of Resize."""
_BECOMES = {
    "Conv": ("QLinearConv", NHWC),
    "ConvTranspose": ("QLinearConvTranspose", NHWC),
    "AveragePool": ("QLinearAveragePool", NHWC),
    "Softmax": ("QLinearSoftmax", "xnnpack"),
    "MaxPool": ("MaxPool", NHWC),
    "Resize": ("Resize", ""),
}
"""XNNPACK's FuseQDQGroup: operator of a quantised group -> operator and domain that the group becomes."""


def find(graph: Graph, placements: Placements, table: ProviderTable) -> None:
    """Writes into the placements of the table's provider what the model fails on, or may fail on."""
    for one in placements.values():
        if one.provider == table.provider:
            for rule in _RULES.get(table.provider, ()):
                if not one.trouble:
                    rule(graph, placements, one, table)


def _lost_output(graph: Graph, placements: Placements, one: Placement, _table: ProviderTable) -> None:
    if one.fused_into is None or one.grouped:
        return
    head, name = placements[one.fused_into], one.node.inputs[0]
    others = [node for node in graph.consumers.get(name, ()) if node is not one.node]
    if others or name in graph.outputs:
        user = others[0].name if others else "the model's output"
        one.trouble = (
            f"it is fused into {head.node.name}, whose own result {user} needs as well and then does not find: "
            "use the activation's result alone"
        )


def _free_after_axis(graph: Graph, _placements: Placements, one: Placement, _table: ProviderTable) -> None:
    if one.node.op != "Softmax" or one.node.since > _LAST_FLATTENING_SOFTMAX or one.grouped:
        return
    shape = graph.value(one.node.inputs[0]).shape or ()
    axis = one.node.attributes.get("axis", 1)
    if None in shape[axis if axis >= 0 else axis + len(shape) :]:
        one.hazard = "its kernel is made for sizes that are free here, and may end the program: fix the input's shape"


def _free_when_made(graph: Graph, _placements: Placements, one: Placement, _table: ProviderTable) -> None:
    if one.node.op != "Resize" or not one.moved:
        return
    shape = graph.value(one.node.inputs[0]).shape or ()
    by_sizes = len(one.node.inputs) > _SIZES and one.node.inputs[_SIZES] in graph.constants
    if None in shape[1:]:
        one.hazard = (
            "its kernel is made for a size that is not known by then, and refuses the model or resizes to another one: "
            "fix the input's shape"
        )
    elif by_sizes and None in shape:
        one.trouble = (
            "its batch is free, and its kernel divides its sizes by that: fix the input's shape, or give scales"
        )


def _without_definition(graph: Graph, _placements: Placements, one: Placement, table: ProviderTable) -> None:
    oldest = min(table.nhwc_definitions.get(one.node.op, (0,)))
    if graph.resolved is None and one.moved and one.fused_into is None and one.node.since < oldest:
        one.trouble = f"ONNX Runtime defines {one.node.op} in NHWC from version {oldest} on, and it is {one.node.since}"


def _group_without_kernel(graph: Graph, placements: Placements, one: Placement, table: ProviderTable) -> None:
    whole = any(other.fused_into == one.node.index and other.grouped for other in placements.values())
    if not whole or one.node.op not in _BECOMES:
        return
    op, domain = _BECOMES[one.node.op]
    if not table.versions(op, domain):
        one.trouble = f"with the nodes around it it becomes {op} of another layout, for which there is no kernel"
    elif graph.resolved is not None and op not in graph.resolved:
        one.trouble = f"with the nodes around it it becomes {op}, whose types this ORT-format model does not hold"


def _mutable_weights(graph: Graph, _placements: Placements, one: Placement, _table: ProviderTable) -> None:
    quantised = one.node.op == "QLinearConv"
    if one.node.op not in ("Conv", "FusedConv", "NhwcConv", "QLinearConv"):
        return
    for at, role in ((3, "weights"), (8, "bias")) if quantised else ((1, "weights"), (2, "bias")):
        name = one.node.inputs[at] if len(one.node.inputs) > at else ""
        if name and name not in graph.constants:
            one.trouble = f"its {role} must be constant for acl, which it does not check before: make them so"


def _packed_and_lost(graph: Graph, _placements: Placements, one: Placement, _table: ProviderTable) -> None:
    if one.node.op not in ("MatMul", "FusedMatMul") or one.node.inputs[1] not in graph.constants:
        return
    shape = graph.constants[one.node.inputs[1]].shape
    if math.prod(shape[:-2]) == 1:
        one.trouble = "acl's kernel packs its constant second input, loses that and fails when it runs: use a Gemm"


_RULES: Mapping[str, tuple[Rule, ...]] = {
    "xnnpack": (_lost_output, _without_definition, _group_without_kernel, _free_after_axis, _free_when_made),
    "acl": (_mutable_weights, _packed_and_lost),
}
