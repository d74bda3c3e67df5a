"""Quantiles of recent durations in constant memory."""

from __future__ import annotations

import math
import time
from array import array
from typing import Callable, Sequence

LEAST = 1e-6
MOST = 1e3
"""Seconds. What is beyond counts as these."""
_GROWTH = 1.02
_STEP = math.log(_GROWTH)
_BINS = math.ceil(math.log(MOST / LEAST) / _STEP) + 1
RELATIVE_ERROR = (_GROWTH - 1) / 2


class Quantiles:
    """Of the last one to two windows of ``window`` seconds, within 1 % of the true value.

    Takes some 8 KB however many there are. Not for several threads at once.
    """

    def __init__(self, window: float = 300.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._window = window
        self._clock = clock
        self._since = clock()
        self._now, self._before = _empty(), _empty()

    def add(self, seconds: float) -> None:
        """One more."""
        self._turn()
        self._now[round(math.log(min(max(seconds, LEAST), MOST) / LEAST) / _STEP)] += 1

    def of(self, shares: Sequence[float]) -> list[float | None]:
        """The quantiles (0.5 is the median), in seconds; None while there is nothing to tell."""
        self._turn()
        counts = [new + old for new, old in zip(self._now, self._before)]
        total = sum(counts)
        return [_at(counts, math.ceil(share * total)) if total else None for share in shares]

    def _turn(self) -> None:
        windows = (self._clock() - self._since) // self._window
        if windows < 1:
            return
        self._before = self._now if windows < 2 else _empty()
        self._now = _empty()
        self._since += windows * self._window


def _empty() -> array[int]:
    return array("L", bytes(array("L").itemsize * _BINS))


def _at(counts: Sequence[int], rank: int) -> float:
    seen = 0
    for index, count in enumerate(counts):
        seen += count
        if seen >= max(rank, 1):
            return LEAST * math.exp(index * _STEP)
    raise AssertionError("a rank beyond all")
