"""Whether a model computes here what it computed where it was made."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any, Iterable, Mapping, Sequence

from armlet_runtime import ort
from armlet_runtime.serve.wire import WireError, unpack_strings

_NUMPY = {"float": "float32", "double": "float64"}


class TrialError(Exception):
    """The model cannot be tried, or does not compute what it should."""


class BudgetError(TrialError):
    """The model computes well, but takes more time or memory than its maker allows."""


def numpy_name(onnx: str) -> str:
    """``float32`` for ONNX's ``float`` and so on."""
    return _NUMPY.get(onnx, onnx)


def tensor_of(folder: Path, entry: Mapping[str, Any]) -> ort.Tensor:
    """A golden tensor of payload.json; strings are each a length of four bytes and their bytes.

    Raises :class:`TrialError`.
    """
    try:
        data: Any = (folder / entry["file"]).read_bytes()
        if entry["dtype"] == "string":
            data = unpack_strings(memoryview(data), math.prod(entry["shape"]))
        return ort.Tensor(data, numpy_name(entry["dtype"]), entry["shape"])
    except OSError as error:
        raise TrialError(f"{entry['file']}: {error.strerror}") from error
    except (ort.OrtError, WireError, KeyError, TypeError) as error:
        raise TrialError(f"{entry.get('file')}: {error}") from error


def zeros(dtype: str, shape: Iterable[int | str]) -> ort.Tensor:
    """A tensor to warm up with; ``dtype`` is ONNX's name, and free dimensions are 1."""
    sizes = [size if isinstance(size, int) else 1 for size in shape]
    if dtype == "string":
        return ort.Tensor([b""] * math.prod(sizes), "string", sizes)
    itemsize = ort.Tensor(b"", numpy_name(dtype), (0,)).element.itemsize
    return ort.Tensor(bytes(math.prod(sizes) * itemsize), numpy_name(dtype), sizes)


def difference(got: ort.Tensor, wanted: ort.Tensor, atol: float, rtol: float) -> str:
    """In words, the first element with \\|got - wanted\\| > atol + rtol * \\|wanted\\|; empty where there is none."""
    if got.dtype != wanted.dtype or got.shape != wanted.shape:
        shapes = f"{got.dtype}{list(got.shape)}, {wanted.dtype}{list(wanted.shape)} wanted"
        return f"it is {shapes}"
    for index, (a, b) in enumerate(zip(elements(got), elements(wanted))):
        if not _close(a, b, atol, rtol):
            place = list(_place(index, got.shape))
            return f"{a!r} at {place}, {b!r} wanted within {atol} + {rtol} * |wanted|"
    return ""


def elements(tensor: ort.Tensor) -> Sequence[Any]:
    """Its elements in C order: numbers, or bytes of strings. Types without a Python counterpart: their bits."""
    if tensor.dtype == "string":
        return [text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text for text in tensor.data]
    element = tensor.element
    count = memoryview(tensor.data).nbytes // element.itemsize
    flat = struct.unpack(f"={count}{element.format}", tensor.data)
    if tensor.dtype == "bfloat16":
        return struct.unpack(f"={count}f", struct.pack(f"={count}I", *(bits << 16 for bits in flat)))
    return flat


def _close(got: Any, wanted: Any, atol: float, rtol: float) -> bool:
    if got == wanted:
        return True
    if isinstance(got, bytes):
        return False
    if math.isnan(got) or math.isnan(wanted):
        return math.isnan(got) and math.isnan(wanted)
    if math.isinf(got) or math.isinf(wanted):
        return False
    return bool(abs(got - wanted) <= atol + rtol * abs(wanted))


def _place(index: int, shape: Sequence[int]) -> tuple[int, ...]:
    place = []
    for size in reversed(shape):
        index, rest = divmod(index, size)
        place.append(rest)
    return tuple(reversed(place))
