"""The plan: which steps run, in which order, and what each one's output is called. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from armlet import digest
from armlet.config import Resolved


class Declared(Protocol):
    """What the plan asks of a step."""

    @property
    def name(self) -> str: ...
    @property
    def needs(self) -> tuple[str, ...]: ...
    @property
    def facts(self) -> Callable[[Resolved], Mapping[str, Any]]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One step with the hash of everything that can change its output."""

    name: str
    id: str
    needs: tuple[str, ...]


def make(resolved: Resolved, steps: Sequence[Declared]) -> tuple[Planned, ...]:
    """Computes every step's id from its facts and the ids of what it needs.

    The id of a step changes exactly when its own facts or those of a step below it do. ``steps`` come in an order in
    which each follows what it needs; the last one's id is the id of the whole build.
    """
    planned: dict[str, Planned] = {}
    for step in steps:
        inputs = {name: planned[name].id for name in step.needs}
        identity = {"step": step.name, "facts": step.facts(resolved), "inputs": inputs}
        planned[step.name] = Planned(name=step.name, id=digest.of_value(identity), needs=step.needs)
    return tuple(planned.values())
