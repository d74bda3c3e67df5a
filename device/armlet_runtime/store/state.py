"""What the store remembers: which payloads serve, which is tried, which are bad. Pure: nothing here touches a disk."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Mapping

from armlet_runtime.update.interface import Category, Desired

Phase = Literal["trial", "probation"]


@dataclass(frozen=True)
class Ref:
    """A payload in the store."""

    id: str
    """sha256 of payload.json, in hex."""
    version: str
    generation: int


@dataclass(frozen=True)
class Tried:
    """The payload that is to take over from the committed one."""

    ref: Ref
    phase: Phase
    attempts: int
    """Trials begun, this one included."""


@dataclass(frozen=True)
class Bad:
    """A payload that failed; it is not tried again."""

    id: str
    generation: int
    category: Category
    reason: str


@dataclass(frozen=True)
class ModelState:
    """Of one model; a model that the store knows nothing of has all of these empty."""

    committed: Ref | None = None
    """None: the factory payload."""
    previous: Ref | None = None
    """What was committed before."""
    candidate: Tried | None = None
    bad: tuple[Bad, ...] = ()
    """Oldest first, bounded: ``floor`` keeps off those that are no longer in it."""
    floor: int = 0
    """Highest generation that was ever committed or found bad; another payload has to be above it."""

    def refusal(self, desired: Desired) -> tuple[Category, str]:
        """Why a wish is not to be followed: ("known_bad" or "stale", in words), or ("", "").

        What is committed or tried already is no refusal.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class State:
    """Everything; ``sequence`` grows with each write."""

    sequence: int = 0
    starts: int = 0
    """Starts of the service since it last ran steadily."""
    models: Mapping[str, ModelState] = field(default_factory=dict)
