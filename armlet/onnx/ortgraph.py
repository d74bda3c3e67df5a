"""A model in ORT format as the plain graph that coverage is predicted on: just what a runtime reads of it."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from armlet.coverage.graph import Constant, Graph, Node, Value, nameless
from armlet.errors import ArmletError, Kind
from armlet.onnx import orttables
from armlet.onnx.libraries import library
from armlet.onnx.ortfile import session_of
from armlet.onnx.orttables import items, text
from armlet.registrations import ONNX_DOMAIN

_REPLACEABLE_FROM = 4
"""IR version from which an initialiser that is also an input may be replaced by the caller."""
_FLOAT, _INT, _TEXT, _TENSOR, _GRAPH, _FLOATS, _INTS, _TEXTS, _TENSORS, _GRAPHS = range(1, 11)
"""Kinds of attributes (``AttributeType``)."""


def named(model: Any) -> Any:
    """An ``onnx.ModelProto`` with a name for every node, so that each can be told where it runs; others keep theirs."""
    known = {node.name for node in model.graph.node}
    for number, node in enumerate(model.graph.node):
        if not node.name:
            node.name = next(name for name in _names(f"{node.op_type}_{number}") if name not in known)
            known.add(node.name)
    return model


def graph_of(data: bytes, *, alone: bool = True) -> Graph:
    """The main graph of an ORT-format model, each node behind those that it needs.

    Args:
        alone: the runtime has nothing but this file, no definitions of operators.

    Raises:
        ArmletError: ``data`` is no ORT-format model, or a damaged one.
    """
    try:
        session = session_of(data)
        return _graph(session.Model(), orttables.arguments(session.KernelTypeStrResolver()), alone=alone)
    except ArmletError:
        raise
    # Flatbuffers follow whatever offsets a damaged file has.
    except Exception as error:
        raise ArmletError(
            f"the ORT-format model is damaged: {error}", hint="convert the ONNX model again", kind=Kind.INPUT
        ) from error


def _graph(model: Any, arguments: Mapping[str, orttables.Arguments], *, alone: bool) -> Graph:
    graph = model.Graph()
    constants = {text(tensor.Name()): _constant(tensor) for tensor in _all(graph, "Initializers")}
    fed = tuple(map(text, _all(graph, "Inputs")))
    values = {one.name: one for one in map(_value, _all(graph, "NodeArgs"))}
    for name, constant in constants.items():
        values.setdefault(name, Value(name=name, element=constant.element, shape=constant.shape))
    replaceable = set(fed) if model.IrVersion() >= _REPLACEABLE_FROM else set()
    types = {name: orttables.element(one.element) for name, one in constants.items()}
    types |= {text(one.Name()): orttables.types(one.Type())[0] for one in _all(graph, "NodeArgs") if one.Type()}
    return Graph(
        nodes=_sorted(tuple(_node(node, orttables.bound(node, arguments, types)) for node in _all(graph, "Nodes"))),
        values=values,
        constants={name: one for name, one in constants.items() if name not in replaceable},
        inputs=tuple(name for name in fed if name not in constants),
        outputs=tuple(map(text, _all(graph, "Outputs"))),
        opset=orttables.opsets(model).get(ONNX_DOMAIN, 0),
        # <domain>:<operator>:<version>
        resolved=frozenset(name.split(":")[-2] for name in arguments) if alone else None,
    )


def _names(base: str) -> Iterator[str]:
    yield base
    for number in itertools.count(2):
        yield f"{base}_{number}"


def _all(owner: Any, name: str) -> list[Any]:
    return list(items(owner, name))


def _value(entry: Any) -> Value:
    found = orttables.tensor(entry)
    if found is None:
        return Value(name=text(entry.Name()))
    dims = orttables.dims(found)
    shape = None if dims is None else tuple(size if isinstance(size, int) else None for size in dims)
    return Value(name=text(entry.Name()), element=found.ElemType(), shape=shape)


def _constant(tensor: Any) -> Constant:
    shape, element = tuple(_all(tensor, "Dims")), tensor.DataType()

    def numbers() -> list[Any]:
        helper, numpy = library("onnx.helper"), library("numpy")
        raw = numpy.asarray(tensor.RawDataAsNumpy(), numpy.uint8).tobytes()
        found: list[Any] = numpy.frombuffer(raw, helper.tensor_dtype_to_np_dtype(element)).tolist()
        return found

    return Constant(element=element, shape=shape, numbers=numbers)


def _node(node: Any, types: Mapping[str, str]) -> Node:
    domain, op = text(node.Domain()), text(node.OpType())
    domain = "" if domain == ONNX_DOMAIN else domain
    inputs, outputs = (tuple(map(text, _all(node, name))) for name in ("Inputs", "Outputs"))
    attributes = {text(one.Name()): _attribute(one) for one in _all(node, "Attributes")}
    return Node(
        index=node.Index(),
        name=text(node.Name()) or nameless(op, node.Index()),
        op=op,
        domain=domain,
        since=node.SinceVersion(),
        attributes=attributes,
        inputs=inputs,
        outputs=outputs,
        types=types,
        nested=tuple(map(text, _all(node, "ImplicitInputs"))),
    )


def _loose(value: bytes | None) -> str:
    """What a model calls text need not be any."""
    return (value or b"").decode(errors="replace")


def _attribute(one: Any) -> Any:
    kinds: Mapping[int, Callable[[], Any]] = {
        _FLOAT: one.F,
        _INT: one.I,
        _TEXT: lambda: _loose(one.S()),
        _FLOATS: lambda: _all(one, "Floats"),
        _INTS: lambda: _all(one, "Ints"),
        _TEXTS: lambda: [_loose(word) for word in _all(one, "Strings")],
        _TENSOR: lambda: _constant(one.T()),
        _TENSORS: lambda: [_constant(tensor) for tensor in _all(one, "Tensors")],
    }
    # Graphs inside are ONNX Runtime's CPU provider's own affair.
    return kinds.get(one.Type(), lambda: None)()


def _sorted(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    producers = {name: node for node in nodes for name in node.outputs if name}
    waiting: dict[int, set[int]] = {}
    followers: dict[int, list[Node]] = {}
    for node in nodes:
        needed = {producers[name].index for name in (*node.inputs, *node.nested) if name in producers}
        waiting[node.index] = needed
        for index in needed:
            followers.setdefault(index, []).append(node)
    ready = [node.index for node in nodes if not waiting[node.index]]
    by_index = {node.index: node for node in nodes}
    heapq.heapify(ready)
    found = []
    while ready:
        node = by_index[heapq.heappop(ready)]
        found.append(node)
        for follower in followers.get(node.index, ()):
            waiting[follower.index].discard(node.index)
            if not waiting[follower.index]:
                heapq.heappush(ready, follower.index)
    if len(found) != len(nodes):
        raise ArmletError("the model's graph has a cycle", hint="convert the ONNX model again", kind=Kind.INPUT)
    return tuple(found)
