"""What became of requests, for each payload apart: the figures that an update is judged by."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import Callable, NamedTuple

from armlet_runtime.serve.quantiles import Quantiles

ERRORS = frozenset({"internal", "deadline", "not_ready", "bad_input", "too_large"})
"""Outcomes of requests that tell against a payload: a caller sees no difference between its fault and a model's that
takes other inputs than the one before."""
COUNTED = frozenset({"ok", *ERRORS})
"""Who goes away, or comes when the queue is full, says nothing of the payload."""
_KEPT = 3


class Seen(NamedTuple):
    """Of one payload."""

    requests: int = 0
    errors: int = 0
    crashes: int = 0
    p95: float | None = None
    """Seconds that its worker took for an answer, of the last 5 to 10 minutes; None: there was none."""


class _Tally:
    def __init__(self, clock: Callable[[], float]) -> None:
        self.requests = self.errors = self.crashes = 0
        self.seconds = Quantiles(clock=clock)


class Tallies:
    """For any thread. The last few payloads of each model are remembered."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._models: dict[str, OrderedDict[str, _Tally]] = {}

    def begin(self, model: str, payload: str) -> None:
        """It serves from now on: what was counted of it before is forgotten."""
        with self._lock:
            of_model = self._models.setdefault(model, OrderedDict())
            of_model.pop(payload, None)
            of_model[payload] = _Tally(self._clock)
            while len(of_model) > _KEPT:
                of_model.popitem(last=False)

    def ended(self, model: str, payload: str, outcome: str) -> None:
        """A request ended: "ok" or the kind of refusal."""
        with self._lock:
            tally = self._of(model, payload)
            if tally is not None and outcome in COUNTED:
                tally.requests += 1
                tally.errors += outcome in ERRORS

    def took(self, model: str, payload: str, seconds: float) -> None:
        """An answer was computed."""
        with self._lock:
            tally = self._of(model, payload)
            if tally is not None:
                tally.seconds.add(seconds)

    def crashed(self, model: str, payload: str) -> None:
        """Its worker ended by itself, or had to be ended."""
        with self._lock:
            tally = self._of(model, payload)
            if tally is not None:
                tally.crashes += 1

    def of(self, model: str, payload: str) -> Seen:
        """All zeros for a payload that has not served."""
        with self._lock:
            tally = self._of(model, payload)
            if tally is None:
                return Seen()
            return Seen(tally.requests, tally.errors, tally.crashes, tally.seconds.of([0.95])[0])

    def _of(self, model: str, payload: str) -> _Tally | None:
        of_model = self._models.get(model)
        return of_model.get(payload) if of_model is not None else None
