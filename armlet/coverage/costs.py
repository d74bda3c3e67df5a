"""What a node costs: multiply-accumulates, parameters, and the memory of what it makes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from armlet.coverage.elements import bytes_of
from armlet.coverage.graph import Graph, Node
from armlet.coverage.predict import Placement

Sizes = tuple[int, ...]

INPUTS = "the inputs"
"""In place of a node: most is there before the first one."""


class _UnknownShape(Exception):
    """Not even a tensor's number of dimensions is known."""


def macs(graph: Graph, node: Node) -> int | None:
    """Multiply-accumulates of one run; 0 for operators that have none to speak of, None where they depend on a shape
    that is not known. A free dimension counts as 1."""
    count = _MACS.get(node.op)
    try:
        return count(graph, node) if count and node.outputs and node.inputs else 0
    except _UnknownShape:
        return None


def parameters(graph: Graph, node: Node) -> int:
    """Elements of the constants that it uses; the scales and zero points of a quantised operator among them."""
    return sum(math.prod(graph.constants[name].shape) for name in set(node.inputs) & graph.constants.keys())


def all_parameters(graph: Graph) -> int:
    """Elements of all constants that nodes use, each once."""
    used = {name for node in graph.nodes for name in (*node.inputs, *node.nested)}
    return sum(math.prod(constant.shape) for name, constant in graph.constants.items() if name in used)


def bytes_made(graph: Graph, name: str) -> int:
    """What a tensor takes; a free dimension counts as 1, an unknown shape as nothing."""
    value = graph.value(name)
    return 0 if value.shape is None else bytes_of(value.element, math.prod(size or 1 for size in value.shape))


def peak_bytes(graph: Graph, placements: Sequence[Placement]) -> tuple[int, str]:
    """The most that tensors take at one time, and the node during which they do.

    Each tensor has memory of its own from the node that makes it to the last one that uses it; the model's inputs and
    outputs are among them, constants are not. What is fused does not make the tensor in between. Nothing is computed in
    place, and kernels have no memory of their own: the truth may be on either side.
    """
    inside, head = never_made(graph, placements), heads(placements)
    # What is one with others needs its inputs until the last of them has made its output.
    done = {head[node.index]: at for at, node in enumerate(graph.nodes)}
    last: dict[str, int] = {}
    for node in graph.nodes:
        for name in (*node.inputs, *node.nested):
            if name and name not in graph.constants:
                last[name] = max(last.get(name, 0), done[head[node.index]])
    last.update(dict.fromkeys(graph.outputs, len(graph.nodes)))
    alive = {name: bytes_made(graph, name) for name in graph.inputs}
    peak, where = sum(alive.values()), INPUTS
    for at, node in enumerate(graph.nodes):
        alive.update({name: bytes_made(graph, name) for name in node.outputs if name and name not in inside})
        if sum(alive.values()) > peak:
            peak, where = sum(alive.values()), node.name
        for name in [name for name in alive if last.get(name, at) <= at]:
            del alive[name]
    return peak, where


def heads(placements: Sequence[Placement]) -> dict[int, int]:
    """Index of a node -> that of the node whose kernel does its work."""
    return {one.node.index: one.node.index if one.fused_into is None else one.fused_into for one in placements}


def never_made(graph: Graph, placements: Sequence[Placement]) -> set[str]:
    """Tensors that only nodes use which are one with the node that makes them."""
    head = heads(placements)
    found = set()
    for one in placements:
        for name in one.node.outputs:
            users = graph.consumers.get(name, [])
            if (
                users
                and name not in graph.outputs
                and all(head[user.index] == head[one.node.index] and user is not one.node for user in users)
            ):
                found.add(name)
    return found


def unknown(graph: Graph, name: str) -> bool:
    """Whether not even a tensor's number of dimensions is known, so that it counts for nothing."""
    return graph.value(name).shape is None


def _sizes(graph: Graph, name: str) -> Sizes:
    shape = graph.value(name).shape
    if shape is None:
        raise _UnknownShape
    return tuple(size or 1 for size in shape)


def _convolution(weights: int) -> Callable[[Graph, Node], int]:
    def count(graph: Graph, node: Node) -> int:
        kernel = _sizes(graph, node.inputs[weights])
        return math.prod(_sizes(graph, node.outputs[0])) * math.prod(kernel[1:])

    return count


def _transposed_convolution(graph: Graph, node: Node) -> int:
    return math.prod(_sizes(graph, node.inputs[0])) * math.prod(_sizes(graph, node.inputs[1])[1:])


def _product(first: int, transposed: str = "") -> Callable[[Graph, Node], int]:
    def count(graph: Graph, node: Node) -> int:
        left = _sizes(graph, node.inputs[first])
        if not left:
            return 0
        inner = left[0] if transposed and node.attributes.get(transposed) else left[-1]
        return math.prod(_sizes(graph, node.outputs[0])) * inner

    return count


def _recurrent(graph: Graph, node: Node) -> int:
    x, w, r = (_sizes(graph, name) for name in node.inputs[:3])
    if len(x) != 3 or len(w) != 3 or len(r) != 3:
        return 0
    return x[0] * x[1] * w[0] * (w[1] * w[2] + r[1] * r[2])


_MACS: Mapping[str, Callable[[Graph, Node], int]] = {
    **dict.fromkeys(("Conv", "FusedConv", "NhwcConv", "NhwcFusedConv", "ConvInteger"), _convolution(1)),
    "QLinearConv": _convolution(3),
    "ConvTranspose": _transposed_convolution,
    **dict.fromkeys(("MatMul", "FusedMatMul", "MatMulInteger", "QLinearMatMul", "MatMulIntegerToFloat"), _product(0)),
    **dict.fromkeys(("Gemm", "FusedGemm", "QGemm"), _product(0, "transA")),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), _recurrent),
}
