"""Whether a payload that has taken over may stay. Pure: what was seen goes in, a verdict comes out."""

from __future__ import annotations

from typing import Literal, Mapping, NamedTuple

from armlet_runtime.serve.tally import Seen
from armlet_runtime.update.interface import Category
from armlet_runtime.update.settings import Updates

_EXCUSED = 1.5
"""Times the old payload's share of errors that the new one may have: two samples of one share differ."""
_HALF = 0.5
_NOISE_SECONDS = 0.001
"""Slower by less than this is nobody's loss, whatever the ratio."""
_SHARE_LOST = 0.05
"""Of the nodes, that a provider may have lost since the trial."""


class Verdict(NamedTuple):
    """``category`` and ``reason`` are empty unless it is bad."""

    kind: Literal["wait", "good", "bad"]
    category: Category = ""
    reason: str = ""


_WAIT, _GOOD = Verdict("wait"), Verdict("good")


def judge(
    rules: Updates,
    elapsed: float,
    new: Seen,
    old: Seen,
    *,
    budget_ms: float | None,
    share_then: Mapping[str, float],
    share_now: Mapping[str, float],
) -> Verdict:
    """What is to become of it.

    Errors, crashes and lost shares end the probation at once. Speed is judged at its end: the first answers of a
    process are slow. Where no request comes, time alone decides.

    Args:
        elapsed: seconds since it took over.
        old: of the payload before, when it was relieved.
        budget_ms: ``p95_ms`` of payload.json: it is the maker's word, and the old payload's speed then does not matter.
        share_then: provider -> share of the nodes in the trial; ``share_now``: in the worker that serves now.
    """
    found = _bad(rules, new, old) or _lost(share_then, share_now)
    if found is not None:
        return found
    if elapsed < rules.probation_seconds:
        return _WAIT
    if new.requests >= rules.probation_requests:
        return _slow(rules, new, old, budget_ms) or _GOOD
    if new.errors > new.requests * _HALF:
        return Verdict("bad", "probation", f"{new.errors} of {new.requests} requests failed")
    return _GOOD


def _bad(rules: Updates, new: Seen, old: Seen) -> Verdict | None:
    if new.crashes > rules.max_crashes:
        return Verdict("bad", "crashes", f"its worker failed {new.crashes} times in probation")
    if new.requests < rules.probation_requests:
        return None
    rate, before = new.errors / new.requests, _rate(rules, old)
    if rate > max(rules.max_error_rate, before * _EXCUSED):
        told = f"{rate:.1%} of {new.requests} requests failed, and {before:.1%} did before"
        return Verdict("bad", "probation", told)
    return None


def _slow(rules: Updates, new: Seen, old: Seen, budget_ms: float | None) -> Verdict | None:
    if new.p95 is None:
        return None
    told = f"the 95th percentile of its answers took {new.p95 * 1e3:.3g} ms"
    if budget_ms is not None:
        if new.p95 * 1e3 <= budget_ms:
            return None
        return Verdict("bad", "budget", f"{told}, and its budget is {budget_ms:g} ms")
    before = old.p95
    if before is None or not rules.max_slowdown or old.requests < rules.probation_requests:
        return None
    if new.p95 <= max(before * rules.max_slowdown, before + _NOISE_SECONDS):
        return None
    return Verdict("bad", "probation", f"{told}, and {before * 1e3:.3g} ms before")


def _lost(then: Mapping[str, float], now: Mapping[str, float]) -> Verdict | None:
    for name, share in then.items():
        # Without a profile there are no shares to compare.
        if now and now.get(name, 0.0) < share - _SHARE_LOST and name != "CPUExecutionProvider":
            told = f"{name} runs {now.get(name, 0.0):.0%} of the nodes, and ran {share:.0%} in the trial"
            return Verdict("bad", "probation", told)
    return None


def _rate(rules: Updates, seen: Seen) -> float:
    return seen.errors / seen.requests if seen.requests >= rules.probation_requests else 0.0
