"""How far two makers' outputs are apart, and how far they may be."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from armlet.onnx.libraries import library

FLOATS = 1e-4
"""Largest difference from the reference of a model of floats, as :func:`apart` counts."""
INT8 = 0.05
"""The same of an int8 model, from what its QDQ nodes say. Kernels round each layer's result to one of 256 steps, and
may do so the other way where it lies in the middle. Of ``text-direction`` one step of a score moves the probability of
an undecided sample by 0.025, and there are two scores."""

_INT8 = frozenset(
    {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "ConvInteger", "MatMulInteger", "QGemm"}
)


def is_int8(operators: Iterable[str]) -> bool:
    """Whether a model of such operators computes in 8 bits, or keeps its weights in them."""
    return any(name in _INT8 or name.startswith("QLinear") for name in operators)


def apart(got: Any, wanted: Any) -> Any:
    """Element for element how far ``got`` is off, in double precision; both are NumPy arrays of one shape.

    Absolute where what is wanted is below 1, and relative above; infinite where one alone is no number, 1 where texts
    differ.
    """
    numpy = library("numpy")
    if got.dtype.kind in "OUS" or wanted.dtype.kind in "OUS":
        return numpy.asarray(wanted.astype(str) != got.astype(str), numpy.float64)
    left, right = got.astype(numpy.float64), wanted.astype(numpy.float64)
    with numpy.errstate(invalid="ignore"):  # Equal infinities are equal, although their difference is none.
        off = abs(left - right) / numpy.maximum(1, abs(right))
    same = (got == wanted) | (numpy.isnan(left) & numpy.isnan(right))
    return numpy.where(same, 0.0, numpy.where(numpy.isnan(off), numpy.inf, off))
