"""How far outputs are apart."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from armlet.onnx.tolerances import apart, is_int8

NAN, INFINITE = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("got", "wanted", "off"),
    [
        (0.25, 0.5, 0.25),
        (110.0, 100.0, 0.1),
        (NAN, NAN, 0.0),
        (1.0, NAN, INFINITE),
        (NAN, 1.0, INFINITE),
        (INFINITE, INFINITE, 0.0),
        (1.0, INFINITE, INFINITE),
        (INFINITE, 1.0, INFINITE),
        (-INFINITE, INFINITE, INFINITE),
    ],
)
def test_differences_of_numbers(got: float, wanted: float, off: float) -> None:
    assert apart(numpy.asarray([got]), numpy.asarray([wanted])) == pytest.approx(off)


def test_whole_numbers_that_are_equal_are_no_difference() -> None:
    number = numpy.asarray([2**53 + 1])
    assert not apart(number, number).any()


@pytest.mark.parametrize("kind", [object, "U"])
def test_differences_of_texts(kind: Any) -> None:
    assert apart(numpy.asarray(["a", "b"], kind), numpy.asarray(["a", "c"], kind)).tolist() == [0, 1]


def test_models_in_8_bits_are_known_by_their_operators() -> None:
    assert is_int8(["Conv", "QLinearAdd"])
    assert is_int8(["DequantizeLinear"])
    assert not is_int8(["Conv", "Sequence"])
