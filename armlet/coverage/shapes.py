"""Shapes that ONNX Runtime does not know and that costs can be told by all the same: behind ``ai.onnx.ml:Scaler``, say.

Providers decide on what ONNX Runtime knows: these shapes are for counting alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from armlet.coverage.graph import Graph, Node, Shape, Value

Shapes = Sequence[Shape | None]
Rule = Callable[[Node, Shapes], Shape | None]
"""The shape of a node's first output, of those of its inputs; None where it cannot be told."""


def completed(graph: Graph) -> Graph:
    """The graph with every shape and size that follows from others by a rule of this module."""
    values = dict(graph.values)
    for node in graph.nodes:
        rule = _RULES.get(node.op)
        if rule is None or not node.outputs:
            continue
        found = rule(node, [_shape(graph, values, name) for name in node.inputs])
        name = node.outputs[0]
        value = values.get(name) or Value(name=name)
        values[name] = replace(value, shape=_merged(value.shape, found))
    return replace(graph, values=values)


def _shape(graph: Graph, values: Mapping[str, Value], name: str) -> Shape | None:
    constant = graph.constants.get(name)
    return constant.shape if constant else values[name].shape if name in values else None


def _merged(known: Shape | None, found: Shape | None) -> Shape | None:
    if known is None or found is None or len(known) != len(found):
        return found if known is None else known
    return tuple(other if size is None else size for size, other in zip(known, found, strict=True))


def _same(_node: Node, inputs: Shapes) -> Shape | None:
    return inputs[0] if inputs else None


def broadcast(*shapes: Shape | None) -> Shape | None:
    """The shape that all come to, a free dimension beside another one being that other one's unless it is 1."""
    known = [shape for shape in shapes if shape is not None]
    if not known or len(known) != len(shapes):
        return None
    rank = max(map(len, known))
    columns = zip(*((1,) * (rank - len(shape)) + shape for shape in known), strict=True)
    return tuple(_together(sizes) for sizes in columns)


def _together(sizes: Sequence[int | None]) -> int | None:
    return next((size for size in sizes if size not in (None, 1)), None if None in sizes else 1)


def _broadcast(_node: Node, inputs: Shapes) -> Shape | None:
    return broadcast(*inputs)


def _product(second: int) -> Rule:
    def shape(_node: Node, inputs: Shapes) -> Shape | None:
        left, right = inputs[0], inputs[second] if len(inputs) > second else None
        if left is None or right is None or min(len(left), len(right)) < 2:
            return None
        outer = broadcast(left[:-2], right[:-2])
        return None if outer is None else (*outer, left[-2], right[-1])

    return shape


def _gemm(node: Node, inputs: Shapes) -> Shape | None:
    left, right = inputs[:2]
    if left is None or right is None or (len(left), len(right)) != (2, 2):
        return None
    return left[1 if node.attributes.get("transA") else 0], right[0 if node.attributes.get("transB") else 1]


def _concat(node: Node, inputs: Shapes) -> Shape | None:
    known = [shape for shape in inputs if shape is not None]
    axis = node.attributes.get("axis")
    if not known or len(known) != len(inputs) or axis is None or len(set(map(len, known))) != 1:
        return None
    at = axis % len(known[0]) if known[0] else 0
    sizes = [shape[at] for shape in known]
    whole = None if None in sizes else sum(size or 0 for size in sizes)
    merged = [next((size for size in column if size is not None), None) for column in zip(*known, strict=True)]
    return (*merged[:at], whole, *merged[at + 1 :])


_SAME = (
    *("Abs", "Cast", "Ceil", "Clip", "DequantizeLinear", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid"),
    *("HardSwish", "Identity", "LeakyRelu", "Log", "LogSoftmax", "Neg", "Not", "QuantizeLinear", "Reciprocal", "Relu"),
    *("Round", "Selu", "Sigmoid", "Sign", "Softmax", "Softplus", "Softsign", "Sqrt", "Tanh"),
    *("Binarizer", "Imputer", "Normalizer", "Scaler"),
)
_OF_ALL = (
    "Add",
    "And",
    "Div",
    "Equal",
    "Greater",
    "Less",
    "Max",
    "Mean",
    "Min",
    "Mul",
    "Or",
    "Pow",
    "Sub",
    "Sum",
    "Where",
)

_RULES: Mapping[str, Rule] = {
    **dict.fromkeys(_SAME, _same),
    **dict.fromkeys(_OF_ALL, _broadcast),
    **dict.fromkeys(("MatMul", "MatMulInteger"), _product(1)),
    "QLinearMatMul": _product(3),
    "Gemm": _gemm,
    "Concat": _concat,
}
