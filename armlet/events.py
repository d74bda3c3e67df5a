"""What a run tells its sinks. Steps emit these; they never print."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanReady:
    """The ordered steps of a run, before the first one starts."""

    sku: str
    steps: tuple[tuple[str, str], ...]
    """(step name, step id) in the order in which they run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStarted:
    step: str
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a long operation is; ``unit`` is ``"files"`` or ``"bytes"``."""

    label: str
    done: int
    total: int
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a tool's output."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDone:
    step: str
    id: str
    cached: bool
    seconds: float
    output: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something worth telling that changes nothing."""

    text: str


Event = PlanReady | StepStarted | Progress | Line | StepDone | Note


class Sink(Protocol):
    def __call__(self, event: Event, /) -> None: ...


def silent(event: Event, /) -> None:
    """The sink that drops everything."""
