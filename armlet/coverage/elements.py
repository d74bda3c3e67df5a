"""Element types of tensors: ONNX's numbers (``TensorProto.DataType``), names and sizes."""

from __future__ import annotations

from types import MappingProxyType

_BITS = {
    "FLOAT": 32,
    "UINT8": 8,
    "INT8": 8,
    "UINT16": 16,
    "INT16": 16,
    "INT32": 32,
    "INT64": 64,
    "STRING": 0,
    "BOOL": 8,
    "FLOAT16": 16,
    "DOUBLE": 64,
    "UINT32": 32,
    "UINT64": 64,
    "COMPLEX64": 64,
    "COMPLEX128": 128,
    "BFLOAT16": 16,
    "FLOAT8E4M3FN": 8,
    "FLOAT8E4M3FNUZ": 8,
    "FLOAT8E5M2": 8,
    "FLOAT8E5M2FNUZ": 8,
    "UINT4": 4,
    "INT4": 4,
}
"""In the order of their numbers, from 1; text has no size of its own."""

NUMBERS = MappingProxyType({name: number for number, name in enumerate(_BITS, start=1)})
NAMES = MappingProxyType({number: name.lower() for name, number in NUMBERS.items()})


def bytes_of(number: int, elements: int) -> int:
    """What a tensor takes in memory; 0 for types without a size."""
    return -(-elements * _BITS.get(NAMES.get(number, "").upper(), 0) // 8)


CXX_NAMES = MappingProxyType(
    {
        "float": "float",
        "double": "double",
        "MLFloat16": "float16",
        "BFloat16": "bfloat16",
        "bool": "bool",
        "std::string": "string",
        **{f"{sign}int{bits}_t": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    }
)
"""Types as ONNX Runtime's sources write them -> ONNX's names."""
