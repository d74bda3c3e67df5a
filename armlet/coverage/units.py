"""What ONNX Runtime's core makes of a node before a provider's rules see it: units, attributes read, pooling.

This restates code of ONNX Runtime's core; ``armlet/coverage/core.py`` binds it to that code's text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from armlet.coverage.containers import Items, Optional, Refused, Status, Symbol
from armlet.coverage.graph import Graph, Node
from armlet.coverage.values import Edge, IODef, NodeArg, NodeView, Quantisation

QDQ_GROUP, SINGLE_NODE = Symbol("NodeUnit::Type::QDQGroup"), Symbol("NodeUnit::Type::SingleNode")

_UNARY = frozenset(
    {"QLinearSigmoid", "QLinearAveragePool", "QLinearGlobalAveragePool", "QLinearLeakyRelu", "QLinearReduceMean"}
)
_BINARY = frozenset({"QLinearConv", "QLinearMatMul", "QLinearAdd", "QLinearMul"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A node between DequantizeLinear and QuantizeLinear, which providers see as one."""

    target: Node
    before: tuple[Node, ...]
    after: tuple[Node, ...]
    clip: Node | None = None
    """One behind the target that does nothing more than the QuantizeLinear that follows it."""

    @property
    def nodes(self) -> tuple[Node, ...]:
        return (*self.before, self.target, *([self.clip] if self.clip else []), *self.after)


class NodeUnit:
    """``NodeUnit``: a node, or a group around one, with its inputs and outputs as if it were in float."""

    def __init__(self, graph: Graph, node: Node, group: Group | None = None) -> None:
        self.graph, self.node, self.group = graph, node, group
        self.inputs, self.outputs = _of_group(graph, group) if group else _of_node(graph, node)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeUnit) and other.node is self.node

    def __hash__(self) -> int:
        return hash(self.node.index)

    def GetNode(self) -> NodeView:
        return NodeView(self.graph, self.node)

    def Inputs(self) -> Items:
        return Items(self.inputs)

    def Outputs(self) -> Items:
        return Items(self.outputs)

    def OpType(self) -> str:
        return self.node.op

    def Domain(self) -> str:
        return self.GetNode().Domain()

    def Name(self) -> str:
        return self.node.name

    def SinceVersion(self) -> int:
        return self.node.since

    def UnitType(self) -> Symbol:
        return QDQ_GROUP if self.group else SINGLE_NODE

    def ModelPath(self) -> str:
        return ""


def _of_group(graph: Graph, group: Group) -> tuple[list[IODef], list[IODef]]:
    incoming = {node.outputs[0]: node for node in group.before}
    outgoing = {node.inputs[0]: node for node in group.after}
    inputs = []
    for name in group.target.inputs:
        node = incoming.get(name)
        inputs.append(_plain(graph, name) if node is None else _of_qdq(graph, node, node.inputs[0]))
    outputs = []
    for name in (group.clip or group.target).outputs:
        node = outgoing.get(name)
        outputs.append(_plain(graph, name) if node is None else _of_qdq(graph, node, node.outputs[0]))
    return inputs, outputs


def _of_node(graph: Graph, node: Node) -> tuple[list[IODef], list[IODef]]:
    names, out = node.inputs, node.outputs
    if node.op in _UNARY:
        return [_defined(graph, names[0], names[1], names[2])], [_defined(graph, out[0], names[3], *names[4:5])]
    if node.op in _BINARY:
        inputs = [_defined(graph, *names[0:3]), _defined(graph, *names[3:6])]
        bias = [_plain(graph, names[8])] if len(names) == 9 else []
        return [*inputs, *bias], [_defined(graph, out[0], names[6], names[7])]
    if node.op == "DequantizeLinear":
        return [_of_qdq(graph, node, names[0])], [_plain(graph, out[0])]
    if node.op == "QuantizeLinear":
        return [_plain(graph, names[0])], [_of_qdq(graph, node, out[0])]
    return [_plain(graph, name) for name in names], [_plain(graph, name) for name in out]


def _of_qdq(graph: Graph, node: Node, tensor: str) -> IODef:
    return _defined(graph, tensor, node.inputs[1], *node.inputs[2:3])


def _defined(graph: Graph, tensor: str, scale: str, zero_point: str | None = None) -> IODef:
    # A name that is left out is an argument all the same, only one that does not exist.
    point = None if zero_point is None else NodeArg(graph, zero_point)
    return IODef(NodeArg(graph, tensor), Optional(Quantisation(NodeArg(graph, scale), point)))


def _plain(graph: Graph, name: str) -> IODef:
    return IODef(NodeArg(graph, name), Optional(None))


class Info:
    """``OpNodeProtoHelper``: the attributes of a node, defaults included."""

    def __init__(self, attributes: Mapping[str, Any]) -> None:
        self.attributes = attributes

    def GetAttr(self, name: str, out: Any) -> Status:
        if name not in self.attributes:
            return Status(f"no attribute {name}")
        out.set(self.attributes[name])
        return Status()

    def GetAttrs(self, name: str, out: Any) -> Status:
        if name not in self.attributes:
            return Status(f"no attribute {name}")
        out.set(Items(self.attributes[name]))
        return Status()

    def GetAttrOrDefault(self, name: str, *rest: Any) -> Any:
        value = self.attributes.get(name, rest[-1])
        if len(rest) == 2:
            rest[0].set(value)
        return value


_PADDINGS = ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")


def auto_pad(text: str) -> Symbol:
    """``StringToAutoPadType``."""
    if text and text not in _PADDINGS:
        raise Refused(f'an unknown auto_pad "{text}"')
    return Symbol(f"AutoPadType::{text or 'NOTSET'}")


class PoolAttributes:
    """``PoolAttributes``: what a pooling node asks for, in whole numbers."""

    def __init__(self, info: Info, _op: str, _since: int) -> None:
        asked = info.attributes
        if "kernel_shape" not in asked:
            raise Refused("a pooling without kernel_shape")
        self.kernel_shape = Items(asked["kernel_shape"])
        rank = len(self.kernel_shape)
        self.auto_pad = auto_pad(asked.get("auto_pad", "NOTSET"))
        self.ceil_mode = asked.get("ceil_mode", 0)
        self.count_include_pad = bool(asked.get("count_include_pad", 0))
        dilations: Sequence[int] = asked.get("dilations") or ()
        self.default_dilations = all(step == 1 for step in dilations)
        pads: Sequence[int] = asked.get("pads") or (0,) * (2 * rank)
        strides: Sequence[int] = asked.get("strides") or (1,) * rank
        whole = len(pads) == 2 * rank and len(strides) == rank and len(dilations or strides) == rank
        if not whole or any(
            size <= 0 or pads[at] >= size or pads[at + rank] >= size for at, size in enumerate(self.kernel_shape)
        ):
            raise Refused("a pooling whose pads, strides or dilations do not fit its kernel")


def input_edge(node: NodeView, index: int) -> Edge | None:
    """``graph_utils::GetInputEdge``."""
    names = node.node.inputs
    producer = node.graph.producers.get(names[index]) if index < len(names) else None
    return None if producer is None else Edge(NodeView(node.graph, producer))
