"""The nodes of an ORT-format model, with the types that ONNX Runtime will look for a kernel by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

from armlet.errors import ArmletError, Kind
from armlet.onnx import ortfile
from armlet.onnx.libraries import library
from armlet.registrations import ONNX_DOMAIN

_FBS = "onnxruntime.tools.ort_format_model.ort_flatbuffers_py.fbs"
_TENSOR, _SEQUENCE, _MAP = 1, 2, 3
"""``TypeInfoValue`` of ``core/flatbuffers/schema/ort.fbs``."""
_INPUT = 0
_FIXED, _NAMED = 1, 2
"""``DimensionValueType``."""
_DEEPEST = 64
_MOST = 1_000_000
"""Nodes and values of all graphs together: a damaged file may hold one graph inside another many times over."""

Arguments = Mapping[str, Sequence[tuple[int, int]]]
"""Type constraint -> its (input or output, position) in the operator's definition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    domain: str
    operator: str
    since: int
    types: Mapping[str, str]
    """Type constraint -> the type that a kernel must take, where the node has such an input or output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """The main graph's inputs and outputs; all nodes, those of inner graphs included."""

    ir_version: int
    opsets: dict[str, int]
    inputs: tuple[str, ...]
    """Without those that have a constant to fall back on."""
    outputs: tuple[str, ...]
    types: Mapping[str, str]
    """Value of the main graph -> ``float`` for a tensor of them, ``seq(tensor(float))``."""
    shapes: Mapping[str, tuple[int | str, ...]]
    """Tensor of the main graph -> its shape: a number, or a name (empty: none)."""
    nodes: tuple[Node, ...]
    element_types: frozenset[str]
    """Of every tensor, as ONNX names them in lower case."""


def parsed(data: bytes, *, where: Path) -> Graph:
    """Reads an ORT-format model.

    Raises:
        ArmletError: it is damaged; ``where`` is its file.
    """
    try:
        return _Reader(data).graph(where)
    except ArmletError:
        raise
    except Exception as error:  # Whatever the flatbuffers' accessors stumble over.
        raise ArmletError(
            f"is a damaged ORT-format model ({type(error).__name__}: {error})",
            hint="convert the ONNX model again",
            kind=Kind.INPUT,
            where=str(where),
        ) from error


@dataclass(slots=True)
class _Reader:
    data: bytes
    nodes: list[Node] = field(default_factory=list)
    elements: set[str] = field(default_factory=set)
    arguments: dict[str, Arguments] = field(default_factory=dict)
    seen: int = 0

    def graph(self, where: Path) -> Graph:
        session = ortfile.session_of(self.data)
        resolver = session.KernelTypeStrResolver()
        if resolver is None:
            version = session.OrtVersion().decode()
            raise ArmletError(
                f"is in ORT format {version}, which does not hold what its operators' types are",
                hint="convert the ONNX model again, with this machine's onnxruntime",
                kind=Kind.INPUT,
                where=str(where),
            )
        self.arguments = _arguments(resolver)
        model = session.Model()
        main = model.Graph()
        types = self._walk(main, {}, 0)
        constants = {_text(one.Name()) for one in _items(main, "Initializers")}
        opsets = {_text(one.Domain()) or ONNX_DOMAIN: int(one.Version()) for one in _items(model, "OpsetImport")}
        return Graph(
            ir_version=int(model.IrVersion()),
            opsets=opsets,
            inputs=tuple(name for name in map(_text, _items(main, "Inputs")) if name not in constants),
            outputs=tuple(map(_text, _items(main, "Outputs"))),
            types=types,
            shapes={_text(one.Name()): _shape(one.Type()) for one in _items(main, "NodeArgs") if _is_tensor(one)},
            nodes=tuple(self.nodes),
            element_types=frozenset(self.elements),
        )

    def _walk(self, graph: Any, outer: Mapping[str, str], depth: int) -> dict[str, str]:
        if depth > _DEEPEST:
            raise ValueError(f"graphs inside graphs, {depth} deep")
        types = dict(outer)
        self.seen += 1 + len(types) + graph.NodesLength() + graph.NodeArgsLength()
        if self.seen > _MOST:
            raise ValueError(f"more than {_MOST} nodes and values")
        for one in _items(graph, "NodeArgs"):
            if one.Type() is not None:
                types[_text(one.Name())] = self._type(one.Type())
        for tensor in _items(graph, "Initializers"):
            types.setdefault(_text(tensor.Name()), self._element(tensor.DataType()))
        for node in _items(graph, "Nodes"):
            self.nodes.append(self._node(node, types))
            for attribute in _items(node, "Attributes"):
                inner = [attribute.G()] if attribute.G() is not None else [*_items(attribute, "Graphs")]
                for subgraph in inner:
                    self._walk(subgraph, types, depth + 1)
                if attribute.T() is not None:
                    self._element(attribute.T().DataType())
        return types

    def _node(self, node: Any, types: Mapping[str, str]) -> Node:
        domain, operator, since = _text(node.Domain()), _text(node.OpType()), int(node.SinceVersion())
        counts = [int(count) for count in _items(node, "InputArgCounts")]
        inputs = [_text(name) for name in _items(node, "Inputs")]
        outputs = [_text(name) for name in _items(node, "Outputs")]
        starts = [0, *accumulate(counts)]
        found: dict[str, str] = {}
        for constraint, places in self.arguments[f"{domain}:{operator}:{since}"].items():
            for role, position in places:
                if role == _INPUT:
                    given = position < len(counts) and counts[position] > 0
                    name = inputs[starts[position]] if given else ""
                else:
                    name = outputs[position] if position < len(outputs) else ""
                # The first that is there decides, as ONNX Runtime's kernel registry has it.
                if name:
                    found[constraint] = types[name]
                    break
        return Node(domain=domain or ONNX_DOMAIN, operator=operator, since=since, types=found)

    def _type(self, info: Any, depth: int = 0) -> str:
        if depth > _DEEPEST:
            raise ValueError(f"types inside types, {depth} deep")
        kind, value = info.ValueType(), info.Value()
        if kind == _TENSOR:
            return self._element(_init("TensorTypeAndShape", value).ElemType())
        if kind == _SEQUENCE:
            return f"seq({_whole(self._type(_init('SequenceType', value).ElemType(), depth + 1))})"
        if kind == _MAP:
            entry = _init("MapType", value)
            inner = _whole(self._type(entry.ValueType(), depth + 1))
            return f"map({self._element(entry.KeyType())},{inner})"
        raise ValueError(f"a type of the unknown kind {kind}")

    def _element(self, number: int) -> str:
        name = str(library("onnx").TensorProto.DataType.Name(int(number))).lower()
        self.elements.add(name)
        return name


def _arguments(resolver: Any) -> dict[str, Arguments]:
    return {
        _text(entry.OpId()): {
            _text(row.KernelTypeStr()): [(int(place.ArgType()), int(place.Index())) for place in _items(row, "Args")]
            for row in _items(entry, "KernelTypeStrArgs")
        }
        for entry in _items(resolver, "OpKernelTypeStrArgs")
    }


def _items(table: Any, name: str) -> Iterator[Any]:
    """The entries of a table's vector, one after the other."""
    for index in range(getattr(table, f"{name}Length")()):
        yield getattr(table, name)(index)


def _is_tensor(value: Any) -> bool:
    return value.Type() is not None and value.Type().ValueType() == _TENSOR


def _shape(info: Any) -> tuple[int | str, ...]:
    shape = _init("TensorTypeAndShape", info.Value()).Shape()
    dims = () if shape is None else [dim.Value() for dim in _items(shape, "Dim")]
    return tuple(_dim(dim) for dim in dims)


def _dim(value: Any) -> int | str:
    if value is not None and value.DimType() == _FIXED:
        return int(value.DimValue())
    return _text(value.DimParam()) if value is not None and value.DimType() == _NAMED else ""


def _init(name: str, table: Any) -> Any:
    made = getattr(library(f"{_FBS}.{name}"), name)()
    made.Init(table.Bytes, table.Pos)
    return made


def _whole(name: str) -> str:
    return name if "(" in name else f"tensor({name})"


def _text(value: bytes | None) -> str:
    return (value or b"").decode()
