"""A prediction against what really ran, node by node. Pure.

ONNX Runtime renames what it changes: a node that it makes anew for another layout is called ``<name>_token_<number>``,
one made of several ``<provider>_<operator>_<number>``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from armlet.coverage.graph import Graph, Node, nameless
from armlet.coverage.predict import CPU, Placement

_ANEW = re.compile(r"(?:_token_\d+)+$")
_FUSED = re.compile(r"[A-Za-z]+ExecutionProvider_(\w+)_(\d+)$")
_OF_LAYOUT = frozenset({"Transpose", "Reshape", "Squeeze", "Unsqueeze", "Gather", "Identity"})
"""What ONNX Runtime adds when it changes the layout, and may merge with nodes of the model."""
_OF_QUANTISED_LAYOUT = frozenset({"QuantizeLinear", "DequantizeLinear"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A node as it ran, ``provider`` as SKUs name it."""

    name: str
    op: str
    provider: str
    shape: tuple[int, ...] | None
    """Of its first output, in the layout that it really has."""
    us: int = 0
    bytes: int = 0
    """Of its outputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    node: str
    predicted: str
    found: str


@dataclass(kw_only=True)
class Comparison:
    """``rows`` are those of the model's nodes: index of a node -> what ran it; ``added`` are no node's of the model."""

    rows: dict[int, Row]
    added: list[Row]
    disagreements: list[Disagreement]


def compare(
    graph: Graph,
    placements: Sequence[Placement],
    ran: Sequence[Row],
    *,
    refused: str = "",
    optimised_at_load: bool = False,
) -> Comparison:
    """Where the two differ.

    Args:
        refused: why the model did not load or run.
        optimised_at_load: the runtime fuses nodes of the CPU provider by itself.
    """
    trouble = next((one for one in placements if one.trouble), None)
    hazard = any(one.hazard for one in placements)
    if refused or trouble:
        if refused and (trouble or hazard):
            return Comparison(rows={}, added=[], disagreements=[])
        who = trouble.node.name if trouble else "the model"
        told = trouble.trouble if trouble else "loads"
        found = Disagreement(node=who, predicted=told, found=refused or "loads and runs")
        return Comparison(rows={}, added=list(ran), disagreements=[found])
    return _Comparing(graph, placements, ran, optimised_at_load).result()


class _Comparing:
    def __init__(
        self, graph: Graph, placements: Sequence[Placement], ran: Sequence[Row], optimised_at_load: bool
    ) -> None:
        self.graph, self.placements, self.optimised_at_load = graph, placements, optimised_at_load
        self.by_index = {one.node.index: one for one in placements}
        self.own: dict[int, Row] = {}
        """Rows that have a node's own name."""
        self.fused, self.others = self._recognised(ran)
        self.rows = dict(self.own)
        self.disagreements: list[Disagreement] = []

    def _recognised(self, ran: Sequence[Row]) -> tuple[list[Row], list[Row]]:
        fused: list[Row] = []
        others: list[Row] = []
        for row in ran:
            if self._takes(row, {row.name, _ANEW.sub("", row.name)}):
                continue
            (fused if _FUSED.match(row.name) else others).append(row)
        # Their numbers are not always those of the prediction, nor is any left of one that is made anew.
        strange = [row for row in others if _is_nameless(row)]
        for row in strange:
            if self._takes(row, None):
                others.remove(row)
        return sorted(fused, key=lambda row: int(_FUSED.sub(r"\2", row.name))), others

    def _takes(self, row: Row, names: Collection[str] | None) -> bool:
        """Whether some node of the names (None: without a name of its own) has no row yet, and now has this one."""
        for one in self.placements:
            node = one.node
            loose = one.fused_into is None and node.name == nameless(node.op, node.index)
            known = loose if names is None else node.name in names
            if known and node.op == row.op and node.index not in self.own:
                self.own[node.index] = row
                return True
        return False

    def result(self) -> Comparison:
        heads: dict[int, list[Node]] = {}
        for one in self.placements:
            if one.fused_into is not None:
                heads.setdefault(one.fused_into, []).append(one.node)
        for one in self.placements:
            if one.node.index in heads:
                self._fused(one, heads[one.node.index])
            elif one.fused_into is None:
                self._single(one)
            elif one.node.index in self.own:
                self._differ(one, f"fused into {self.by_index[one.fused_into].node.name}", self._ran(one.node))
        for row in self.fused:
            found = f"{row.op} {_shown(row.shape)} made of several nodes by {row.provider}"
            self.disagreements.append(Disagreement(node=row.name, predicted="no such node", found=found))
        expected = _OF_LAYOUT | (_OF_QUANTISED_LAYOUT if self._quantised() else frozenset())
        for row in self.others:
            if row.provider != CPU or not (self.optimised_at_load or row.op in expected):
                found = f"{row.op} on {row.provider}"
                self.disagreements.append(Disagreement(node=row.name, predicted="no such node", found=found))
        return Comparison(rows=self.rows, added=self.others, disagreements=self.disagreements)

    def _quantised(self) -> bool:
        return any(one.node.op in _OF_QUANTISED_LAYOUT for one in self.placements)

    def _fused(self, head: Placement, members: list[Node]) -> None:
        """The head and its members must have become one node, with the shape that comes out of the last."""
        alone = next((node for node in (head.node, *members) if node.index in self.own), None)
        wanted = self._shape_of(head, members)
        row = next((row for row in self.fused if self._is(row, head, wanted)), None)
        if row is None or alone is not None:
            found = "no such node" if alone is None else f"{alone.name} by itself: {self._ran(alone)}"
            what = f"one node of {', '.join(node.name for node in (head.node, *members))} on {head.provider}"
            self._differ(head, f"{what} {_shown(wanted)}", found)
            return
        self.fused.remove(row)
        for node in (head.node, *members):
            self.rows[node.index] = row

    def _is(self, row: Row, head: Placement, wanted: tuple[int | None, ...] | None) -> bool:
        fits = (
            wanted is None
            or row.shape is None
            or (
                len(wanted) == len(row.shape)
                and all(size in (None, got) for size, got in zip(wanted, row.shape, strict=True))
            )
        )
        return row.provider == head.provider and fits and row.op in (head.node.op, f"QLinear{head.node.op}")

    def _shape_of(self, head: Placement, members: list[Node]) -> tuple[int | None, ...] | None:
        inside = {node.index for node in (head.node, *members)}
        names = [
            name
            for node in (head.node, *members)
            for name in node.outputs
            if not any(one.index in inside for one in self.graph.consumers.get(name, ()))
        ]
        shape = self.graph.value(names[0]).shape if names else None
        return (shape[0], *shape[2:], shape[1]) if shape is not None and head.moved and len(shape) > 2 else shape

    def _single(self, one: Placement) -> None:
        row = self.own.get(one.node.index)
        if row is None:
            if one.provider == CPU and (self.optimised_at_load or one.node.op in _OF_LAYOUT | _OF_QUANTISED_LAYOUT):
                return
            self._differ(one, one.provider, "no such node")
        elif row.provider != one.provider:
            self._differ(one, one.provider, row.provider)

    def _ran(self, node: Node) -> str:
        return f"on {self.own[node.index].provider}" if node.index in self.own else "not at all"

    def _differ(self, one: Placement, predicted: str, found: str) -> None:
        self.disagreements.append(Disagreement(node=one.node.name, predicted=predicted, found=found))


def _is_nameless(row: Row) -> bool:
    base = _ANEW.sub("", row.name)
    return base == "" or re.fullmatch(rf"{re.escape(row.op)}_\d+", base) is not None


def _shown(shape: Sequence[int | None] | None) -> str:
    return "" if shape is None else "x".join("?" if size is None else str(size) for size in shape)
