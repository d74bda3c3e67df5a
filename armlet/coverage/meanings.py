"""What C++'s operators, and the functions and types of the vocabulary, do."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from armlet.coverage.containers import Dictionary, Items, Pair, Place, Status
from armlet.coverage.units import Info, PoolAttributes, auto_pad, input_edge
from armlet.coverage.values import Initializer


class Record:
    """One of the provider's own structures."""


def truth(value: Any) -> bool:
    """As C++ tests it: objects are true where there is one."""
    return bool(value) if isinstance(value, bool | int | float) else value is not None


def made(kind: str, given: list[Any]) -> Any:
    """A new object of a type, of the vocabulary or of the provider's own."""
    if kind == "OpNodeProtoHelper":
        (node,) = given
        return Info(node.node.attributes)
    if kind == "ProtoHelperNodeContext":
        return given[0]
    if kind == "PoolAttributes":
        return PoolAttributes(*given)
    if kind == "Initializer":
        return Initializer(given[0])
    if kind == "std::string":
        return given[0] if given else ""
    if kind == "std::pair":
        return Pair(*given[0])
    if kind == "std::unordered_map":
        return Dictionary(dict(given[0]))
    if kind in ("TensorShape", "TensorShapeVector", "ComputeTypeSet", "std::vector", "std::unordered_set"):
        return Items(given[0] if given else ())
    return Record()


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda first, second: (
        int(first / second) if isinstance(first, int) and isinstance(second, int) else first / second
    ),
    "%": lambda first, second: int(math.fmod(first, second)),
    "^": lambda first, second: int(first) ^ int(second),
    "&&": operator.and_,
    "||": operator.or_,
}


def _find(first: Place, _last: Place, wanted: Any) -> Place:
    return Place(wanted, first.entry.index(wanted)) if wanted in first.entry else Place(None, -1)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "std::find": _find,
    "std::abs": abs,
    "fabs": abs,
    "std::round": lambda number: math.floor(abs(number) + 0.5) * (1 if number >= 0 else -1),
    "graph_utils::GetNodeAttribute": lambda node, name: node.node.attributes.get(name),
    "graph_utils::GetInputEdge": lambda node, index: input_edge(node, index),
    "StringToAutoPadType": auto_pad,
    "Status::OK": Status,
    "gsl::narrow_cast": lambda number: number,
}
