"""Which provider takes which node of a model, and why the preferred one did not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from armlet.coverage import hazards
from armlet.coverage.containers import Dictionary, Meaningless, Refused
from armlet.coverage.elements import NAMES
from armlet.coverage.evaluate import Rules
from armlet.coverage.graph import Graph, Node
from armlet.coverage.groups import groups
from armlet.coverage.kernels import NHWC
from armlet.coverage.tables import ProviderTable
from armlet.coverage.units import Group, NodeUnit
from armlet.coverage.values import GraphView, NodeView
from armlet.coverage.words import told

NONE = "none"
"""No provider has a kernel: the runtime does not load the model."""
CPU = "cpu"


@dataclass(kw_only=True)
class Placement:
    """Who runs a node. ``reasons``: provider that was asked and left it -> why, in words, with the sources' line."""

    node: Node
    provider: str = ""
    fused_into: int | None = None
    """Index of the node that does this one's work as well."""
    grouped: bool = False
    """It is part of a quantised group around another node."""
    moved: bool = False
    """It runs in NHWC."""
    reasons: dict[str, str] = field(default_factory=dict)
    trouble: str = ""
    """Why the model does not load, or ends the program, because of this node."""
    hazard: str = ""
    """Why it may do so: what happens then has no rule."""


CpuKernels = Callable[[Node], bool]


def predict(
    graph: Graph, chain: Sequence[str], tables: Mapping[str, ProviderTable], has_cpu_kernel: CpuKernels
) -> list[Placement]:
    """One placement per node, in the graph's order.

    Args:
        chain: providers by preference, as a SKU names them; ``cpu`` comes last.
        tables: those of the chain's other members. One without a table is taken to leave every node, and says so.
    """
    placements = {node.index: Placement(node=node) for node in graph.nodes}
    for provider in chain:
        table = tables.get(provider)
        if provider == CPU:
            continue
        if table is None:
            for one in placements.values():
                one.reasons[provider] = f"there is no table of what {provider} takes"
        elif table.layout == "NHWC":
            _Changing(graph, table, placements).run()
        else:
            _ask_each(graph, table, placements)
    for one in placements.values():
        if not one.provider:
            one.provider = CPU if has_cpu_kernel(one.node) else NONE
            if one.provider == NONE:
                one.trouble = f"the runtime has no kernel for {shown(one.node)} of {_types(graph, one.node)}"
    return list(placements.values())


def shown(node: Node) -> str:
    return f"{node.domain + ':' if node.domain else ''}{node.op} {node.since}"


def _types(graph: Graph, node: Node) -> str:
    return ", ".join(NAMES.get(graph.value(name).element, "?") for name in node.inputs if name) or "no inputs"


def _ask_each(graph: Graph, table: ProviderTable, placements: Mapping[int, Placement]) -> None:
    """A provider that takes nodes as they are: ``ACLExecutionProvider::GetCapability``."""
    for one in placements.values():
        if one.provider:
            continue
        node = one.node
        if table.kernel(node.op, node.domain, node.since, node.types) is None:
            one.reasons[table.provider] = without_kernel(graph, table, node, node.domain)
            continue
        rules = Rules(functions=table.functions)
        judge = table.rules.get(node.op)
        try:
            taken = judge is None or rules.call(judge, [NodeView(graph, node)]).IsOK()
        except (Meaningless, Refused) as error:
            one.provider, one.trouble = NONE, f"{table.provider}'s rules fail on it: {error}"
            continue
        if taken:
            one.provider = table.provider
        else:
            one.reasons[table.provider] = told(rules.reason)
    hazards.find(graph, placements, table)


def without_kernel(graph: Graph, table: ProviderTable, node: Node, domain: str) -> str:
    known = table.versions(node.op, domain)
    if not known:
        return f"{table.provider} has no kernel for {node.op}"
    serving = [kernel for kernel in known if kernel.serves(node.since)]
    if not serving:
        have = ", ".join(_range(kernel.since, kernel.until) for kernel in known)
        return f"{table.provider} has no kernel for version {node.since} of {node.op}, only for {have}"
    types = " or ".join(
        "/".join(f"{name} {'|'.join(elements)}" for name, elements in kernel.types) for kernel in serving
    )
    return f"{table.provider}'s kernel for {node.op} takes {types}, and not {_types(graph, node)}"


def _range(since: int, until: int | None) -> str:
    return str(since) if until in (None, since) else f"{since} to {until}"


class _Changing:
    """A provider that has the layout changed for it: ``XnnpackExecutionProvider::GetCapability``, asked twice."""

    def __init__(self, graph: Graph, table: ProviderTable, placements: Mapping[int, Placement]) -> None:
        self.graph, self.table, self.placements = graph, table, placements
        self.groups = groups(graph)
        self.taken: dict[int, NodeUnit] = {}
        """By the index of every node in a unit."""

    def run(self) -> None:
        oldest, newest = self.table.opsets
        if not oldest <= self.graph.opset <= newest:
            for one in self._free():
                one.reasons[self.table.provider] = (
                    f"the layout is changed for opsets {oldest} to {newest}, and the model has {self.graph.opset}"
                )
            return
        if self._choose():
            self._move()
            self._fuse()
            self._demand_kernels()
            hazards.find(self.graph, self.placements, self.table)

    def _free(self) -> list[Placement]:
        return [one for one in self.placements.values() if not one.provider]

    def _choose(self) -> bool:
        """The first call: which units are taken."""
        for one in self._free():
            group = self.groups.get(one.node.index)
            unit = NodeUnit(self.graph, group.target if group else one.node, group)
            if one.provider or one.reasons.get(self.table.provider) or one.trouble:
                continue
            rules = self._rules()
            try:
                taken = rules.call(self.table.rules["*"], [unit])
            except (Meaningless, Refused) as error:
                one.provider, one.trouble = NONE, f"{self.table.provider}'s rules fail on it: {error}"
                continue
            for index in self._members(unit, group):
                if taken:
                    self.placements[index].provider = self.table.provider
                    self.taken[index] = unit
                else:
                    about = "" if index == unit.node.index else f"it is quantised with {shown(unit.node)}: "
                    self.placements[index].reasons[self.table.provider] = about + told(rules.reason)
        return bool(self.taken)

    def _members(self, unit: NodeUnit, group: Group | None) -> list[int]:
        return [node.index for node in group.nodes] if group else [unit.node.index]

    def _move(self) -> None:
        """Puts nodes that depend on the layout between transposes, and into the domain of that layout."""
        for index, unit in self.taken.items():
            node = self.placements[index].node
            known = self.graph.value(node.inputs[0]).shape is not None if node.inputs else False
            if unit.node is node and node.op in self.table.layout_sensitive and known:
                self.graph.moved[index] = NHWC
                self.placements[index].moved = True

    def _fuse(self) -> None:
        """The second call: activations into the nodes in front of them. Transposes were pushed behind them by then."""
        units = Dictionary({NodeView(self.graph, unit.node): unit for unit in self.taken.values()})
        for index, around in self.groups.items():
            if around.target.index in self.taken and index != around.target.index:
                self.placements[index].fused_into = around.target.index
                self.placements[index].grouped = True
        for one in self._free():
            group = self.groups.get(one.node.index)
            unit = NodeUnit(self.graph, group.target if group else one.node, group)
            rules = self._rules(units)
            with_unit = rules.call(self.table.rules["+"], [unit])
            if with_unit is not None:
                one.provider, one.fused_into = self.table.provider, with_unit.node.index
                one.moved = True
                one.reasons.pop(self.table.provider, None)
            # Of a quantised group nothing is fused: why it was left says more.
            elif rules.reason is not None and not group:
                one.reasons[self.table.provider] = f"it is not fused: {told(rules.reason)}"

    def _rules(self, units: Dictionary | None = None) -> Rules:
        members = {"graph_": GraphView(self.graph), "supported_node_unit_map_": units or Dictionary({})}
        return Rules(functions=self.table.functions, members=members)

    def _demand_kernels(self) -> None:
        """What was taken must have a kernel by now: ONNX Runtime refuses the model otherwise."""
        for index, unit in self.taken.items():
            one = self.placements[index]
            if unit.group or one.node is not unit.node:
                continue
            node, domain = one.node, self.graph.moved.get(index, one.node.domain)
            if self.table.kernel(node.op, domain, node.since, node.types) is None:
                one.provider = NONE
                one.trouble = (
                    f"{self.table.provider} takes it, and {without_kernel(self.graph, self.table, node, domain)}"
                )
