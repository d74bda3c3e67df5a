"""A model in ORT format as the plain graph that coverage is predicted on: just what a runtime reads of it."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from armlet.coverage.graph import Constant, Graph, Node, Shape, Value
from armlet.errors import ArmletError, Kind
from armlet.onnx.libraries import library
from armlet.onnx.ortfile import session_of
from armlet.registrations import ONNX_DOMAIN

_FBS = "onnxruntime.tools.ort_format_model.ort_flatbuffers_py.fbs"
_REPLACEABLE_FROM = 4
"""IR version from which an initialiser that is also an input may be replaced by the caller."""
_FLOAT, _INT, _TEXT, _TENSOR, _GRAPH, _FLOATS, _INTS, _TEXTS, _TENSORS, _GRAPHS = range(1, 11)
"""Kinds of attributes (``AttributeType``)."""
_KNOWN_SIZE = 1
"""``DimensionValueType.VALUE``."""


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
        return _graph(session.Model(), _resolved(session) if alone else None)
    except ArmletError:
        raise
    # Flatbuffers follow whatever offsets a damaged file has.
    except Exception as error:
        raise ArmletError(
            f"the ORT-format model is damaged: {error}", hint="convert the ONNX model again", kind=Kind.INPUT
        ) from error


def _resolved(session: Any) -> frozenset[str]:
    entries = _all(session.KernelTypeStrResolver(), "OpKernelTypeStrArgs")
    # <domain>:<operator>:<version>
    return frozenset(_text(entry.OpId()).split(":")[-2] for entry in entries)


def _graph(model: Any, resolved: frozenset[str] | None) -> Graph:
    graph = model.Graph()
    constants = {_text(tensor.Name()): _constant(tensor) for tensor in _all(graph, "Initializers")}
    fed = tuple(map(_text, _all(graph, "Inputs")))
    values = {one.name: one for one in map(_value, _all(graph, "NodeArgs"))}
    for name, constant in constants.items():
        values.setdefault(name, Value(name=name, element=constant.element, shape=constant.shape))
    replaceable = set(fed) if model.IrVersion() >= _REPLACEABLE_FROM else set()
    opsets = {_text(entry.Domain()) or ONNX_DOMAIN: entry.Version() for entry in _all(model, "OpsetImport")}
    return Graph(
        nodes=_sorted(tuple(_node(node) for node in _all(graph, "Nodes"))),
        values=values,
        constants={name: one for name, one in constants.items() if name not in replaceable},
        inputs=tuple(name for name in fed if name not in constants),
        outputs=tuple(map(_text, _all(graph, "Outputs"))),
        opset=opsets.get(ONNX_DOMAIN, 0),
        resolved=resolved,
    )


def _names(base: str) -> Iterator[str]:
    yield base
    for number in itertools.count(2):
        yield f"{base}_{number}"


def _all(owner: Any, name: str) -> list[Any]:
    item: Callable[[int], Any] = getattr(owner, name)
    return [item(index) for index in range(getattr(owner, f"{name}Length")())]


def _text(data: bytes | None) -> str:
    return (data or b"").decode(errors="replace")


def _value(entry: Any) -> Value:
    kind = entry.Type()
    if kind is None or kind.ValueType() != library(f"{_FBS}.TypeInfoValue").TypeInfoValue.tensor_type:
        return Value(name=_text(entry.Name()))
    module = library(f"{_FBS}.TensorTypeAndShape").TensorTypeAndShape
    tensor, place = module(), kind.Value()
    tensor.Init(place.Bytes, place.Pos)
    shape = tensor.Shape()
    return Value(
        name=_text(entry.Name()),
        element=tensor.ElemType(),
        shape=None if shape is None else _shape(shape),
    )


def _shape(shape: Any) -> Shape:
    return tuple(
        dim.Value().DimValue() if dim.Value() is not None and dim.Value().DimType() == _KNOWN_SIZE else None
        for dim in _all(shape, "Dim")
    )


def _constant(tensor: Any) -> Constant:
    shape, element = tuple(_all(tensor, "Dims")), tensor.DataType()

    def numbers() -> list[Any]:
        helper, numpy = library("onnx.helper"), library("numpy")
        raw = numpy.asarray(tensor.RawDataAsNumpy(), numpy.uint8).tobytes()
        found: list[Any] = numpy.frombuffer(raw, helper.tensor_dtype_to_np_dtype(element)).tolist()
        return found

    return Constant(element=element, shape=shape, numbers=numbers)


def _node(node: Any) -> Node:
    domain, op = _text(node.Domain()), _text(node.OpType())
    domain = "" if domain == ONNX_DOMAIN else domain
    inputs, outputs = (tuple(map(_text, _all(node, name))) for name in ("Inputs", "Outputs"))
    attributes = {_text(one.Name()): _attribute(one) for one in _all(node, "Attributes")}
    constraints = _constraints(op, domain, node.SinceVersion(), inputs, outputs)
    return Node(
        index=node.Index(),
        name=_text(node.Name()),
        op=op,
        domain=domain,
        since=node.SinceVersion(),
        attributes=attributes,
        inputs=inputs,
        outputs=outputs,
        constraints=constraints,
        nested=tuple(map(_text, _all(node, "ImplicitInputs"))),
    )


def _attribute(one: Any) -> Any:
    kinds: Mapping[int, Callable[[], Any]] = {
        _FLOAT: one.F,
        _INT: one.I,
        _TEXT: lambda: _text(one.S()),
        _FLOATS: lambda: _all(one, "Floats"),
        _INTS: lambda: _all(one, "Ints"),
        _TEXTS: lambda: [_text(text) for text in _all(one, "Strings")],
        _TENSOR: lambda: _constant(one.T()),
        _TENSORS: lambda: [_constant(tensor) for tensor in _all(one, "Tensors")],
    }
    # Graphs inside are ONNX Runtime's CPU provider's own affair.
    return kinds.get(one.Type(), lambda: None)()


def _constraints(
    op: str, domain: str, since: int, inputs: tuple[str, ...], outputs: tuple[str, ...]
) -> dict[str, tuple[str, ...]]:
    defs = library("onnx.defs")
    try:
        schema = defs.get_schema(op, since, domain)
    except defs.SchemaError:
        # An operator of ONNX Runtime's own: as a rule its first parameter is the type of its first input.
        return dict.fromkeys(("T", "T1"), inputs[:1])
    found: dict[str, list[str]] = {}
    for formal, given in ((schema.inputs, inputs), (schema.outputs, outputs)):
        for at, name in enumerate(given if formal else ()):
            # The last parameter may stand for any number of tensors.
            found.setdefault(formal[min(at, len(formal) - 1)].type_str, []).append(name)
    return {name: tuple(tensors) for name, tensors in found.items()}


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
