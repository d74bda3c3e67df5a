"""Whether inputs still look like those that the model was made with: the population stability index (PSI).

With s the share of a bin in the reference and a that of now, PSI is the sum of (a - s) * ln(a / s).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any, Mapping, Sequence

from .interface import Tensors
from .looks import some

BANDS = (0.1, 0.2)
"""Below the first nothing has changed that matters; from the second on the model sees what it was not made for."""
FLOOR = 1e-4
"""Least share of a bin: an empty one would make the index infinite."""
LEAST_REQUESTS = 30
PER_BIN = 20
"""Values per bin before the index is told: fewer make it large by chance."""
WINDOW = 500
"""Requests; the index is of the last one to two windows."""


@dataclass(frozen=True)
class Reference:
    """A payload's histogram of one input; bin i holds ``edges[i - 1] <= value < edges[i]``."""

    input: str
    of: str
    """"values": each element; "mean" or "std": one number per request."""
    edges: tuple[float, ...]
    shares: tuple[float, ...]


def references(drift_reference: Sequence[Mapping[str, Any]] | None) -> tuple[Reference, ...]:
    """Of payload.json's field. Raises :class:`ValueError` for one that makes no sense."""
    found = []
    for item in drift_reference or ():
        try:
            edges, shares = tuple(map(float, item["edges"])), tuple(map(float, item["shares"]))
            reference = Reference(str(item["input"]), str(item["of"]), edges, shares)
        except (KeyError, TypeError) as error:
            raise ValueError(f"drift_reference: {error}") from None
        numbers = (*edges, *shares)
        if reference.of not in ("values", "mean", "std") or not all(map(math.isfinite, numbers)):
            raise ValueError(f'drift_reference of "{reference.input}" is of neither values, mean nor std')
        if len(shares) != len(edges) + 1 or list(edges) != sorted(set(edges)):
            raise ValueError(f'drift_reference of "{reference.input}": its edges do not rise, or do not fit its shares')
        if min(shares) < 0 or not math.isclose(sum(shares), 1.0, abs_tol=1e-3):
            raise ValueError(f'drift_reference of "{reference.input}": its shares do not add up to 1')
        found.append(reference)
    return tuple(found)


def psi(expected: Sequence[float], counts: Sequence[int]) -> float:
    """Of the reference's shares and what was counted (at least 1 in all)."""
    total = sum(counts)
    pairs = ((max(share, FLOOR), max(count / total, FLOOR)) for share, count in zip(expected, counts))
    return sum((actual - share) * math.log(actual / share) for share, actual in pairs)


def band(index: float) -> int:
    """0: as it was, 1: watch it, 2: drifted."""
    return sum(index >= limit for limit in BANDS)


class Drift:
    """Counts one model's inputs into its reference's bins. Not for several threads at once."""

    def __init__(self, wanted: Sequence[Reference]) -> None:
        self._references = tuple(wanted)
        self._before: list[list[int]] = []
        self._now = self._empty()
        self._requests = 0
        self._requests_before = 0

    def observe(self, inputs: Tensors) -> None:
        """One request."""
        if self._requests >= WINDOW:
            self._before, self._now = self._now, self._empty()
            self._requests_before, self._requests = self._requests, 0
        self._requests += 1
        seen = {name: [value for value in some(tensor) if math.isfinite(value)] for name, tensor in inputs.items()}
        for reference, counts in zip(self._references, self._now):
            for value in _looked_at(reference.of, seen.get(reference.input, ())):
                counts[bisect_right(reference.edges, value)] += 1

    def indices(self) -> list[tuple[Reference, float | None]]:
        """PSI of each reference; None while too little was seen."""
        before = self._before or self._empty()
        sums = [[new + old for new, old in zip(*pair)] for pair in zip(self._now, before)]
        enough = self._requests + self._requests_before >= LEAST_REQUESTS
        return [
            (reference, psi(reference.shares, counts) if enough and sum(counts) >= PER_BIN * len(counts) else None)
            for reference, counts in zip(self._references, sums)
        ]

    def _empty(self) -> list[list[int]]:
        return [[0] * len(reference.shares) for reference in self._references]


def _looked_at(of: str, values: Sequence[float]) -> Sequence[float]:
    if of == "values" or not values:
        return values
    mean = math.fsum(values) / len(values)
    if of == "mean":
        return (mean,)
    return (math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values)),)
