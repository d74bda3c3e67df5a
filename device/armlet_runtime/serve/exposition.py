"""Prometheus' text format."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Iterable, Mapping, Sequence, Tuple

Labels = Tuple[Tuple[str, str], ...]


@dataclass(frozen=True)
class Family:
    """All samples of one name. ``kind``: counter, gauge or summary."""

    name: str
    kind: str
    help: str
    samples: Sequence[tuple[str, Labels, float]] = field(default_factory=tuple)
    """(what comes after the name, such as "_sum"; labels; value)."""


def gauge(name: str, help_: str, values: Mapping[Labels, float]) -> Family:
    """What goes up and down."""
    return Family(name, "gauge", help_, [("", labels, value) for labels, value in values.items()])


def counter(name: str, help_: str, values: Mapping[Labels, float]) -> Family:
    """What only grows; ``name`` ends in ``_total``."""
    return Family(name, "counter", help_, [("", labels, value) for labels, value in values.items()])


def text(families: Iterable[Family]) -> str:
    """A page for a scraper."""
    lines = []
    for family in families:
        lines.append(f"# HELP {family.name} {_escaped(family.help, quotes=False)}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        lines += [
            f"{sample_name(family.name + suffix, labels)} {_number(value)}" for suffix, labels, value in family.samples
        ]
    return "\n".join([*lines, ""])


def sample_name(name: str, labels: Labels) -> str:
    """``name{label="value"}``."""
    inner = ",".join(f'{label}="{_escaped(value, quotes=True)}"' for label, value in labels)
    return f"{name}{{{inner}}}" if inner else name


def _escaped(value: str, *, quotes: bool) -> str:
    value = value.encode("utf-8", "replace").decode("utf-8").replace("\\", "\\\\").replace("\n", "\\n")
    return value.replace('"', '\\"') if quotes else value


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 1 << 53 else repr(float(value))
