"""What the store remembers: which payloads serve, which is tried, which are bad. Pure: nothing here touches a disk."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, Mapping

from armlet_runtime.update.interface import Category, Desired

Phase = Literal["trial", "probation"]
MOST_BAD = 32
"""Bad payloads that are remembered by name, for each model."""
LONGEST_REASON = 300
"""Characters."""


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

    @property
    def refs(self) -> tuple[Ref, ...]:
        """The payloads that have to stay."""
        tried = self.candidate.ref if self.candidate else None
        return tuple(ref for ref in (self.committed, self.previous, tried) if ref)

    def refusal(self, desired: Desired) -> tuple[Category, str]:
        """Why a wish is not to be followed: ("known_bad" or "stale", in words), or ("", "").

        What is committed or tried already is no refusal.
        """
        return self.refusal_of(Ref(desired.payload, desired.version, desired.generation))

    def refusal_of(self, ref: Ref) -> tuple[Category, str]:
        """As :meth:`refusal`, of a payload."""
        for one in self.bad:
            if one.id == ref.id:
                return "known_bad", f"it failed before ({one.category}): {one.reason}"
        tried = self.candidate.ref.id if self.candidate else ""
        if ref.id in (tried, self.committed.id if self.committed else ""):
            return "", ""
        if ref.generation <= self.floor:
            what = f"its generation is {ref.generation}, and {self.floor} was here already: it takes a higher one"
            return "stale", what
        return "", ""

    # What an update does. Each raises ValueError where there is nothing to do it to.

    def tried(self, ref: Ref) -> ModelState:
        """``ref`` is the candidate and on trial; the attempts go on where it was the candidate before."""
        if self.committed and self.committed.id == ref.id:
            raise ValueError(f"{ref.id} is committed already")
        before = self.candidate.attempts if self.candidate and self.candidate.ref.id == ref.id else 0
        return replace(self, candidate=Tried(ref, "trial", before + 1))

    def on_probation(self) -> ModelState:
        return replace(self, candidate=replace(self._tried, phase="probation"))

    def spared(self) -> ModelState:
        """The trial that was cut short does not count."""
        if self.candidate is None:
            return self
        return replace(self, candidate=replace(self.candidate, attempts=max(0, self.candidate.attempts - 1)))

    def with_committed(self) -> ModelState:
        """The candidate is committed."""
        ref = self._tried.ref
        floor = max(self.floor, ref.generation)
        return replace(self, committed=ref, previous=self.committed, candidate=None, floor=floor)

    def rejected(self, category: Category, reason: str) -> ModelState:
        """The candidate is bad."""
        return replace(self._without(self._tried.ref, category, reason), candidate=None)

    def withdrawn(self) -> ModelState:
        """There is no candidate."""
        return replace(self, candidate=None)

    def reverted(self, category: Category, reason: str) -> ModelState:
        """What is committed is bad, and what was before it is committed again."""
        if self.committed is None:
            raise ValueError("nothing is committed")
        return replace(self._without(self.committed, category, reason), committed=self.previous, previous=None)

    @property
    def _tried(self) -> Tried:
        if self.candidate is None:
            raise ValueError("there is no candidate")
        return self.candidate

    def _without(self, ref: Ref, category: Category, reason: str) -> ModelState:
        bad = (*(one for one in self.bad if one.id != ref.id), bad_of(ref, category, reason))
        return replace(self, bad=bad[-MOST_BAD:], floor=max(self.floor, ref.generation))


def bad_of(ref: Ref, category: Category, reason: str) -> Bad:
    """With as much of the reason as is kept; what no JSON takes is left out of it."""
    told = reason.encode("utf-8", "replace").decode("utf-8")
    return Bad(ref.id, ref.generation, category, told[:LONGEST_REASON])


@dataclass(frozen=True)
class State:
    """Everything; ``sequence`` grows with each write."""

    sequence: int = 0
    starts: int = 0
    """Starts of the service since it last ran steadily."""
    models: Mapping[str, ModelState] = field(default_factory=dict)

    @property
    def ids(self) -> frozenset[str]:
        """Of all payloads that have to stay."""
        return frozenset(ref.id for model in self.models.values() for ref in model.refs)

    def of(self, model: str) -> ModelState:
        return self.models.get(model) or ModelState()

    def with_model(self, model: str, state: ModelState) -> State:
        return replace(self, models={**self.models, model: state})

    def ended(self) -> State:
        """After an end that was asked for."""
        return replace(self, starts=0, models={name: model.spared() for name, model in self.models.items()})
