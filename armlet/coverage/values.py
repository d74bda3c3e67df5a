"""What the words of ``armlet/coverage/vocabulary.py`` mean: ONNX Runtime's objects, seen through a graph's plain data.

Methods and fields have ONNX Runtime's own names, as the lowered rules call them; None stands for a null pointer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from armlet.coverage.elements import NAMES
from armlet.coverage.graph import Constant, Graph, Node

Method = Callable[..., Any]


class Meaningless(Exception):
    """The rules did what has no meaning: read through a null pointer, or beyond a list's end."""

    def at(self, file: str, line: int) -> None:
        """Says where, once: the innermost place counts."""
        if len(self.args) == 1:
            self.args = (*self.args, f"{file.rpartition('/')[2]}:{line}")

    def __str__(self) -> str:
        return " at ".join(map(str, self.args))


class Refused(Exception):
    """The rules raise an exception: ONNX Runtime refuses the model."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """An enumerator: equal to itself alone."""

    name: str


@dataclass(slots=True)
class Status:
    error: str = ""

    def IsOK(self) -> bool:
        return not self.error


@dataclass(slots=True)
class Dimension:
    known: int | None

    def has_dim_value(self) -> bool:
        return self.known is not None

    def dim_value(self) -> int:
        # What protobuf answers for a field that is not set.
        return self.known or 0


@dataclass(slots=True)
class ShapeProto:
    dims: Sequence[int | None]

    def dim_size(self) -> int:
        return len(self.dims)

    def dim(self, index: int | None = None) -> Any:
        every = [Dimension(size) for size in self.dims]
        return every if index is None else item(every, index)


@dataclass(slots=True)
class TypeProto:
    element: int

    def has_tensor_type(self) -> bool:
        return True

    def tensor_type(self) -> TypeProto:
        return self

    def has_elem_type(self) -> bool:
        return True

    def elem_type(self) -> int:
        return self.element


@dataclass(slots=True)
class NodeArg:
    graph: Graph
    name: str

    def Name(self) -> str:
        return self.name

    def Exists(self) -> bool:
        return bool(self.name)

    def Shape(self) -> ShapeProto | None:
        shape = self.graph.value(self.name).shape
        return None if shape is None else ShapeProto(shape)

    def TypeAsProto(self) -> TypeProto | None:
        element = self.graph.value(self.name).element
        return TypeProto(element) if element else None

    def Type(self) -> str:
        return f"tensor({NAMES[self.graph.value(self.name).element]})"


@dataclass(slots=True)
class Quantisation:
    scale: NodeArg
    zero_point: NodeArg | None


class Optional:
    """``std::optional``."""

    def __init__(self, content: Any) -> None:
        self.content = content

    def has_value(self) -> bool:
        return self.content is not None

    def value(self) -> Any:
        if self.content is None:
            raise Meaningless("an optional value that is not there")
        return self.content


@dataclass(slots=True)
class IODef:
    node_arg: NodeArg
    quant_param: Optional


@dataclass(slots=True)
class AttributeProto:
    content: Any

    def f(self) -> float:
        return float(self.content)

    def i(self) -> int:
        return int(self.content)

    def s(self) -> str:
        return str(self.content)


@dataclass(slots=True)
class Pair:
    first: Any
    second: Any


@dataclass(slots=True)
class Place:
    """An iterator. ``entry`` is None at the end."""

    entry: Any
    position: int


class Dictionary:
    """``std::unordered_map``; keys are compared by Python's equality."""

    def __init__(self, content: Mapping[Any, Any]) -> None:
        self.content = content

    def find(self, key: Any) -> Place:
        return Place(Pair(key, self.content[key]), 0) if key in self.content else self.end()

    def end(self) -> Place:
        return Place(None, -1)

    cend = end

    def count(self, key: Any) -> int:
        return int(key in self.content)

    def at(self, key: Any) -> Any:
        if key not in self.content:
            raise Meaningless(f"no {key} in a map")
        return self.content[key]


class Sequence_(list[Any]):
    """``std::vector``, ``std::unordered_set``, ``TensorShape``."""

    def size(self) -> int:
        return len(self)

    NumDimensions = size

    def Size(self) -> int:
        product = 1
        for size in self:
            product *= size
        return product

    def empty(self) -> bool:
        return not self

    def push_back(self, one: Any) -> None:
        self.append(one)

    def count(self, one: Any) -> int:
        return int(one in self)

    def begin(self) -> Place:
        return Place(self, 0)

    cbegin = begin

    def end(self) -> Place:
        return Place(None, -1)

    cend = end


class NodeView:
    """``Node``."""

    def __init__(self, graph: Graph, node: Node) -> None:
        self.graph, self.node = graph, node

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeView) and other.node is self.node

    def __hash__(self) -> int:
        return hash(self.node.index)

    def OpType(self) -> str:
        return self.node.op

    def Domain(self) -> str:
        return self.graph.moved.get(self.node.index, self.node.domain)

    def Name(self) -> str:
        return self.node.name

    def SinceVersion(self) -> int:
        return self.node.since

    def InputDefs(self) -> Sequence_:
        return Sequence_(NodeArg(self.graph, name) for name in self.node.inputs)

    def OutputDefs(self) -> Sequence_:
        return Sequence_(NodeArg(self.graph, name) for name in self.node.outputs)

    def GetAttributes(self) -> Dictionary:
        return Dictionary({name: AttributeProto(value) for name, value in self.node.attributes.items()})


@dataclass(slots=True)
class Edge:
    """``Node::EdgeEnd``."""

    node: NodeView

    def GetNode(self) -> NodeView:
        return self.node


@dataclass(slots=True)
class TensorProto:
    constant: Constant

    def dims(self) -> Sequence_:
        return Sequence_(self.constant.shape)

    def data_type(self) -> int:
        return self.constant.element


class GraphView:
    """``GraphViewer``."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def GetConstantInitializer(self, name: str, _outer: bool) -> TensorProto | None:
        constant = self.graph.constants.get(name)
        return None if constant is None else TensorProto(constant)

    def IsConstantInitializer(self, name: str, _outer: bool) -> bool:
        return name in self.graph.constants


@dataclass(slots=True)
class Initializer:
    tensor: TensorProto

    def DataAsSpan(self) -> Sequence_:
        return Sequence_(self.tensor.constant.numbers())

    def size(self) -> int:
        return len(self.tensor.constant.numbers())


def item(every: Sequence[Any], index: int) -> Any:
    if not 0 <= index < len(every):
        raise Meaningless(f"item {index} of {len(every)}")
    return every[index]
