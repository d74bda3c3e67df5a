"""What must hold of a model before anything is done with it, told as one sentence where it does not."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from armlet.errors import ArmletError, Kind
from armlet.onnx.finite import named, unsound_number
from armlet.onnx.libraries import library
from armlet.registrations import ONNX_DOMAIN

DEEPEST = 16
"""Graphs inside graphs."""
DOMAINS = frozenset({ONNX_DOMAIN, "ai.onnx.ml", "com.microsoft"})
"""Whose operators ONNX Runtime has; a model may bring functions of further ones."""

_MOST = 2**63 - 1
"""What a shape and a number of elements may be, as int64."""
_LARGEST = 2**31 - 1
_CHECK = "give a file that onnx.checker.check_model accepts"
_AGAIN = "export the model again"
_UNKNOWN = ("ONNX Runtime does not know", f"export it with operators of {', '.join(sorted(DOMAINS))} alone")
_NOT_TAKEN = {
    "com.microsoft.nchwc": (
        "ONNX Runtime's optimisers make on x86: it has no kernels for ARM",
        "give the model as it was exported, not one that ONNX Runtime has optimised",
    )
}
"""Domain -> what is wrong with it, and what mends that."""


def demand_sound(model: Any, path: Path) -> None:
    """Does nothing where an ``onnx.ModelProto`` (with all its data) makes sense.

    Raises:
        ArmletError: (INPUT) it does not; ``where`` is its file.
    """
    try:
        _demand_shallow(model.graph, 1)
        _demand_finite_functions(model)
        _demand_known_domains(model)
        _demand_order(model.graph, frozenset())
        _demand_shapes([*model.graph.input, *model.graph.output])
        for tensor in tensors(model):
            _demand_tensor(tensor)
        if wrong := unsound_number(_bodies(model), tensors(model)):
            raise _Unsound(wrong.what, wrong.hint)
    except _Unsound as unsound:
        raise ArmletError(unsound.what, hint=unsound.hint, kind=Kind.INPUT, where=str(path)) from unsound


def demand_bounded(model: Any, path: Path) -> None:
    """Does nothing where all known shapes of a model (after shape inference) can be counted.

    Raises:
        ArmletError: (INPUT) one cannot.
    """
    try:
        _demand_shapes(model.graph.value_info, may_be_empty=True)
    except _Unsound as unsound:
        raise ArmletError(unsound.what, hint=unsound.hint, kind=Kind.INPUT, where=str(path)) from unsound


def tensors(model: Any) -> Iterator[Any]:
    """Every constant of a model, those in its functions and inner graphs included."""
    yield from _tensors_of(model.graph)
    for function in model.functions:
        yield from _tensors_in(function.node)


def _tensors_of(graph: Any) -> Iterator[Any]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    yield from _tensors_in(graph.node)


def _tensors_in(nodes: Iterable[Any]) -> Iterator[Any]:
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            for graph in _graphs(attribute):
                yield from _tensors_of(graph)


def _graphs(attribute: Any) -> list[Any]:
    return [attribute.g] if attribute.HasField("g") else [*attribute.graphs]


class _Unsound(Exception):
    def __init__(self, what: str, hint: str = _CHECK) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint


def _demand_shallow(graph: Any, depth: int) -> None:
    if depth > DEEPEST:
        raise _Unsound(f"has graphs inside graphs more than {DEEPEST} deep", "flatten its If, Loop and Scan operators")
    for node in graph.node:
        for attribute in node.attribute:
            for inner in _graphs(attribute):
                _demand_shallow(inner, depth + 1)


def _demand_finite_functions(model: Any) -> None:
    """ONNX replaces a function by its nodes until none is left."""
    calls: dict[tuple[str, str], set[tuple[str, str]]] = {
        (function.domain, function.name): {(node.domain, node.op_type) for node in function.node}
        for function in model.functions
    }
    while calls:
        leaves = [key for key, called in calls.items() if not called & calls.keys()]
        if not leaves:
            names = ", ".join(sorted(name for _, name in calls))
            raise _Unsound(f"has functions that call themselves: {names}", _AGAIN)
        for key in leaves:
            del calls[key]


def _demand_known_domains(model: Any) -> None:
    own = {(function.domain, function.name) for function in model.functions}
    bodies = [(model.opset_import, _all_nodes(model.graph))]
    bodies += [(function.opset_import, function.node) for function in model.functions]
    for imports, nodes in bodies:
        opsets = {entry.domain or ONNX_DOMAIN for entry in imports}
        for node in nodes:
            domain = node.domain or ONNX_DOMAIN
            if domain not in opsets:
                raise _Unsound(f"uses {node.op_type} of {domain}, and does not say which opset of it")
            if domain not in DOMAINS and (node.domain, node.op_type) not in own:
                raise _Unsound(
                    f"uses {node.op_type} of the domain {domain}, which {_NOT_TAKEN.get(domain, _UNKNOWN)[0]}",
                    _NOT_TAKEN.get(domain, _UNKNOWN)[1],
                )


def _bodies(model: Any) -> list[Any]:
    """The nodes of the graph, those inside others included, and those of functions."""
    inside = (node for function in model.functions for node in _nodes_of(function.node))
    return [*_all_nodes(model.graph), *inside]


def _all_nodes(graph: Any) -> Iterator[Any]:
    yield from _nodes_of(graph.node)


def _nodes_of(nodes: Iterable[Any]) -> Iterator[Any]:
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for inner in _graphs(attribute):
                yield from _nodes_of(inner.node)


def _demand_order(graph: Any, outer: frozenset[str]) -> None:
    """Each value has one name and one origin, and is there before it is read."""
    for role, values in (("inputs", graph.input), ("constants", graph.initializer), ("outputs", graph.output)):
        names = [value.name for value in values]
        if twice := sorted(name for name, count in Counter(names).items() if count > 1):
            raise _Unsound(f'has two {role} named "{twice[0]}"', "give each its own name")
    given = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    given |= {sparse.values.name for sparse in graph.sparse_initializer}
    known = {*outer, *given}
    makers: dict[str, Any] = {}
    for node in graph.node:
        for name in filter(None, node.output):
            if name in makers or name in known:
                raise _Unsound(f'has two values named "{name}": one is given by {_shown(node)}', _AGAIN)
            makers[name] = node
    for node in graph.node:
        for name in filter(None, node.input):
            if name not in known:
                raise _not_there(name, node, makers)
        for attribute in node.attribute:
            for inner in _graphs(attribute):
                _demand_order(inner, frozenset(known))
        known.update(filter(None, node.output))
    if missing := next((value.name for value in graph.output if value.name not in known), None):
        raise _Unsound(f'its output "{missing}" is given by nothing', _AGAIN)


def _not_there(name: str, node: Any, makers: dict[str, Any]) -> _Unsound:
    if name not in makers:
        return _Unsound(f'{_shown(node)} reads "{name}", which nothing gives', _AGAIN)
    # Backwards from what is read too early: whoever comes by again is on a circle.
    paths: list[tuple[str, tuple[str, ...]]] = [(name, ())]
    done: set[str] = set()
    while paths:
        wanted, behind = paths.pop()
        maker = makers[wanted]
        if any(read in node.output for read in maker.input):
            circle = " -> ".join([_shown(node), *reversed(behind), _shown(maker)][:8])
            return _Unsound(f"its graph is a circle: {circle}", _AGAIN)
        done.add(wanted)
        paths += [(read, (*behind, _shown(maker))) for read in maker.input if read in makers and read not in done]
    return _Unsound(f'its operators are not in order: {_shown(node)} reads "{name}" before it is there', _AGAIN)


def _shown(node: Any) -> str:
    return f"{node.op_type} {node.name or ', '.join(node.output)}"


def _demand_shapes(values: Iterable[Any], *, may_be_empty: bool = False) -> None:
    for value in values:
        given = [dim.dim_value for dim in value.type.tensor_type.shape.dim if dim.HasField("dim_value")]
        # Some exporters, Paddle's for one, write -1 for a dimension that is free.
        sizes = [size for size in given if size != -1]
        shown = "x".join(map(str, given))
        if any(size < 0 for size in sizes):
            raise _Unsound(f'"{value.name}" has a negative dimension: {shown}', _AGAIN)
        if not may_be_empty and 0 in sizes:
            hint = "leave a dimension that is free without a number, or give it a name"
            raise _Unsound(f'"{value.name}" has a dimension of 0, and so no elements: {shown}', hint)
        if math.prod(sizes) > _MOST:
            raise _Unsound(f'"{value.name}" has more elements than can be counted: {shown}', _AGAIN)


def _demand_tensor(tensor: Any) -> None:
    name = named(tensor)
    shown = "x".join(map(str, tensor.dims))
    if any(size < 0 for size in tensor.dims):
        raise _Unsound(f"{name} has a negative dimension: {shown}", _AGAIN)
    # An empty list is how ONNX leaves out an optional value (Resize's regions).
    if 0 in tensor.dims and len(tensor.dims) > 1:
        raise _Unsound(f"{name} has a dimension of 0, and so no elements: {shown}", _AGAIN)
    kind = _numpy_type(tensor)
    count = math.prod(tensor.dims)
    if count * (kind.itemsize if kind else 1) > _LARGEST:
        raise _Unsound(f"{name} has more than 2 GiB: {shown}", _AGAIN)
    if kind is None:
        return
    if tensor.HasField("raw_data") and len(tensor.raw_data) != count * kind.itemsize:
        what = f"{name} of {shown or 'one element'} has {len(tensor.raw_data)} bytes, and needs {count * kind.itemsize}"
        raise _Unsound(what, _AGAIN)


def _numpy_type(tensor: Any) -> Any:
    """None where elements are no whole bytes (or text), and where the type is unknown."""
    helper, proto = library("onnx.helper"), library("onnx").TensorProto
    if tensor.data_type in (proto.UNDEFINED, proto.STRING, proto.INT4, proto.UINT4, proto.FLOAT4E2M1):
        return None
    try:
        return helper.tensor_dtype_to_np_dtype(tensor.data_type)
    except (KeyError, ValueError):
        return None
