"""Whether a model takes no more time and memory on this device than its maker allows."""

from __future__ import annotations

import math
import os
import time
from pathlib import Path
from typing import Callable, Mapping

from armlet_runtime.serve.golden import BudgetError

RUNS = 40
"""As many answers are timed, fewer where that takes longer than ``SECONDS``."""
FEWEST_RUNS = 5
SECONDS = 5.0
_PAGE = os.sysconf("SC_PAGE_SIZE")


def judge(
    budget: Mapping[str, float | None],
    answer: Callable[[], object],
    *,
    clock: Callable[[], float] = time.perf_counter,
    resident: Callable[[], int] | None = None,
) -> str:
    """What was measured, in words; empty where nothing was asked for.

    Args:
        budget: ``p95_ms`` and ``rss_mb`` (MiB of the whole process), each may be missing or None.
        answer: has the warm model compute one answer.
        resident: bytes of this process in memory.

    Raises:
        BudgetError: it is more than that.
    """
    told = []
    most_ms, most_mb = budget.get("p95_ms"), budget.get("rss_mb")
    if most_ms is not None:
        taken = _timed(answer, clock)
        p95 = sorted(taken)[math.ceil(0.95 * len(taken)) - 1] * 1e3
        told.append(f"the 95th percentile of {len(taken)} answers took {p95:.3g} ms")
        if p95 > most_ms:
            raise BudgetError(f"{told[-1]}, and its budget is {most_ms:g} ms")
    if most_mb is not None:
        size = (resident or _resident)() / (1 << 20)
        told.append(f"its worker takes {size:.0f} MiB of memory")
        if size > most_mb:
            raise BudgetError(f"{told[-1]}, and its budget is {most_mb:g} MiB")
    return ", ".join(told)


def _timed(answer: Callable[[], object], clock: Callable[[], float]) -> list[float]:
    taken: list[float] = []
    end = clock() + SECONDS
    while len(taken) < RUNS and (len(taken) < FEWEST_RUNS or clock() < end):
        began = clock()
        answer()
        taken.append(clock() - began)
    return taken


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE
