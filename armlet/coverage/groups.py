"""Groups of DequantizeLinear, an operator and QuantizeLinear, as ONNX Runtime's core forms them for its providers.

Only those matter that a provider takes as one or that keep an activation from being fused. This restates code of ONNX
Runtime's core; ``armlet/coverage/core.py`` binds it to that code's text.
"""

from __future__ import annotations

from collections.abc import Iterator

from armlet.coverage.elements import NUMBERS
from armlet.coverage.graph import Constant, Graph, Node
from armlet.coverage.units import Group

_LEAST_MOST = {NUMBERS["INT8"]: (-128, 127), NUMBERS["UINT8"]: (0, 255)}
_QUANTISE, _DEQUANTISE = "QuantizeLinear", "DequantizeLinear"

_CONVOLUTIONS = frozenset({"Conv", "ConvTranspose"})
_SAME_SCALE = frozenset({"MaxPool", "Resize", "Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Gather"})
_MAX_POOL_VERSION = 12
_UNARY = frozenset(
    {
        *("AveragePool", "GlobalAveragePool", "GlobalMaxPool", "LeakyRelu", "Relu", "HardSigmoid", "HardSwish"),
        *("Sigmoid", "Softmax", "LogSoftmax", "Tanh", "Clip", "Elu", "Gelu", "ReduceMean", "Slice"),
    }
)


def groups(graph: Graph) -> dict[int, Group]:
    """Index of a node -> the group that it belongs to."""
    found: dict[int, Group] = {}
    for node in graph.nodes:
        group = _around(graph, node)
        if group is not None:
            for member in group.nodes:
                found.setdefault(member.index, group)
    return found


def _around(graph: Graph, node: Node) -> Group | None:
    if node.op not in _CONVOLUTIONS | _SAME_SCALE | _UNARY or (
        node.op == "MaxPool" and node.since != _MAX_POOL_VERSION
    ):
        return None
    before = tuple(parent for parent in _parents(graph, node) if parent.op == _DEQUANTISE)
    clip = _clip_behind(graph, node)
    after = tuple(child for child in _children(graph, clip or node) if child.op == _QUANTISE)
    if clip is not None and (len(after) != 1 or not _made_redundant(graph, clip, after[0])):
        return None
    group = Group(target=node, before=before, after=after, clip=clip)
    return group if _fits(graph, group) else None


def _fits(graph: Graph, group: Group) -> bool:
    node, before, after = group.target, group.before, group.after
    asked = sum(map(bool, node.inputs)) if node.op in _CONVOLUTIONS else 1
    children = list(_children(graph, node))
    whole = (
        len(before) == asked
        and all(_only_feeds(graph, one, node) for one in before)
        and len(after) == sum(map(bool, node.outputs)) == len(children)
        and not _is_output(graph, node)
    )
    if not whole:
        return False
    kinds = [graph.value(one.inputs[0]).element for one in before]
    made = graph.value(after[0].outputs[0]).element
    if kinds[0] != made:
        return False
    if node.op in _SAME_SCALE:
        return group.clip is None and _same_scale(graph, before[0], after[0])
    if node.op in _CONVOLUTIONS:
        mixed = made == NUMBERS["INT8"] and kinds[1] != made
        return not mixed and (len(kinds) < 3 or kinds[2] == NUMBERS["INT32"])
    return True


def _parents(graph: Graph, node: Node) -> Iterator[Node]:
    for name in node.inputs:
        if name in graph.producers:
            yield graph.producers[name]


def _children(graph: Graph, node: Node) -> Iterator[Node]:
    for name in node.outputs:
        yield from graph.consumers.get(name, ())


def _is_output(graph: Graph, node: Node) -> bool:
    return any(name in graph.outputs for name in node.outputs)


def _only_feeds(graph: Graph, node: Node, target: Node) -> bool:
    return not _is_output(graph, node) and list(_children(graph, node)) == [target]


def _clip_behind(graph: Graph, node: Node) -> Node | None:
    children = list(_children(graph, node))
    if len(children) != 1 or children[0].op not in ("Relu", "Clip"):
        return None
    clip = children[0]
    return clip if len(list(_children(graph, clip))) == 1 and not _is_output(graph, clip) else None


def _scalar(graph: Graph, name: str) -> float | None:
    constant = graph.constants.get(name)
    return constant.numbers()[0] if constant and _is_scalar(constant) else None


def _is_scalar(constant: Constant) -> bool:
    return constant.shape in ((), (1,))


def _made_redundant(graph: Graph, clip: Node, after: Node) -> bool:
    scale = _scalar(graph, after.inputs[1])
    element = graph.value(after.outputs[0]).element
    zero = _scalar(graph, after.inputs[2]) if len(after.inputs) > 2 and after.inputs[2] else 0
    if scale is None or zero is None or element not in _LEAST_MOST:
        return False
    least, most = _LEAST_MOST[element]
    if clip.op == "Relu":
        return zero == least
    bounds = _bounds(graph, clip)
    return bounds is not None and round(bounds[0] / scale) + zero <= least and round(bounds[1] / scale) + zero >= most


def _bounds(graph: Graph, clip: Node) -> tuple[float, float] | None:
    lowest, highest = -3.4028234663852886e38, 3.4028234663852886e38
    if clip.since < 11:
        return clip.attributes.get("min", lowest), clip.attributes.get("max", highest)
    found = []
    for at, otherwise in ((1, lowest), (2, highest)):
        name = clip.inputs[at] if len(clip.inputs) > at else ""
        number = _scalar(graph, name) if name else otherwise
        if number is None:
            return None
        found.append(number)
    return found[0], found[1]


def _same_scale(graph: Graph, before: Node, after: Node) -> bool:
    for at in (1, 2):
        if len(before.inputs) != 3 or len(after.inputs) != 3:
            return False
        first, second = graph.constants.get(before.inputs[at]), graph.constants.get(after.inputs[at])
        if first is None or second is None or not (_is_scalar(first) and _is_scalar(second)):
            return False
        if first.element != second.element or list(first.numbers()) != list(second.numbers()):
            return False
    return True
