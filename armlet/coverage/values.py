"""What the words of ``armlet/coverage/vocabulary.py`` mean: ONNX Runtime's objects, seen through a graph's plain data.

Methods and fields have ONNX Runtime's own names, as the lowered rules call them; None stands for a null pointer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from armlet.coverage.containers import Dictionary, Items, Optional, item
from armlet.coverage.elements import NAMES
from armlet.coverage.graph import Constant, Graph, Node

Method = Callable[..., Any]


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

    def InputDefs(self) -> Items:
        return Items(NodeArg(self.graph, name) for name in self.node.inputs)

    def OutputDefs(self) -> Items:
        return Items(NodeArg(self.graph, name) for name in self.node.outputs)

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

    def dims(self) -> Items:
        return Items(self.constant.shape)

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

    def DataAsSpan(self) -> Items:
        return Items(self.tensor.constant.numbers())

    def size(self) -> int:
        return len(self.tensor.constant.numbers())
