"""What a payload that has taken over is judged by."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from armlet_runtime.serve.budget import FEWEST_RUNS, RUNS
from armlet_runtime.serve.budget import judge as judge_budget
from armlet_runtime.serve.golden import BudgetError
from armlet_runtime.serve.tally import Seen, Tallies
from armlet_runtime.update.probation import judge
from armlet_runtime.update.settings import Updates

RULES = Updates(probation_seconds=100, probation_requests=20, max_error_rate=0.02, max_slowdown=1.5, max_crashes=2)
CPU, NPU = "CPUExecutionProvider", "VSINPUExecutionProvider"


def verdict(elapsed: float, new: Seen, old: Seen = Seen(), **how: Any) -> tuple[str, str]:  # noqa: B008
    given = {"budget_ms": None, "share_then": {CPU: 1.0}, "share_now": {CPU: 1.0}, **how}
    found = judge(dataclasses.replace(RULES, **given.pop("rules", {})), elapsed, new, old, **given)
    assert bool(found.reason) == (found.kind == "bad")
    return found.kind, found.category


@pytest.mark.parametrize(
    ("elapsed", "new", "old", "how", "wanted"),
    [
        (99, Seen(1000, 0, 0, 0.01), Seen(), {}, ("wait", "")),
        (100, Seen(1000, 0, 0, 0.01), Seen(), {}, ("good", "")),
        # No request at all: time alone.
        (99, Seen(), Seen(), {}, ("wait", "")),
        (100, Seen(), Seen(1000, 0, 0, 0.01), {}, ("good", "")),
        # Too few to tell: only what mostly fails.
        (99, Seen(19, 19), Seen(), {}, ("wait", "")),
        (100, Seen(19, 9), Seen(), {}, ("good", "")),
        (100, Seen(19, 10), Seen(), {}, ("bad", "probation")),
        (100, Seen(1, 1), Seen(), {}, ("bad", "probation")),
        # Errors end it at once.
        (1, Seen(20, 1), Seen(), {}, ("bad", "probation")),
        (1, Seen(100, 2), Seen(), {}, ("wait", "")),
        (1, Seen(100, 15), Seen(100, 10), {}, ("wait", "")),
        (1, Seen(100, 16), Seen(100, 10), {}, ("bad", "probation")),
        (1, Seen(100, 16), Seen(19, 19), {}, ("bad", "probation")),
        (1, Seen(0, 0, 2), Seen(), {}, ("wait", "")),
        (1, Seen(0, 0, 3), Seen(), {}, ("bad", "crashes")),
        # Speed, at the end.
        (99, Seen(20, 0, 0, 9.0), Seen(20, 0, 0, 0.01), {}, ("wait", "")),
        (100, Seen(20, 0, 0, 0.0151), Seen(20, 0, 0, 0.01), {}, ("bad", "probation")),
        (100, Seen(20, 0, 0, 0.0149), Seen(20, 0, 0, 0.01), {}, ("good", "")),
        (100, Seen(20, 0, 0, 0.0009), Seen(20, 0, 0, 0.0001), {}, ("good", "")),
        (100, Seen(20, 0, 0, 9.0), Seen(19, 0, 0, 0.01), {}, ("good", "")),
        (100, Seen(20, 0, 0, 9.0), Seen(20, 0, 0, None), {}, ("good", "")),
        (100, Seen(19, 0, 0, 9.0), Seen(20, 0, 0, 0.01), {}, ("good", "")),
        (100, Seen(20, 0, 0, 9.0), Seen(20, 0, 0, 0.01), {"rules": {"max_slowdown": 0}}, ("good", "")),
        # The maker's word counts, and not the old one's speed.
        (100, Seen(20, 0, 0, 0.9), Seen(20, 0, 0, 0.01), {"budget_ms": 900.0}, ("good", "")),
        (100, Seen(20, 0, 0, 0.91), Seen(20, 0, 0, 9.0), {"budget_ms": 900.0}, ("bad", "budget")),
        # What ran on the NPU no longer does.
        (1, Seen(), Seen(), {"share_then": {NPU: 0.9, CPU: 0.1}, "share_now": {CPU: 1.0}}, ("bad", "probation")),
        (1, Seen(), Seen(), {"share_then": {NPU: 0.9, CPU: 0.1}, "share_now": {NPU: 0.86}}, ("wait", "")),
        (1, Seen(), Seen(), {"share_then": {NPU: 0.9, CPU: 0.1}, "share_now": {}}, ("wait", "")),
        (1, Seen(), Seen(), {"share_then": {CPU: 1.0}, "share_now": {NPU: 1.0}}, ("wait", "")),
    ],
)
def test_verdicts(elapsed: float, new: Seen, old: Seen, how: dict[str, Any], wanted: tuple[str, str]) -> None:
    assert verdict(elapsed, new, old, **how) == wanted


def test_tallies() -> None:
    tallies = Tallies(lambda: 0.0)
    tallies.ended("m", "a", "ok")
    assert tallies.of("m", "a") == Seen()
    tallies.begin("m", "a")
    for outcome in ("ok", "ok", "internal", "deadline", "bad_input", "overloaded", "cancelled", "unknown_model"):
        tallies.ended("m", "a", outcome)
    tallies.took("m", "a", 0.5)
    tallies.crashed("m", "a")
    seen = tallies.of("m", "a")
    assert (seen.requests, seen.errors, seen.crashes) == (5, 3, 1)
    assert seen.p95 == pytest.approx(0.5, rel=0.02)
    # The last few are remembered, and one that begins again begins anew.
    for payload in ("b", "c"):
        tallies.begin("m", payload)
    assert tallies.of("m", "a") == seen
    tallies.begin("m", "d")
    assert tallies.of("m", "a") == Seen()
    tallies.ended("m", "d", "ok")
    tallies.begin("m", "d")
    assert tallies.of("m", "d") == Seen()


def budget(seconds: list[float], size: int = 0, **most: float) -> str:
    now = [0.0]
    left = iter(seconds)

    def answer() -> None:
        now[0] += next(left)

    return judge_budget(most, answer, clock=lambda: now[0], resident=lambda: size << 20)


def test_budgets() -> None:
    assert budget([]) == ""
    fast = [0.001] * RUNS
    assert "40 answers took 1 ms" in budget(fast, p95_ms=1.01)
    # Two of forty are beyond the 95th percentile.
    assert budget([9.0] + [0.001] * RUNS, p95_ms=10_000)
    assert "1 ms" in budget([*fast[2:], 0.5, 0.5], p95_ms=2)
    with pytest.raises(BudgetError, match="500 ms, and its budget is 2 ms"):
        budget([*fast[3:], 0.5, 0.5, 0.5], p95_ms=2)
    with pytest.raises(BudgetError, match=f"of {FEWEST_RUNS} answers took 4e"):
        budget([4.0] * FEWEST_RUNS, p95_ms=100)
    assert budget([], 64, rss_mb=64)
    with pytest.raises(BudgetError, match="65 MiB of memory, and its budget is 64 MiB"):
        budget([], 65, rss_mb=64)
