"""Arrays for where NumPy is not."""

from __future__ import annotations

import math
import struct
from typing import Any, Sequence

from . import _types
from ._errors import invalid, unsupported


class Tensor:
    """A dense array: what a run returns without NumPy, and an input with an explicit type anywhere.

    ``dtype`` is NumPy's name of the element type ("float32", "int64", "bool", …), or "string",
    "bfloat16" and the "float8…" names. ``shape`` is a tuple, empty for a scalar. ``data`` is any
    C-contiguous buffer of the raw elements in native byte order, shared and not copied; for strings a
    flat sequence of ``str`` or ``bytes``.

    Raises :class:`OrtError` when ``data`` does not fill ``shape`` exactly.
    """

    __slots__ = ("_element", "data", "shape")

    def __init__(self, data: Any, dtype: str, shape: Sequence[int]) -> None:
        self._element = _types.of_name(dtype)
        self.shape = tuple(shape)
        count = math.prod(self.shape)
        if self._element is _types.STRING:
            self.data: Any = tuple(data)
            given, wanted, unit = len(self.data), count, "strings"
        else:
            self.data = _bytes_of(data)
            given, wanted, unit = self.data.nbytes, count * self._element.itemsize, "bytes"
        if given != wanted or min(self.shape, default=0) < 0:
            raise invalid(f"shape {list(self.shape)} of {dtype} takes {wanted} {unit}, {given} given")

    @classmethod
    def from_list(cls, values: Any, dtype: str) -> Tensor:
        """A tensor of the numbers, bools or strings in evenly nested lists; a bare value is a scalar.

        Types without a Python counterpart (bfloat16, float8…) take their bits as integers.
        """
        element = _types.of_name(dtype)
        shape, flat = flatten(values)
        return cls(flat if element is _types.STRING else pack(flat, element), dtype, shape)

    @property
    def dtype(self) -> str:
        """NumPy's name of the element type."""
        return self._element.dtype

    @property
    def element(self) -> _types.ElementType:
        """The element type with all its names."""
        return self._element

    @property
    def memoryview(self) -> memoryview:
        """A typed view with this shape, no copy.

        Its format is that of :mod:`struct`, but "H" (the bits) for float16 and bfloat16, since a view in
        Python before 3.12 has no half floats. Of an empty tensor the view is flat, since views have no zero
        dimensions. Raises :class:`OrtError` for strings.
        """
        if self._element is _types.STRING:
            raise unsupported("strings have no memoryview; use tolist()")
        text = "H" if self._element.format == "e" else self._element.format
        raw: Any = self.data
        view: memoryview = raw.cast(text, self.shape) if raw.nbytes else raw.cast(text)
        return view

    def tobytes(self) -> bytes:
        """The raw elements in C order; raises :class:`OrtError` for strings."""
        return self.memoryview.tobytes()

    def tolist(self) -> Any:
        """Nested lists of Python values; the bare value for a scalar."""
        if self._element is _types.STRING:
            flat = list(self.data)
        else:
            count = self.data.nbytes // self._element.itemsize
            flat = list(struct.unpack(f"={count}{self._element.format}", self.data))
        return _nest(flat, self.shape)

    def __repr__(self) -> str:
        return f"Tensor(dtype={self.dtype!r}, shape={self.shape!r})"


def flatten(values: Any) -> tuple[tuple[int, ...], list[Any]]:
    """Shape and leaves of evenly nested lists or tuples; raises :class:`OrtError` for ragged ones."""
    shape = []
    first = values
    while isinstance(first, (list, tuple)):
        shape.append(len(first))
        if not first:
            break
        first = first[0]
    level = [values]
    for size in shape:
        if any(not isinstance(item, (list, tuple)) or len(item) != size for item in level):
            raise invalid("the nested lists are ragged")
        level = [leaf for item in level for leaf in item]
    if any(isinstance(leaf, (list, tuple)) for leaf in level):
        raise invalid("the nested lists are ragged")
    return tuple(shape), level


def pack(flat: Sequence[Any], element: _types.ElementType) -> bytes:
    """The raw elements of Python numbers; raises :class:`OrtError` for one that does not fit the type."""
    # struct would take any object for a bool, by its truth.
    if element.format == "?" and any(value not in (0, 1) for value in flat):
        raise invalid("only True, False, 1 and 0 are elements of a bool tensor")
    try:
        return struct.pack(f"={len(flat)}{element.format}", *flat)
    except (struct.error, OverflowError, TypeError) as error:
        raise invalid(f"not all values fit {element.dtype}: {error}") from error


def _nest(flat: list[Any], shape: tuple[int, ...]) -> Any:
    if not shape:
        return flat[0]
    if len(shape) == 1:
        return flat
    step = math.prod(shape[1:])
    return [_nest(flat[row * step : (row + 1) * step], shape[1:]) for row in range(shape[0])]


def _bytes_of(data: Any) -> memoryview:
    try:
        view = memoryview(data)
    except TypeError:
        raise invalid(f"{type(data).__name__} is not a buffer; use Tensor.from_list for lists") from None
    if not view.c_contiguous:
        raise invalid("the buffer is not C-contiguous")
    # A view with a zero dimension cannot be cast.
    return view.cast("B") if view.nbytes else memoryview(bytearray())
