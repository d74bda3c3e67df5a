from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from armlet import plan
from armlet.config import Resolved

RESOLVED = cast(Resolved, object())


@dataclass(frozen=True)
class FakeStep:
    name: str
    needs: tuple[str, ...]
    facts: Callable[[Resolved], Mapping[str, Any]]


def steps(*, low: object = 1, side: object = 1, high: object = 1) -> tuple[FakeStep, ...]:
    return (
        FakeStep("low", (), lambda _: {"value": low}),
        FakeStep("side", (), lambda _: {"value": side}),
        FakeStep("high", ("low",), lambda _: {"value": high}),
    )


def ids(made: tuple[plan.Planned, ...]) -> dict[str, str]:
    return {step.name: step.id for step in made}


def test_the_same_facts_give_the_same_ids() -> None:
    assert plan.make(RESOLVED, steps()) == plan.make(RESOLVED, steps())


def test_a_change_below_changes_the_id_above_and_nothing_beside() -> None:
    before, after = ids(plan.make(RESOLVED, steps())), ids(plan.make(RESOLVED, steps(low=2)))
    assert before["low"] != after["low"]
    assert before["high"] != after["high"]
    assert before["side"] == after["side"]


def test_a_change_above_leaves_what_is_below() -> None:
    before, after = ids(plan.make(RESOLVED, steps())), ids(plan.make(RESOLVED, steps(high=2)))
    assert before["low"] == after["low"]
    assert before["high"] != after["high"]


def test_two_steps_with_equal_facts_have_their_own_ids() -> None:
    made = ids(plan.make(RESOLVED, steps()))
    assert made["low"] != made["side"]
