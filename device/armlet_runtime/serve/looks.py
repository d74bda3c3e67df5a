"""A look at tensors that costs little, whatever their size and rate."""

from __future__ import annotations

import math
import random
import struct
import sys
import time
from typing import Any, Callable, Sequence

from armlet_runtime.ort import Tensor

MOST = 2048
"""Elements of a tensor that are looked at; of a larger one, evenly spread ones."""
MOST_EXACT = 8192
"""Elements of a tensor whose mean is taken without NumPy: more hold up the request that is looked at."""
SHARE = 0.01
"""Of the time, that may go into looks."""


class Thrift:
    """Tells whether there is time for another look: after one that took t, not before t / SHARE has passed."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next = 0.0
        self._began = 0.0

    def __bool__(self) -> bool:
        self._began = self._clock()
        return self._began >= self._next

    def spent(self) -> None:
        """The look is over."""
        now = self._clock()
        self._next = now + (now - self._began) / SHARE


def some(tensor: Tensor, most: int = MOST) -> Sequence[float]:
    """At most so many of its elements as numbers; none for strings and types that Python cannot read."""
    element = tensor.element
    if element.carrier == "uint8" or not element.format or not tensor.data.nbytes:
        return ()
    half = element.format == "e" or tensor.dtype == "bfloat16"
    raw: Any = memoryview(tensor.data).cast("B")  # typeshed wants the format as a literal
    view: memoryview = raw.cast("H" if half else element.format)
    step = -(-len(view) // most)
    # From anywhere in the first step: else a column of a table would be all that is ever seen.
    values: list[Any] = view[random.randrange(step) :: step].tolist()
    if tensor.dtype == "bfloat16":
        return struct.unpack(f"={len(values)}f", struct.pack(f"={len(values)}I", *(bits << 16 for bits in values)))
    if half:
        return struct.unpack(f"={len(values)}e", struct.pack(f"={len(values)}H", *values))
    return values


def mean_and_std(tensor: Tensor) -> tuple[float, float] | None:
    """Of all its elements; None for what has no numbers, or too many to count without NumPy.

    A part of them would not do: inputs that are normalised one by one have the same mean to many digits.
    """
    # The binding has loaded it where it can be.
    numpy: Any = sys.modules.get("numpy")
    element = tensor.element
    if numpy is not None and element.carrier is None and element.format and tensor.data.nbytes:
        array = numpy.frombuffer(tensor.data, tensor.dtype)
        return float(array.mean(dtype=numpy.float64)), float(array.std(dtype=numpy.float64))
    values = some(tensor, MOST_EXACT)
    if not values or len(values) < math.prod(tensor.shape):
        return None
    try:
        mean = math.fsum(values) / len(values)
        return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
    except (OverflowError, ValueError):
        return math.nan, math.nan
