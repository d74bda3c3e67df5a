"""The Open Inference Protocol's names of element types, and JSON that is JSON."""

from __future__ import annotations

import json
import math
import struct
import sys
import threading
from typing import Any, NoReturn, Sequence

from armlet_runtime.ort import Tensor

from .http_message import HttpError
from .limits import Limits

# Protocol's name -> NumPy's, which is what Tensor goes by.
DTYPES = {
    "BOOL": "bool",
    "UINT8": "uint8",
    "UINT16": "uint16",
    "UINT32": "uint32",
    "UINT64": "uint64",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "FP16": "float16",
    "FP32": "float32",
    "FP64": "float64",
    "BF16": "bfloat16",
    "BYTES": "string",
}
_PROTOCOL = {dtype: name for name, dtype in DTYPES.items()}
# ONNX's own names, where they are not NumPy's.
_ONNX = {"float": "float32", "double": "float64"}
_KINDS: dict[str, set[type]] = {"BOOL": {bool}, "BYTES": {str}}
_FLOATS = frozenset({"FP16", "FP32", "FP64", "BF16"})
_ONE_AT_A_TIME = threading.Lock()
_DIGITS = "a number with too many digits"


class _NotStrict(ValueError):
    """What :mod:`json` would take."""


def protocol_name(dtype: str) -> str:
    """``FP32`` for ``float32`` or ONNX's ``float``; the name in capitals where the protocol has none."""
    return _PROTOCOL.get(_ONNX.get(dtype, dtype), dtype.upper())


def parse(raw: memoryview, limits: Limits) -> Any:
    """Strict JSON: no NaN or Infinity, no key twice. Raises :class:`HttpError`.

    What would take much more memory than :class:`~.limits.Limits` says is refused by what it has many of.
    """
    if len(raw) > limits.json_bytes:
        raise HttpError(413, f"the JSON has {len(raw)} bytes, at most {limits.json_bytes} are taken: send binary data")
    text = bytes(raw)
    for sign, most in ((b"[", limits.json_arrays), (b"{", limits.json_objects)):
        if text.count(sign) > most:
            raise HttpError(413, f'the JSON has more than {most} of "{sign.decode()}": send flat lists, or binary data')
    with _ONE_AT_A_TIME:
        try:
            return json.loads(text.decode("utf-8"), parse_constant=_constant, object_pairs_hook=_unique, parse_int=_INT)
        except RecursionError:
            raise HttpError(400, "the JSON is nested too deeply") from None
        except (_NotStrict, json.JSONDecodeError, UnicodeDecodeError) as error:
            raise HttpError(400, f"the body is no JSON: {error}") from None
        except ValueError:
            # What Python says of it is advice for programmers.
            raise HttpError(400, f"the body is no JSON: {_DIGITS}") from None


def elements(flat: Sequence[Any], datatype: str) -> Any:
    """What a :class:`Tensor` takes as data, of JSON's values. Raises :class:`ValueError`."""
    kinds = set(map(type, flat))
    wanted = _KINDS.get(datatype, {int, float} if datatype in _FLOATS else {int})
    if not kinds <= wanted:
        found = ", ".join(sorted(_JSON_NAMES.get(kind, "null") for kind in kinds - wanted))
        raise ValueError(f"its data has {found}, which is no {datatype}")
    if datatype == "BYTES":
        if not all(map(is_text, flat)):
            raise ValueError("its data has a string that is no text")
        return tuple(flat)
    if datatype in _FLOATS and not _all_finite(flat):
        raise ValueError("its data has a number beyond every float")
    if datatype == "BF16":
        return _to_bf16(flat)
    return _packed(flat, Tensor(b"", DTYPES[datatype], (0,)).element.format, datatype)


def is_text(value: str) -> bool:
    """Whether it can be encoded: JSON can escape half of a surrogate pair."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def json_values(tensor: Tensor) -> list[Any]:
    """All elements, flat. Raises :class:`ValueError` for what JSON does not have."""
    if tensor.dtype == "string":
        return list(map(_text, tensor.data))
    if tensor.dtype == "bfloat16":
        bits = struct.unpack(f"={tensor.data.nbytes // 2}H", tensor.data)
        flat = list(struct.unpack(f"={len(bits)}f", struct.pack(f"={len(bits)}I", *(half << 16 for half in bits))))
    else:
        element = tensor.element
        flat = list(struct.unpack(f"={tensor.data.nbytes // element.itemsize}{element.format}", tensor.data))
    if protocol_name(tensor.dtype) in _FLOATS and not _all_finite(flat):
        raise ValueError("it has NaN or infinity")
    return flat


def _all_finite(numbers: Sequence[float]) -> bool:
    try:
        return all(map(math.isfinite, numbers))
    except OverflowError:
        return False


def _packed(flat: Sequence[Any], letter: str, datatype: str) -> bytes:
    try:
        return struct.pack(f"={len(flat)}{letter}", *flat)
    except (struct.error, OverflowError):
        raise ValueError(f"not all of its data fits {datatype}") from None


def _to_bf16(flat: Sequence[float]) -> bytes:
    bits = struct.unpack(f"={len(flat)}I", _packed(flat, "f", "BF16"))
    # To the nearest, and to even where two are as near.
    halves = [(word + 0x7FFF + (word >> 16 & 1)) >> 16 for word in bits]
    if any(half & 0x7F80 == 0x7F80 for half in halves):
        raise ValueError("not all of its data fits BF16")
    return struct.pack(f"={len(flat)}H", *halves)


def _text(text: str | bytes) -> str:
    """Raises :class:`ValueError` where a string holds bytes that are no text."""
    if isinstance(text, bytes):
        return text.decode("utf-8")
    text.encode("utf-8")
    return text


def _constant(name: str) -> NoReturn:
    raise _NotStrict(f"{name} is no JSON; send the tensor as binary data")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _NotStrict("a key twice in one object")
    return found


def _short_int(text: str) -> int:
    if len(text) > 64:
        raise _NotStrict(_DIGITS)
    return int(text)


_JSON_NAMES = {bool: "booleans", int: "numbers", float: "fractions", str: "strings", list: "lists", dict: "objects"}
# Python before 3.11 takes time that grows with the square of the digits, unless its distributor has mended it.
_INT = None if hasattr(sys, "get_int_max_str_digits") else _short_int
