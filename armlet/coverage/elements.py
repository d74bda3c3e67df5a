"""Element types of tensors: ONNX's numbers (``TensorProto.DataType``), names and sizes."""

from __future__ import annotations

from types import MappingProxyType

_NAMES = (
    "FLOAT UINT8 INT8 UINT16 INT16 INT32 INT64 STRING BOOL FLOAT16 DOUBLE UINT32 UINT64 COMPLEX64 COMPLEX128 BFLOAT16 "
    "FLOAT8E4M3FN FLOAT8E4M3FNUZ FLOAT8E5M2 FLOAT8E5M2FNUZ UINT4 INT4"
).split()

NUMBERS = MappingProxyType({name: number for number, name in enumerate(_NAMES, start=1)})
NAMES = MappingProxyType({number: name.lower() for name, number in NUMBERS.items()})

BITS = MappingProxyType(
    {
        **dict.fromkeys("FLOAT INT32 UINT32".split(), 32),
        **dict.fromkeys("INT64 UINT64 DOUBLE COMPLEX64".split(), 64),
        **dict.fromkeys("FLOAT16 BFLOAT16 INT16 UINT16".split(), 16),
        **dict.fromkeys("UINT8 INT8 BOOL FLOAT8E4M3FN FLOAT8E4M3FNUZ FLOAT8E5M2 FLOAT8E5M2FNUZ".split(), 8),
        **dict.fromkeys("UINT4 INT4".split(), 4),
        "COMPLEX128": 128,
    }
)
"""Name -> bits of one element; text has no size of its own."""


def bytes_of(number: int, elements: int) -> int:
    """What a tensor takes in memory; 0 for types without a size."""
    return -(-elements * BITS.get(NAMES.get(number, "").upper(), 0) // 8)


CXX_NAMES = MappingProxyType(
    {
        "float": "float",
        "double": "double",
        "MLFloat16": "float16",
        "BFloat16": "bfloat16",
        "bool": "bool",
        "std::string": "string",
        **{f"{name}_t": name for name in "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()},
    }
)
"""Types as ONNX Runtime's sources write them -> ONNX's names."""
