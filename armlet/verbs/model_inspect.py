"""``inv model.inspect``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from invoke.tasks import task

from armlet import cli
from armlet.cli import edge
from armlet.verbs import shapes

if TYPE_CHECKING:
    from armlet.onnx.inspecting import Inspection, Line

_MOST_ISLANDS = 5
_UNBUILT = (
    "predicted from the recipe, every kernel of cpu taken to be there: {sku} is not built, and which it has only a "
    "build tells: ./inv build --sku {sku}"
)


@task(
    name="inspect",
    positional=["model"],
    iterable=["shape"],
    auto_shortflags=False,
    help={
        "model": "an ONNX model, or one in ORT format for a minimal SKU",
        "sku": "a SKU; of one that is not built, what its recipe tells",
        "verify": "run it on the SKU's runtime in QEMU, and compare node for node",
        "shape": "an input's shape, fixed for good: x=1,3,48,192; once for each input",
        "all": "show every node",
        "json": "print the result as JSON",
    },
)
@edge
def inspect(
    _context: Any,
    model: str,
    sku: str = "",
    verify: bool = False,
    shape: Any = None,
    all: bool = False,
    json: bool = False,
) -> None:
    """Shows what each node of a model costs, and which of the SKU's providers runs it."""
    from armlet.qemu import inspected

    shapes.demand(sku, "--sku", "name a SKU; ./inv sku.list names them")
    with cli.run(f"inspect-{sku}") as (paths, emit):
        found = inspected.inspect(paths, Path(model), sku, shapes=shapes.parsed(shape or ()), verify=verify, emit=emit)
    cli.show_json(found.to_json()) if json else cli.show(told(found, whole=all))
    inspected.demand(found)


def told(found: Inspection, *, whole: bool) -> str:
    """The report as text: with ``whole`` every node, else those that the preferred provider left."""
    parts = [_head(found), _nodes(found, whole=whole), _changes(found), _totals(found), _verified(found)]
    return "\n\n".join(part for part in parts if part)


def _head(found: Inspection) -> str:
    counts = Counter(line.provider for line in found.nodes)
    shares = ", ".join(f"{counts[name]} on {name}" for name in (*found.providers, "none") if counts[name])
    return (
        f"{found.model} on {found.sku} (ONNX Runtime {found.ort_version}, {found.flavor}): opset {found.opset}, "
        f"{counted(len(found.nodes), 'node')}, {shares}"
    )


def _nodes(found: Inspection, *, whole: bool) -> str:
    from armlet.sinks.tables import table

    preferred = found.providers[0]
    if whole:
        head = ("node", "operator", "output", "MACs", "parameters", "bytes", "provider", "because")
        return table(head, (_row(line, preferred) for line in found.nodes))
    groups: Counter[tuple[str, str, str]] = Counter()
    for line in found.nodes:
        if line.provider != preferred or line.trouble or line.hazard:
            groups[(_operator(line), line.provider, _because(line, preferred))] += 1
    if not groups:
        return f"every node runs on {preferred}"
    rows = ((str(count), op, provider, because) for (op, provider, because), count in groups.items())
    return table(("nodes", "operator", "provider", "because"), rows)


def _row(line: Line, preferred: str) -> tuple[str, ...]:
    return (
        line.name,
        _operator(line),
        " ".join(line.outputs),
        "?" if line.macs is None else f"{line.macs:,}" if line.macs else "",
        f"{line.parameters:,}" if line.parameters else "",
        f"{line.activation_bytes:,}" if line.activation_bytes else "",
        line.provider,
        f"fused into {line.fused_into}" if line.fused_into else _because(line, preferred),
    )


def _operator(line: Line) -> str:
    return f"{line.domain + ':' if line.domain else ''}{line.op} {line.since_version}"


def _because(line: Line, preferred: str) -> str:
    return line.trouble or line.hazard or ("" if line.provider == preferred else line.reasons.get(preferred, ""))


def _changes(found: Inspection) -> str:
    from armlet.sinks.bars import amount

    largest = sorted(found.islands, key=lambda island: -island.macs)[:_MOST_ISLANDS]
    lines = []
    if largest:
        more = ", the largest:" if len(found.islands) > 1 else ":"
        lines.append(f"{counted(len(found.islands), 'island')} of nodes on {found.providers[0]}{more}")
    for island in largest:
        ends = island.nodes[0] if len(island.nodes) == 1 else f"{island.nodes[0]} to {island.nodes[-1]}"
        crossing = amount(island.crossing, "bytes")
        lines.append(f"  {ends}: {counted(len(island.nodes), 'node')}, {_mega(island.macs)}, {crossing} in and out")
    of = "of the bytes made" if found.verified is None or not found.verified.us else "of the time"
    for one in found.transposes:
        share = "" if one.share is None else f": {percent(one.share)} {of}"
        transposes = counted(one.count, "Transpose")
        lines.append(f"expected: {transposes} around {one.op}, {amount(one.bytes, 'bytes')}{share}")
    return "\n".join(lines)


def _totals(found: Inspection) -> str:
    from armlet.coverage import costs
    from armlet.sinks.bars import amount

    shares = ", ".join(
        f"{percent(count / found.macs)} on {provider}" for provider, count in found.macs_by_provider.items() if count
    )
    if found.macs_unknown:
        macs = f"at least {_mega(found.macs)}" if found.macs else "MACs unknown"
        macs += f": {counted(found.macs_unknown, 'node')} of them on shapes that are not known"
    else:
        macs = _mega(found.macs) + (f" ({shares})" if shares else "")
    when = "before the first node" if found.peak_at == costs.INPUTS else f"during {found.peak_at}"
    lines = [
        f"{macs}, {found.parameters:,} parameters",
        f"activations, inputs included: {amount(found.activation_bytes, 'bytes')} in all, at most about "
        f"{amount(found.peak_bytes, 'bytes')} at one time, {when}",
    ]
    if found.unknown_tensors:
        lines.append(f"not counted: {counted(found.unknown_tensors, 'tensor')} of a shape that is not known")
    if found.free:
        lines.append("some dimensions are free and count as 1: --shape fixes them where an input has them")
    return "\n".join(lines)


def _verified(found: Inspection) -> str:
    from armlet.sinks.tables import table

    run = found.verified
    if run is None:
        return "predicted; --verify runs it" if found.built else _UNBUILT.format(sku=found.sku)
    if run.disagreements:
        rows = ((one["node"], one["predicted"], one["found"]) for one in run.disagreements)
        return table(("node", "predicted", "on the target"), rows)
    if run.refused:
        return f"verified: the runtime does not run it, as predicted: {run.refused}"
    share = percent(run.transposes_us / run.us) if run.us else "none"
    whole = "the 1 node" if len(found.nodes) == 1 else f"all {len(found.nodes):,} nodes"
    merged = f" ({run.merged:,} of them merged with others on cpu)" if run.merged else ""
    added = "1 Transpose was" if run.transposes == 1 else f"{run.transposes:,} Transposes were"
    return f"verified: {whole} ran as predicted{merged}; {added} added, {share} of the time under emulation"


def counted(number: int, what: str) -> str:
    """``1 node``, ``2 nodes``."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def percent(share: float) -> str:
    """A part of a whole, never 0% where there is one nor 100% where something is left."""
    if 0 < share < 0.005:
        return "under 1%"
    return "over 99%" if 0.995 <= share < 1 else f"{share:.0%}"


def _mega(macs: int) -> str:
    return f"{macs / 1e6:.1f} M MACs" if macs >= 100_000 else f"{macs:,} MACs"
