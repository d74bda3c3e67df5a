"""The population stability index, and what a payload may say of it."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from armlet_runtime.ort import Tensor
from armlet_runtime.serve.drift import WINDOW, Drift, Reference, band, psi, references

TENTHS = tuple(number / 10 for number in range(1, 10))
UNIFORM = {"input": "x", "of": "values", "edges": list(TENTHS), "shares": [0.1] * 10}


def test_the_index() -> None:
    assert psi([0.5, 0.5], [10, 10]) == 0.0
    assert psi([0.5, 0.5], [75, 25]) == pytest.approx(0.25 * math.log(1.5) - 0.25 * math.log(0.5))
    assert math.isfinite(psi([1.0, 0.0], [0, 5]))
    assert [band(index) for index in (0.0, 0.0999, 0.1, 0.1999, 0.2, 9.0)] == [0, 0, 1, 1, 2, 2]


def index_of(draw: Callable[[], float], of: str = "values", requests: int = 400) -> float | None:
    random.seed(7)
    drift = Drift(references([{**UNIFORM, "of": of}]))
    for _ in range(requests):
        drift.observe({"x": Tensor.from_list([draw() for _ in range(16)], "float32")})
    ((_, index),) = drift.indices()
    return index


@pytest.mark.parametrize(
    ("draw", "wanted"),
    [(random.random, 0), (lambda: random.random() ** 1.4, 1), (lambda: random.random() / 2, 2)],
    ids=["as it was", "brighter", "half as large"],
)
def test_the_bands(draw: Callable[[], float], wanted: int) -> None:
    index = index_of(draw)
    assert index is not None
    assert band(index) == wanted


def test_one_number_per_request() -> None:
    far = index_of(random.random, "mean")
    assert far is not None
    assert far > 1
    drift = Drift([Reference("x", "std", (1.0,), (0.5, 0.5))])
    for _ in range(40):
        drift.observe({"x": Tensor.from_list([1.0, -1.0], "float32")})
    # A value on an edge is in the bin above.
    ((_, index),) = drift.indices()
    assert index == pytest.approx(psi([0.5, 0.5], [0, 40]))


def test_too_little_tells_nothing() -> None:
    assert index_of(random.random, requests=5) is None


def test_what_was_long_ago_is_forgotten() -> None:
    drift = Drift(references([UNIFORM]))
    for value in (0.05, 0.95, 0.95):
        for _ in range(WINDOW):
            drift.observe({"x": Tensor.from_list([value], "float32")})
    ((_, index),) = drift.indices()
    assert index == pytest.approx(psi([0.1] * 10, [0] * 9 + [1]))


def test_an_input_that_does_not_come_and_numbers_that_are_none() -> None:
    drift = Drift(references([UNIFORM]))
    for _ in range(300):
        drift.observe(
            {"x": Tensor.from_list([float("nan"), float("inf")], "float32"), "y": Tensor(["a"], "string", (1,))}
        )
    assert drift.indices() == [(references([UNIFORM])[0], None)]


@pytest.mark.parametrize(
    "change",
    [
        {"edges": []},
        {"edges": [0.2, 0.1, *TENTHS[2:]]},
        {"edges": [0.1, 0.1, *TENTHS[2:]]},
        {"edges": None},
        {"shares": [0.2] * 10},
        {"shares": [1.1, -0.1, *[0.0] * 8]},
        {"shares": [float("nan")] * 10},
        {"of": "median"},
    ],
)
def test_references_that_make_no_sense(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="drift_reference"):
        references([{**UNIFORM, **change}])


def test_a_payload_without() -> None:
    assert references(None) == ()
    with pytest.raises(ValueError, match="drift_reference"):
        references([{}])
