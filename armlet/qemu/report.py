"""The smoke's report: as text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from armlet.qemu.checks import Check
from armlet.qemu.trial import Answer, Trial

SCHEMA = 1
EMULATED = "under emulation, not a measurement of the device"
STALE = "was built from other recipes"
EMULATOR_MEMORY = "of the emulator with the program inside"


@dataclass(frozen=True, slots=True, kw_only=True)
class SmokeReport:
    """All that a smoke found. ``library_size`` in bytes; ``beside`` has those of libraries that travel with it."""

    sku: str
    current: bool | None = None
    """Whether what ran is what the recipes describe now; None where nobody asked."""
    cpu: str
    rootfs: str
    library: str
    library_size: int
    beside: Mapping[str, int]
    trials: tuple[Trial, ...]
    checks: tuple[Check, ...]

    @property
    def failed(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if not check.passed)

    def to_json(self) -> dict[str, Any]:
        """JSON-like, with a ``schema`` number; times in milliseconds, memory in KiB."""
        trials = [
            {**asdict(trial), "nodes_by_operator": {name: dict(row) for name, row in trial.counts().items()}}
            for trial in self.trials
        ]
        return {
            "schema": SCHEMA,
            **asdict(self),
            "trials": trials,
            "passed": not self.failed,
            "latency_is": EMULATED,
            "emulator_peak_rss_is": EMULATOR_MEMORY,
        }

    def render(self) -> str:
        """The report as plain text, tables and all."""
        head = [
            f"Smoke of {self.sku} as {self.cpu} (QEMU user mode, {self.rootfs})",
            *([f"  dist/{self.sku} {STALE}"] if self.current is False else []),
            *(
                f"  library  {name}, {size / 2**20:.2f} MiB"
                for name, size in ((self.library, self.library_size), *self.beside.items())
            ),
        ]
        blocks = [
            "\n".join(head),
            *(_render_trial(trial) for trial in self.trials),
            _render_checks(self.checks),
            _verdict(len(self.failed), len(self.checks)),
        ]
        return "\n\n".join(blocks) + "\n"


def _render_trial(trial: Trial) -> str:
    how = "through the wheel" if trial.wheel else f"{'with' if trial.with_numpy else 'without'} NumPy"
    lines = [f"{trial.model} ({trial.conversion}; {how})"]
    if trial.refused:
        return "\n".join([*lines, f"  refused: {trial.refused}"])
    lines += _samples(trial.answers)
    providers = sorted({node.provider for node in trial.nodes})
    counts = [
        (name, *(str(row[provider]) if row[provider] else "" for provider in providers))
        for name, row in trial.counts().items()
    ]
    totals = Counter(node.provider for node in trial.nodes)
    lines += ["", *_table(("nodes", *providers), [*counts, ("all", *(str(totals[name]) for name in providers))])]
    lines.append("")
    if trial.latency_ms is not None:
        taken = trial.latency_ms
        lines.append(f"  latency p50 {taken.p50:.1f} ms, p95 {taken.p95:.1f} ms, {taken.runs} runs ({EMULATED})")
    if trial.emulator_peak_rss_kib is not None:
        lines.append(f"  peak RSS {trial.emulator_peak_rss_kib / 1024:.1f} MiB ({EMULATOR_MEMORY})")
    return "\n".join(lines)


def _samples(answers: Sequence[Answer]) -> list[str]:
    # Only a classifier's largest output is a class, and its value a score.
    if all(answer.expected is None for answer in answers):
        return _table(("sample", "off x86 by"), [(answer.sample, f"{answer.difference:.1e}") for answer in answers])
    rows = [
        (
            answer.sample,
            "" if answer.expected is None else str(answer.expected),
            str(answer.chosen),
            f"{answer.score:.4f}",
            f"{answer.difference:.1e}",
        )
        for answer in answers
    ]
    return _table(("sample", "expected", "found", "score", "off x86 by"), rows)


def _verdict(failed: int, count: int) -> str:
    return f"{failed} of {count} checks failed" if failed else f"all {count} checks passed"


def _render_checks(checks: Sequence[Check]) -> str:
    lines = [f"  {'pass' if check.passed else 'FAIL'}  {check.name}: {check.found}" for check in checks]
    return "\n".join(["Checks", *lines])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    return [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (head, *rows)
    ]
