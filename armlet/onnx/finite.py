"""NaN and infinity among a model's constants, wherever it keeps them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from armlet.onnx.libraries import library

_WEIGHTED = frozenset(
    {
        *("Conv", "ConvTranspose", "Gemm", "MatMul", "LSTM", "GRU", "RNN"),
        *("BatchNormalization", "InstanceNormalization", "LayerNormalization"),
    }
)
"""Whose constants are weights. Elsewhere infinity has its uses: masks, limits of a Clip."""
_PASSED_ON = frozenset({"Identity", "Cast", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten"})
"""What gives the numbers of its first input as they are."""
_OWN_NAN = "ai.onnx.ml"
"""Whose attributes have NaN as what a missing value is."""
_REMEDY = "the training diverged, or the file is damaged: take an earlier checkpoint"


class Wrong(NamedTuple):
    what: str
    hint: str


def unsound_number(nodes: Sequence[Any], tensors: Iterable[Any]) -> Wrong | None:
    """What is wrong with the first constant that has NaN, or infinity among weights; None where none has.

    Args:
        nodes: all of a model's, those inside others included.
        tensors: all of its constants.
    """
    weights, marks = _weights(nodes), _marks(nodes)
    for tensor in tensors:
        if tensor.name not in marks and (wrong := _in_tensor(tensor, is_weight=tensor.name in weights)):
            return wrong
    for node in nodes:
        is_weight = any(name in weights for name in node.output) and node.op_type in ("Constant", "ConstantOfShape")
        for attribute in node.attribute if node.domain != _OWN_NAN else ():
            if wrong := _in_attribute(node, attribute, is_weight=is_weight):
                return wrong
    return None


def named(tensor: Any) -> str:
    """A constant, as an error calls it."""
    return f'its constant "{tensor.name}"' if tensor.name else "a constant in an attribute"


def _weights(nodes: Sequence[Any]) -> set[str]:
    found = {name for node in nodes if node.op_type in _WEIGHTED for name in node.input}
    origins = {node.output[0]: node.input[0] for node in nodes if node.op_type in _PASSED_ON and node.input}
    for name in tuple(found):
        while (name := origins.get(name, "")) and name not in found:
            found.add(name)
    return found - {""}


def _marks(nodes: Sequence[Any]) -> set[str]:
    """Tensors in which NaN is how a set ends (TreeEnsemble)."""
    trees = (node for node in nodes if node.op_type == "TreeEnsemble")
    return {attribute.t.name for node in trees for attribute in node.attribute if attribute.t.name}


def _in_attribute(node: Any, attribute: Any, *, is_weight: bool) -> Wrong | None:
    where = f'the attribute "{attribute.name}" of {node.op_type} {node.name or ", ".join(node.output)}'
    if is_weight and attribute.HasField("t") and (wrong := _in_tensor(attribute.t, is_weight=True)):
        return wrong
    numbers = [*attribute.floats, *_single(attribute)]
    return _judged(where, sum(map(math.isnan, numbers)), sum(map(math.isinf, numbers)), len(numbers), is_weight)


def _single(attribute: Any) -> Iterator[float]:
    if attribute.HasField("f"):
        yield attribute.f


def _in_tensor(tensor: Any, *, is_weight: bool) -> Wrong | None:
    numpy, proto = library("numpy"), library("onnx").TensorProto
    if tensor.data_type not in (proto.FLOAT, proto.DOUBLE, proto.FLOAT16, proto.BFLOAT16):
        return None
    try:
        array = library("onnx.numpy_helper").to_array(tensor)
    except Exception:  # NumPy's and onnx's own: the numbers are not as many as the shape says.
        return Wrong(f"{named(tensor)} has not as many numbers as its shape says", "export the model again")
    finite = int(numpy.count_nonzero(numpy.isfinite(array)))
    if finite == array.size:
        return None
    nan = int(numpy.count_nonzero(numpy.isnan(array)))
    return _judged(named(tensor), nan, array.size - finite - nan, array.size, is_weight)


def _judged(where: str, nan: int, infinite: int, size: int, is_weight: bool) -> Wrong | None:
    if nan or (infinite and is_weight):
        what = f"{where} has {'NaN' if nan else 'infinity'} among its numbers ({nan + infinite} of {size})"
        return Wrong(what, _REMEDY)
    return None
