"""A model on a SKU, node by node: what it costs, who runs it, and where it changes hands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from armlet.coverage import costs, islands
from armlet.coverage.compare import Comparison, Row
from armlet.coverage.elements import NAMES
from armlet.coverage.graph import Graph
from armlet.coverage.predict import Placement
from armlet.coverage.shapes import completed
from armlet.coverage.tables import ProviderTable
from armlet.onnx.placing import Placed

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One node. ``inputs`` and ``outputs`` as ``float[1,3,48,192]``, ``?`` where a dimension is free."""

    name: str
    op: str
    domain: str
    since_version: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    macs: int | None
    """None where they depend on a shape that is not known."""
    parameters: int
    activation_bytes: int
    """What its outputs take; 0 where the tensor in between is never made."""
    provider: str
    fused_into: str | None
    reasons: dict[str, str]
    """Provider that was asked before -> why it left the node."""
    trouble: str
    hazard: str
    us: int | None
    """Microseconds under emulation, where the model was run; a fused node's time stands at the first of its nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transposes:
    """Those that operators of one kind force. ``share`` of all time where the model was run, else of all bytes made."""

    op: str
    count: int
    bytes: int
    share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What the run on the target showed. ``transposes`` were really added; ``us`` is the time of all nodes together."""

    agrees: bool
    refused: str
    disagreements: tuple[dict[str, str], ...]
    merged: int
    """Nodes without a trace of their own: the runtime made others of them, all on the CPU provider."""
    transposes: int
    transposes_us: int
    us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    model: str
    sku: str
    ort_version: str
    flavor: str
    built: bool
    """Else predicted from the recipe, and every kernel of the CPU provider is taken to be there."""
    providers: tuple[str, ...]
    opset: int
    level: str
    """How far the model is optimised when the providers are asked."""
    nodes: tuple[Line, ...]
    islands: tuple[islands.Island, ...]
    transposes: tuple[Transposes, ...]
    macs: int
    """Of the nodes whose MACs are known."""
    macs_by_provider: dict[str, int]
    macs_unknown: int
    """Nodes whose are not."""
    parameters: int
    activation_bytes: int
    """Of all tensors that are made or fed, those of unknown shape left out."""
    unknown_tensors: int
    """Those of unknown shape."""
    peak_bytes: int
    peak_at: str
    free: bool
    """Some dimension is free, and counted as 1."""
    verified: Verified | None

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self)}


def inspection(
    placed: Placed,
    *,
    model: str,
    sku: str,
    ort_version: str,
    flavor: str,
    built: bool = True,
    providers: Sequence[str],
    tables: Mapping[str, ProviderTable],
    compared: Comparison | None = None,
    refused: str = "",
) -> Inspection:
    """What is known of a placed model, and of its run where there was one. Pure."""
    graph, placements = completed(placed.graph), placed.placements
    never = costs.never_made(graph, placements)
    lines = tuple(_line(graph, one, placements, never, compared) for one in placements)
    peak, where = costs.peak_bytes(graph, placements)
    made = [*graph.inputs, *(name for node in graph.nodes for name in node.outputs if name and name not in never)]
    by_provider: Counter[str] = Counter()
    for line in lines:
        by_provider[line.provider] += line.macs or 0
    return Inspection(
        model=model,
        sku=sku,
        ort_version=ort_version,
        flavor=flavor,
        built=built,
        providers=tuple(providers),
        opset=graph.opset,
        level=placed.level,
        nodes=lines,
        islands=islands.islands(graph, placements, providers[0]),
        transposes=_transposes(graph, placements, tables, lines, compared),
        macs=sum(line.macs or 0 for line in lines),
        macs_by_provider=dict(by_provider),
        macs_unknown=sum(line.macs is None for line in lines),
        parameters=costs.all_parameters(graph),
        activation_bytes=sum(costs.bytes_made(graph, name) for name in made),
        unknown_tensors=sum(costs.unknown(graph, name) for name in made),
        peak_bytes=peak,
        peak_at=where,
        free=any(
            None in (graph.value(name).shape or ()) for node in graph.nodes for name in (*node.inputs, *node.outputs)
        ),
        verified=None if compared is None else _verified(compared, refused, len(lines)),
    )


def _line(
    graph: Graph, one: Placement, placements: Sequence[Placement], never: set[str], compared: Comparison | None
) -> Line:
    node = one.node
    row = compared.rows.get(node.index) if compared else None
    head = next((other.node.name for other in placements if other.node.index == one.fused_into), None)
    return Line(
        name=node.name,
        op=node.op,
        domain=node.domain,
        since_version=node.since,
        inputs=tuple(shown(graph, name) for name in node.inputs),
        outputs=tuple(shown(graph, name) for name in node.outputs),
        macs=costs.macs(graph, node),
        parameters=costs.parameters(graph, node),
        activation_bytes=sum(costs.bytes_made(graph, name) for name in node.outputs if name and name not in never),
        provider=one.provider,
        fused_into=head,
        reasons=dict(one.reasons),
        trouble=one.trouble,
        hazard=one.hazard,
        us=row.us if row and one.fused_into is None else None,
    )


def shown(graph: Graph, name: str) -> str:
    """``float[1,3,48,192]``."""
    if not name:
        return ""
    value = graph.value(name)
    kind = NAMES.get(value.element, "?")
    sizes = ["?"] if value.shape is None else ["?" if size is None else str(size) for size in value.shape]
    return f"{kind}[{','.join(sizes)}]"


def _transposes(
    graph: Graph,
    placements: Sequence[Placement],
    tables: Mapping[str, ProviderTable],
    lines: Sequence[Line],
    compared: Comparison | None,
) -> tuple[Transposes, ...]:
    forced = [
        one
        for table in tables.values()
        if table.layout == "NHWC"
        for one in islands.forced_transposes(graph, placements, table)
    ]
    if compared is None:
        whole = sum(line.activation_bytes for line in lines) + sum(one.bytes for one in forced)
        return tuple(
            Transposes(op=op, count=count, bytes=size, share=size / whole if whole else None)
            for op, (count, size) in islands.grouped(forced).items()
        )
    time = _time(compared)
    spent = _spent(forced, [row for row in compared.added if row.op == "Transpose"])
    return tuple(
        Transposes(op=op, count=count, bytes=size, share=spent.get(op, 0) / time if time else None)
        for op, (count, size) in islands.grouped(forced).items()
    )


def _spent(forced: Sequence[islands.ForcedTranspose], ran: list[Row]) -> Counter[str]:
    """Operator -> microseconds of its transposes: each expected one takes the next that ran and has as many bytes."""
    spent: Counter[str] = Counter()
    left = list(ran)
    for one in forced:
        row = next((row for row in left if row.bytes == one.bytes), None)
        if row is not None:
            left.remove(row)
            spent[one.op] += row.us
    return spent


def _time(compared: Comparison) -> int:
    rows = {id(row): row for row in (*compared.rows.values(), *compared.added)}
    return sum(row.us for row in rows.values())


def _verified(compared: Comparison, refused: str, nodes: int) -> Verified:
    added = [row for row in compared.added if row.op == "Transpose"]
    return Verified(
        agrees=not compared.disagreements,
        refused=refused,
        disagreements=tuple(asdict(one) for one in compared.disagreements),
        merged=0 if refused else nodes - len(compared.rows),
        transposes=len(added),
        transposes_us=sum(row.us for row in added),
        us=_time(compared),
    )
