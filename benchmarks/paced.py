"""One client that asks at a steady pace, first alone and then while something goes on."""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable

from armlet.sinks.tables import table
from tests.served import host_library

MOST = 1.2
"""The 95th percentile meanwhile, against the one before."""
_PACE_SECONDS = 0.01


def parsed(description: str | None) -> float:
    """The command's ``--seconds``; the host's library is what services will load."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0] if description else None)
    parser.add_argument("--seconds", type=float, default=20.0)
    chosen = parser.parse_args()
    os.environ.setdefault("ARMLET_ORT_LIBRARY", str(host_library()))
    return float(chosen.seconds)


def measure(ask: Callable[[], object], seconds: float) -> list[float]:
    """Seconds that each answer took."""
    taken = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        ask()
        taken.append(time.monotonic() - began)
        time.sleep(_PACE_SECONDS)
    return taken


def compared(idle: list[float], meanwhile: list[float], what: str) -> float:
    """Prints both; returns how many times the 95th percentile of before it is."""
    rows = [
        [name, str(len(taken)), *(f"{_quantile(taken, share) * 1e3:.2f}" for share in (0.5, 0.95, 0.99))]
        for name, taken in (("idle", idle), (what, meanwhile))
    ]
    print(table(["", "requests", "p50 ms", "p95 ms", "p99 ms"], rows))
    ratio = _quantile(meanwhile, 0.95) / _quantile(idle, 0.95)
    print(f"p95: {ratio:.2f} x idle, {MOST} at most")
    return ratio


def _quantile(taken: list[float], share: float) -> float:
    return statistics.quantiles(taken, n=100)[int(share * 100) - 1]
