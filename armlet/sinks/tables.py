"""Results as text: what a finished command prints on stdout."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from armlet.digest import of_file
from armlet.errors import printable
from armlet.sinks.bars import amount, duration

if TYPE_CHECKING:
    # Commands that need a small part of this stay quick to start.
    from armlet.gates import GateResult
    from armlet.lacks import Finding
    from armlet.pipeline import BuildReport


_WIDEST = 72


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Left-aligned columns, two spaces apart; no trailing spaces. A very long cell pushes its own line apart alone."""
    lines = [tuple(map(printable, row)) for row in (head, *rows)]
    widths = [min(max(map(len, column)), _WIDEST) for column in zip(*lines, strict=True)]
    lines.insert(1, tuple("-" * width for width in widths))
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def summary(report: BuildReport) -> str:
    """The table that ends a build: artefacts, then the gates."""
    time = duration(sum(step.seconds for step in report.steps))
    how = "cached" if all(step.cached for step in report.steps) else "built"
    artefacts = table(
        ("SKU", "artefact", "size", "sha256", "time", ""),
        (
            (report.sku, path.name, amount(path.stat().st_size, "bytes"), of_file(path), time, how)
            for path in report.artefacts
        ),
    )
    return f"{artefacts}\n\n{gates_table(report.gates)}"


def gates_table(gates: Sequence[GateResult]) -> str:
    """Each gate with what it measured, and its problems below."""
    rows: list[tuple[str, str, str]] = []
    for gate in gates:
        rows.append(
            (
                gate.name if gate.of == "runtime" else f"{gate.name} ({gate.of})",
                "failed" if gate.problems else "ok",
                gate.measured,
            )
        )
        for problem in gate.problems:
            rows += [("", "", problem.what), ("", "", f" hint: {problem.hint}")]
    return table(("gate", "", "measured"), rows)


def findings_table(findings: Iterable[Finding]) -> str:
    """What ``doctor`` found: each check, and what is wrong where something is."""
    return table(
        ("check", "", "why it is needed"),
        (
            (finding.check.name, "ok", finding.check.why)
            if finding.lack is None
            else (
                finding.check.name,
                "LACKING" if finding.blocks else "short",
                f"{finding.check.why}: {finding.lack.detail}",
            )
            for finding in findings
        ),
    )
