"""Histograms of what inputs looked like."""

from __future__ import annotations

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armlet.onnx.samples import Sample
from armlet.payload.drift import LEAST_SAMPLES, drift_reference
from armlet.spec.payload import Histogram


def samples(*arrays: numpy.ndarray, name: str = "x") -> list[Sample]:
    return [Sample(name=str(index), inputs={name: array}) for index, array in enumerate(arrays)]


def histogram(of: str, *arrays: numpy.ndarray) -> Histogram:
    found = drift_reference(samples(*arrays))
    assert found is not None
    return next(one for one in found if one.of == of)


def test_ten_bins_with_a_tenth_each() -> None:
    got = histogram("values", *(numpy.arange(start, 100, 20, dtype=numpy.float32) for start in range(20)))
    assert got.edges == tuple(float(9 + 10 * number) for number in range(9))
    # A value on an edge is in the bin above it.
    assert got.shares == (0.09, *[0.1] * 8, 0.11)


def test_of_each_sample_its_mean_and_deviation() -> None:
    arrays = [numpy.array([index - 1, index + 1], numpy.float32) for index in range(20)]
    assert histogram("mean", *arrays).edges == (1, 3, 5, 7, 9, 11, 13, 15, 17)
    assert histogram("std", *arrays).edges == (1,)
    assert histogram("std", *arrays).shares == (0, 1)


def test_integers_are_counted_and_truth_values_and_text_are_not() -> None:
    bytes_ = [numpy.full((2, 2), index, numpy.uint8) for index in range(20)]
    assert len(drift_reference(samples(*bytes_)) or ()) == 3
    assert drift_reference(samples(*(array > 3 for array in bytes_))) is None
    assert drift_reference(samples(*(numpy.array(["a"]) for _ in range(20)))) is None


def test_too_few_samples_say_nothing() -> None:
    few = [numpy.ones(3, numpy.float32)] * (LEAST_SAMPLES - 1)
    assert drift_reference(samples(*few)) is None
    assert drift_reference(samples(*few, few[0])) is not None


def test_inputs_are_in_the_order_of_their_names() -> None:
    array = numpy.ones(3, numpy.float32)
    found = drift_reference([Sample(name="s", inputs={"b": array, "a": array})] * 20)
    assert found is not None
    assert [one.input for one in found] == ["a"] * 3 + ["b"] * 3


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-(2.0**99), 2.0**99, width=32), min_size=20, max_size=60))
def test_edges_rise_and_shares_add_up(numbers: list[float]) -> None:
    for one in drift_reference(samples(*(numpy.array([number], numpy.float32) for number in numbers))) or ():
        assert len(one.shares) == len(one.edges) + 1
        assert sum(one.shares) == pytest.approx(1, abs=1e-8)
        assert all(left < right for left, right in zip(one.edges, one.edges[1:], strict=False))
        assert all(number == float(f"{number:.9g}") for number in (*one.edges, *one.shares))
