"""What inputs looked like when a model was made, so that a device can tell when they look otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from armlet.onnx.libraries import library
from armlet.onnx.samples import Sample
from armlet.spec.payload import Histogram

LEAST_SAMPLES = 20
"""With fewer, a histogram says more of the samples than of the inputs."""
_BINS = 10
_DIGITS = 9
"""Significant: what differs behind them is how a processor sums up."""
_COUNTED = "fiu"
"""NumPy's kinds of numbers; a truth value or text has no histogram."""


def drift_reference(samples: Sequence[Sample]) -> tuple[Histogram, ...] | None:
    """For each input of numbers three histograms, of its elements and of each sample's mean and deviation.

    Returns:
        None where there are too few samples, or no inputs of numbers.
    """
    if len(samples) < LEAST_SAMPLES:
        return None
    names = sorted(name for name, array in samples[0].inputs.items() if array.dtype.kind in _COUNTED and array.size)
    return tuple(one for name in names for one in _of([sample.inputs[name] for sample in samples], name)) or None


def _of(arrays: Sequence[Any], name: str) -> Iterator[Histogram]:
    numpy = library("numpy")
    yield _histogram(numpy.concatenate([array.ravel() for array in arrays]), name, "values")
    for of in ("mean", "std"):
        measured = [getattr(numpy, of)(array, dtype=numpy.float64) for array in arrays]
        yield _histogram(numpy.array([_rounded(one) for one in measured]), name, of)


def _histogram(values: Any, name: str, of: Literal["values", "mean", "std"]) -> Histogram:
    """Bins that hold equally many values each, as far as values differ."""
    numpy = library("numpy")
    # One of the values each, and nothing in between: no arithmetic, so no rounding.
    found = numpy.quantile(values, [number / _BINS for number in range(1, _BINS)], method="inverted_cdf")
    edges = numpy.unique(found)
    counts = numpy.bincount(numpy.searchsorted(edges, values.ravel(), side="right"), minlength=len(edges) + 1)
    return Histogram(
        input=name,
        of=of,
        edges=tuple(map(_rounded, edges)),
        shares=tuple(_rounded(count / values.size) for count in counts),
    )


def _rounded(number: Any) -> float:
    return float(f"{float(number):.{_DIGITS}g}")
