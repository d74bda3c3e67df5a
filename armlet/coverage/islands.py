"""Where a model changes hands: runs of nodes on the preferred provider, and transposes that a layout forces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from armlet.coverage import costs
from armlet.coverage.graph import Graph, Node
from armlet.coverage.predict import Placement
from armlet.coverage.tables import ProviderTable

_WITH_LAYOUT = 3
"""Fewest dimensions of a tensor that has a layout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Island:
    """Nodes of the preferred provider that hang together; ``crossing`` are bytes that go in and out of it."""

    nodes: tuple[str, ...]
    macs: int
    crossing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ForcedTranspose:
    """One that is expected because ``node`` works on the other layout than its neighbour."""

    node: str
    op: str
    side: str
    """``before`` or ``after`` the node."""
    tensor: str
    bytes: int


def islands(graph: Graph, placements: Sequence[Placement], preferred: str) -> tuple[Island, ...]:
    """In the order of their first nodes."""
    of: dict[int, int] = {one.node.index: one.node.index for one in placements if one.provider == preferred}
    by_index = {one.node.index: one for one in placements}

    def root(index: int) -> int:
        while of[index] != index:
            index = of[index]
        return index

    for one in placements:
        for name in one.node.outputs:
            for user in graph.consumers.get(name, ()):
                if one.node.index in of and user.index in of:
                    of[max(root(one.node.index), root(user.index))] = min(root(one.node.index), root(user.index))
    members: dict[int, list[Node]] = {}
    for one in placements:
        if one.node.index in of:
            members.setdefault(root(one.node.index), []).append(by_index[one.node.index].node)
    return tuple(_island(graph, nodes) for nodes in members.values())


def _island(graph: Graph, nodes: list[Node]) -> Island:
    inside = {node.index for node in nodes}
    crossing: dict[str, int] = {}
    for node in nodes:
        for name in node.inputs:
            producer = graph.producers.get(name)
            if name and name not in graph.constants and (producer is None or producer.index not in inside):
                crossing[name] = costs.bytes_made(graph, name)
        for name in node.outputs:
            users = graph.consumers.get(name, ())
            if name in graph.outputs or any(user.index not in inside for user in users):
                crossing[name] = costs.bytes_made(graph, name)
    return Island(
        nodes=tuple(node.name for node in nodes),
        macs=sum(costs.macs(graph, node) or 0 for node in nodes),
        crossing=sum(crossing.values()),
    )


def forced_transposes(
    graph: Graph, placements: Sequence[Placement], table: ProviderTable
) -> tuple[ForcedTranspose, ...]:
    """Those that are left when transposes have been pushed through whatever lets them through.

    A forecast of ONNX Runtime's transpose optimiser, good enough to name who is to blame: what is really added shows
    when the model runs.
    """
    turned: set[str] = set()
    moved = {one.node.index for one in placements if one.moved}
    by_index = {one.node.index: one for one in placements}
    through: set[int] = set()
    for node in graph.nodes:
        if by_index[node.index].moved:
            turned.update(node.outputs)
        elif _lets_through(node, graph, table) and any(name in turned for name in node.inputs):
            through.add(node.index)
            turned.update(name for name in node.outputs if _rank(graph, name) >= _WITH_LAYOUT)
    found: dict[tuple[str, str], ForcedTranspose] = {}
    for node in graph.nodes:
        wants_turned = node.index in moved or node.index in through
        for at, name in enumerate(node.inputs):
            if not name or name in graph.constants or _rank(graph, name) < _WITH_LAYOUT:
                continue
            if wants_turned and name not in turned and (at == 0 or node.index in through):
                before = graph.producers.get(name)
                blamed, side = (node, "before") if before is None else (before, "after")
                found.setdefault((name, "turn"), _forced(graph, blamed, side, name))
            elif not wants_turned and name in turned:
                found.setdefault((name, "back"), _forced(graph, node, "before", name))
    for name in graph.outputs:
        if name in turned and name in graph.producers:
            found.setdefault((name, "back"), _forced(graph, graph.producers[name], "after", name))
    return tuple(found.values())


def _forced(graph: Graph, node: Node, side: str, name: str) -> ForcedTranspose:
    size = costs.bytes_made(graph, name)
    return ForcedTranspose(node=node.name, op=node.op, side=side, tensor=name, bytes=size)


def _lets_through(node: Node, graph: Graph, table: ProviderTable) -> bool:
    name = f"{node.domain}.{node.op}" if node.domain else node.op
    if node.op == "Resize":
        # Only a runtime that optimises at load looks at it again once it is the CPU provider's.
        return graph.resolved is None
    # Reshape does so for few shapes only; a pooling that was not taken stays as it is.
    return name in table.layout_transparent and node.op not in ("Reshape", "MaxPool")


def _rank(graph: Graph, name: str) -> int:
    return len(graph.value(name).shape or ())


def grouped(transposes: Sequence[ForcedTranspose]) -> Mapping[str, tuple[int, int]]:
    """Operator that is to blame -> number of transposes, bytes that they move; the most bytes first."""
    found: dict[str, tuple[int, int]] = {}
    for one in transposes:
        count, moved = found.get(one.op, (0, 0))
        found[one.op] = (count + 1, moved + one.bytes)
    return dict(sorted(found.items(), key=lambda row: -row[1][1]))
