"""Whether inputs still look like those that the model was made with: the population stability index (PSI).

With s the share of a bin in the reference and a that of now, PSI is the sum of (a - s) * ln(a / s).
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any, Mapping, Sequence

from armlet_runtime.ort import Tensor

from .interface import Tensors
from .looks import mean_and_std, some

BANDS = (0.1, 0.2)
"""Below the first nothing has changed that matters; from the second on the model sees what it was not made for."""
FLOOR = 1e-4
"""Least share of a bin: an empty one would make the index infinite."""
LEAST_REQUESTS = 30
PER_BIN = 20
"""Values per bin before the index is told: fewer make it large by chance."""
DIGITS = 9
"""Significant ones, that payloads have of each number: a value that lies on an edge must find it again."""
_SINGLE = ("float16", "bfloat16", "float32")
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
        self._singles = [tuple(map(_single, reference.edges)) for reference in wanted]
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
        seen: dict[tuple[str, str], Sequence[float]] = {}
        for reference, single, counts in zip(self._references, self._singles, self._now):
            tensor = inputs.get(reference.input)
            if tensor is None:
                continue
            key = reference.input, reference.of
            if key not in seen:
                seen.update(_numbers(reference, tensor))
            edges = single if tensor.dtype in _SINGLE and reference.of == "values" else reference.edges
            for value in seen.get(key, ()):
                if math.isfinite(value):
                    counts[bisect_right(edges, value)] += 1

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


def _numbers(reference: Reference, tensor: Tensor) -> dict[tuple[str, str], Sequence[float]]:
    """What a reference, and the one of its kin, compare."""
    name = reference.input
    if reference.of == "values":
        values = some(tensor)
        return {(name, "values"): [_rounded(value) for value in values] if tensor.dtype == "float64" else values}
    measured = mean_and_std(tensor)
    if measured is None:
        return {}
    return {(name, of): (_rounded(value),) for of, value in zip(("mean", "std"), measured)}


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _single(edge: float) -> float:
    """The single-precision number that was written down with so many digits."""
    try:
        return float(struct.unpack("=f", struct.pack("=f", edge))[0])
    except OverflowError:
        return edge
