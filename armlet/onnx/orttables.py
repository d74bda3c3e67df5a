"""Tables of an ORT-format file as plain values: what all who read such files have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from armlet.onnx.libraries import library
from armlet.registrations import ONNX_DOMAIN

FBS = "onnxruntime.tools.ort_format_model.ort_flatbuffers_py.fbs"
TENSOR, _SEQUENCE, _MAP = 1, 2, 3
"""``TypeInfoValue`` of ``core/flatbuffers/schema/ort.fbs``."""
_INPUT = 0
_FIXED, _NAMED = 1, 2
"""``DimensionValueType``."""
_DEEPEST = 64

Dims = tuple[int | str, ...]
"""A number, or a name where a dimension is free (empty: none)."""
Arguments = Mapping[str, Sequence[tuple[int, int]]]
"""Type constraint -> its (input or output, position) in the operator's definition."""


def items(table: Any, name: str) -> Iterator[Any]:
    """The entries of a table's vector, one after the other."""
    for index in range(getattr(table, f"{name}Length")()):
        yield getattr(table, name)(index)


def text(value: bytes | None) -> str:
    return (value or b"").decode()


def opsets(model: Any) -> dict[str, int]:
    """Domain (``ai.onnx`` for ONNX's own) -> opset."""
    return {text(one.Domain()) or ONNX_DOMAIN: int(one.Version()) for one in items(model, "OpsetImport")}


def element(number: int) -> str:
    """``float`` for 1."""
    return str(library("onnx").TensorProto.DataType.Name(int(number))).lower()


def tensor(value: Any) -> Any:
    """The ``TensorTypeAndShape`` of a ``ValueInfo``; None where it is no tensor, or nothing is known of it."""
    info = value.Type()
    return _init("TensorTypeAndShape", info.Value()) if info is not None and info.ValueType() == TENSOR else None


def dims(found: Any) -> Dims | None:
    """Of a ``TensorTypeAndShape``; None where not even the rank is known."""
    shape = found.Shape()
    return None if shape is None else tuple(_dim(dim.Value()) for dim in items(shape, "Dim"))


def _dim(value: Any) -> int | str:
    if value is not None and value.DimType() == _FIXED:
        return int(value.DimValue())
    return text(value.DimParam()) if value is not None and value.DimType() == _NAMED else ""


def types(info: Any, depth: int = 0) -> tuple[str, frozenset[str]]:
    """``float`` for a tensor of them, ``seq(tensor(float))``; and the elements in it."""
    if depth > _DEEPEST:
        raise ValueError(f"types inside types, {depth} deep")
    kind, value = info.ValueType(), info.Value()
    if kind == TENSOR:
        name = element(_init("TensorTypeAndShape", value).ElemType())
        return name, frozenset({name})
    if kind == _SEQUENCE:
        name, elements = types(_init("SequenceType", value).ElemType(), depth + 1)
        return f"seq({_whole(name)})", elements
    if kind == _MAP:
        entry = _init("MapType", value)
        name, elements = types(entry.ValueType(), depth + 1)
        key = element(entry.KeyType())
        return f"map({key},{_whole(name)})", elements | {key}
    raise ValueError(f"a type of the unknown kind {kind}")


def arguments(resolver: Any) -> dict[str, Arguments]:
    """``<domain>:<operator>:<version>`` -> what its kernels' types are looked up by."""
    return {
        text(entry.OpId()): {
            text(row.KernelTypeStr()): [(int(place.ArgType()), int(place.Index())) for place in items(row, "Args")]
            for row in items(entry, "KernelTypeStrArgs")
        }
        for entry in items(resolver, "OpKernelTypeStrArgs")
    }


def bound(node: Any, known: Mapping[str, Arguments], values: Mapping[str, str]) -> dict[str, str]:
    """Type constraint -> the type that a kernel must take, where the node has such an input or output.

    Args:
        values: value -> its type.
    """
    counts = [int(count) for count in items(node, "InputArgCounts")]
    inputs = [text(name) for name in items(node, "Inputs")]
    outputs = [text(name) for name in items(node, "Outputs")]
    starts = [0, *accumulate(counts)]
    found: dict[str, str] = {}
    for constraint, places in known[f"{text(node.Domain())}:{text(node.OpType())}:{node.SinceVersion()}"].items():
        for role, position in places:
            if role == _INPUT:
                given = position < len(counts) and counts[position] > 0
                name = inputs[starts[position]] if given else ""
            else:
                name = outputs[position] if position < len(outputs) else ""
            # The first that is there decides, as ONNX Runtime's kernel registry has it.
            if name:
                found[constraint] = values[name]
                break
    return found


def _init(name: str, table: Any) -> Any:
    made = getattr(library(f"{FBS}.{name}"), name)()
    made.Init(table.Bytes, table.Pos)
    return made


def _whole(name: str) -> str:
    return name if "(" in name else f"tensor({name})"
