"""Element types: ONNX Runtime's, NumPy's and the buffer protocol's names for each."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from ._api_table import ONNXTensorElementDataType as Onnx
from ._errors import invalid, unsupported


@dataclass(frozen=True)
class ElementType:
    """One element type.

    ``name`` as in ``tensor(name)``; ``dtype`` as NumPy and :class:`Tensor` say it; ``format`` and
    ``itemsize`` as :mod:`struct` has it (empty and 0 for strings); ``carrier`` is the unsigned type that
    carries the bits where the host language has no such type, or None.
    """

    code: Onnx
    name: str
    dtype: str
    format: str
    itemsize: int
    carrier: str | None = None

    @property
    def array_dtype(self) -> str:
        """The NumPy dtype that arrays of this type have."""
        return self.carrier or ("object" if self.code == Onnx.STRING else self.dtype)

    def __str__(self) -> str:
        return f"tensor({self.name})"


_ALL = (
    ElementType(Onnx.FLOAT, "float", "float32", "f", 4),
    ElementType(Onnx.DOUBLE, "double", "float64", "d", 8),
    ElementType(Onnx.FLOAT16, "float16", "float16", "e", 2),
    ElementType(Onnx.INT8, "int8", "int8", "b", 1),
    ElementType(Onnx.UINT8, "uint8", "uint8", "B", 1),
    ElementType(Onnx.INT16, "int16", "int16", "h", 2),
    ElementType(Onnx.UINT16, "uint16", "uint16", "H", 2),
    ElementType(Onnx.INT32, "int32", "int32", "i", 4),
    ElementType(Onnx.UINT32, "uint32", "uint32", "I", 4),
    ElementType(Onnx.INT64, "int64", "int64", "q", 8),
    ElementType(Onnx.UINT64, "uint64", "uint64", "Q", 8),
    ElementType(Onnx.BOOL, "bool", "bool", "?", 1),
    ElementType(Onnx.STRING, "string", "string", "", 0),
    ElementType(Onnx.BFLOAT16, "bfloat16", "bfloat16", "H", 2, "uint16"),
    ElementType(Onnx.FLOAT8E4M3FN, "float8e4m3fn", "float8e4m3fn", "B", 1, "uint8"),
    ElementType(Onnx.FLOAT8E4M3FNUZ, "float8e4m3fnuz", "float8e4m3fnuz", "B", 1, "uint8"),
    ElementType(Onnx.FLOAT8E5M2, "float8e5m2", "float8e5m2", "B", 1, "uint8"),
    ElementType(Onnx.FLOAT8E5M2FNUZ, "float8e5m2fnuz", "float8e5m2fnuz", "B", 1, "uint8"),
)
_BY_CODE = {element.code: element for element in _ALL}
_BY_NAME = {name: element for element in _ALL for name in (element.dtype, str(element))}
STRING = _BY_CODE[Onnx.STRING]

# Looked up by kind and size, since the letters differ by platform: "l" has 4 bytes on armhf and 8 on aarch64.
_LETTERS = {"f": "efd", "i": "bhilqn", "u": "BHILQN", "?": "?"}
_KINDS = {letter: kind for kind, letters in _LETTERS.items() for letter in letters}
_BY_KIND = {(_KINDS[e.format], e.itemsize): e for e in _ALL if e.format and e.carrier is None}


def of_code(code: int) -> ElementType:
    """The type for ONNX Runtime's number; raises :class:`OrtError` for one this binding does not carry."""
    try:
        return _BY_CODE[Onnx(code)]
    except (KeyError, ValueError):
        raise unsupported(f"tensors of {name_of_code(code)} are not supported by this binding") from None


def name_of_code(code: int) -> str:
    """``float`` and the like, for any number that ONNX Runtime may give."""
    try:
        return _BY_CODE[Onnx(code)].name if Onnx(code) in _BY_CODE else Onnx(code).name.lower()
    except ValueError:
        return f"element type {code}"


def of_name(name: str) -> ElementType:
    """The type for a NumPy-like name (``float32``) or for ``tensor(float)``."""
    try:
        return _BY_NAME[name]
    except KeyError:
        known = ", ".join(element.dtype for element in _ALL)
        raise invalid(f'unknown element type "{name}"; known: {known}') from None


def of_format(text: str, itemsize: int) -> ElementType | None:
    """The type for a buffer's format string, or None when there is none in native byte order."""
    order, letter = (text[0], text[1:]) if text[:1] in ("@", "=", "<", ">", "!") else ("@", text)
    swapped = order in (">", "!") if sys.byteorder == "little" else order == "<"
    if swapped and itemsize > 1:
        return None
    return _BY_KIND.get((_KINDS.get(letter, ""), itemsize))
