"""``inv model.check``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from invoke.tasks import task

from armlet import cli
from armlet.cli import edge

if TYPE_CHECKING:
    from armlet.onnx.fleet import Verdict


@task(
    name="check",
    positional=["payload"],
    iterable=["sku", "against"],
    auto_shortflags=False,
    help={
        "payload": "a payload's folder, archive or payload.json, or a model that is not packed yet (.ort, .onnx)",
        "sku": "a SKU that is built; may be given several times",
        "against": "runtime.json files, or patterns of them; those of dist, unless this or --sku is given",
        "json": "print the result as JSON",
    },
)
@edge
def check(_context: Any, payload: str, sku: Any = None, against: Any = None, json: bool = False) -> None:
    """Says whether a payload fits runtimes, and what would mend it where it does not."""
    from armlet.onnx import fleet

    verdicts = fleet.judge(cli.here(), Path(payload), skus=sku or (), against=against or ())
    cli.show_json([one.to_json() for one in verdicts]) if json else cli.show(told(verdicts))
    fleet.demand(verdicts)


def told(verdicts: Sequence[Verdict]) -> str:
    """One runtime with every problem and its remedy, or several with the first of each."""
    from armlet.sinks.tables import table

    if len(verdicts) > 1:
        return table(("SKU", "", "first problem"), map(_row, verdicts))
    (only,) = verdicts
    if not only.problems:
        return f"{only.sku}: fits"
    rows = [(one.severity, one.kind, one.what) for one in only.problems]
    hints = [("", "", f" hint: {one.remedy}") for one in only.problems]
    lines = [line for pair in zip(rows, hints, strict=True) for line in pair]
    return table((only.sku, "", "fits" if only.fits else _count(only)), lines)


def _row(verdict: Verdict) -> tuple[str, str, str]:
    first = min(verdict.problems, key=lambda one: one.severity, default=None)
    shown = "" if first is None else first.what
    return verdict.sku, "fits" if verdict.fits else _count(verdict), shown


def _count(verdict: Verdict) -> str:
    count = sum(one.severity == "problem" for one in verdict.problems)
    return f"{count} problem{'s' if count > 1 else ''}"
