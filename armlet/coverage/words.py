"""Why a provider left a node, in words: made from the condition of its sources that held, and the values it saw."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from armlet.coverage.containers import Meaningless, Refused, Symbol
from armlet.coverage.elements import NAMES
from armlet.coverage.values import NodeArg

Expression = Any
Read = Callable[[Expression], Any]

_AXES = {
    3: ("batch", "number of channels", "length"),
    4: ("batch", "number of channels", "height", "width"),
}
_ROLES = {
    "x": "the input is",
    "A": "the first input is",
    "B": "the second input is",
    "C": "the third input is",
    "weight": "the weights are",
    "bias": "the bias is",
    "scale_tensor": "the scales are",
    "size_tensor": "the sizes are",
}
_NO_KNOWN_TYPES = "its types and scales are no combination that it computes in"
_COMPARISONS = frozenset({"==", "!=", "<", ">", "<=", ">="})
_NO_RULE = "it has no rule for this operator"


@dataclass(slots=True, kw_only=True)
class Guard:
    """A condition of the provider's sources that held, and made it leave the node. ``said`` is that in words."""

    file: str
    line: int
    said: str

    @property
    def place(self) -> str:
        return f"{self.file.rpartition('/')[2]}:{self.line}"


def message(parts: list[Any]) -> str:
    """What the pieces of a C++ message come to."""
    return "".join(str(part) for part in parts)


def told(guard: Guard | None) -> str:
    return _NO_RULE if guard is None else f"{guard.said} ({guard.place})"


def in_words(test: Expression, read: Read) -> str:
    """What held in a condition that held as a whole."""
    held = list(_that_hold(test, read))
    telling = [one for one in held if not _goes_without_saying(one)] or held
    return " and ".join(dict.fromkeys(_phrase(one, read) for one in telling))


def _goes_without_saying(test: Expression) -> bool:
    """That an optional input is there, which another condition is about."""
    compared = isinstance(test, list) and test[0] == "==" and _is_call(test[1], "size")
    return compared or _is_call(test, "Exists") or (isinstance(test, list) and test[0] == "var")


def _that_hold(test: Expression, read: Read) -> Iterator[Expression]:
    if isinstance(test, list) and test[0] == "||":
        yield from _that_hold(test[1] if _truth(test[1], read) else test[2], read)
    elif isinstance(test, list) and test[0] == "&&":
        yield from _that_hold(test[1], read)
        yield from _that_hold(test[2], read)
    else:
        yield test


def _truth(test: Expression, read: Read) -> bool:
    value = read(test)
    return bool(value) if isinstance(value, bool | int | float) else value is not None


def _phrase(test: Expression, read: Read) -> str:
    what, *rest = test
    if what == "not":
        return _denied(rest[0], read)
    if what in _COMPARISONS:
        return _compared(what, rest[0], rest[1], read)
    return f"{_text(test)} holds"


def _denied(inner: Expression, read: Read) -> str:
    """``!inner`` held."""
    if _is_call(inner, "has_dim_value"):
        return _free(inner[1], read)
    if _is_call(inner, "IsConstantInitializer"):
        return f"{_role(inner[3][0])} no constant"
    if isinstance(inner, list) and inner[0] == "call":
        arguments = ", ".join(_seen(one, read) for one in inner[2] if _is_seen(one))
        return f"{arguments}, which it does not take" if arguments else f"{inner[1]} does not hold"
    if isinstance(inner, list) and inner[0] == "var":
        return f"{_text(inner)} does not hold" if read(inner) is False else _missing(inner)
    return f"not {_text(inner)}"


def _compared(operator: str, left: Expression, right: Expression, read: Read) -> str:
    if right is None or left is None:
        return _missing(left if right is None else right)
    if right is False and operator == "==":
        return _denied(left, read)
    if _is_call(left, "count") and left[1][0] in ("var", "member"):
        owner = left[1][1]
        return (
            "the node in front of it is not one that it takes"
            if "supported" in owner
            else f"the node in front of it is a {_shown(read(left[3][0]))}"
        )
    if _is_call(left, "Domain"):
        return "the node in front of it keeps its layout"
    if isinstance(left, list) and left[0] == "symbol":
        return _seen(right, read)
    if _is_call(left, "dim_value") and not read(["method", left[1], "has_dim_value", []]):
        return _free(left[1], read)
    if _is_call(left, "UnitType"):
        return "the node in front of it is part of a quantised group"
    return _seen(left, read)


def _missing(place: Expression) -> str:
    name = place[1] if isinstance(place, list) and place[0] in ("var", "member") else ""
    if name.endswith("shape"):
        return "the shape of its input is not known"
    if name.endswith("type"):
        return "the type of its input is not known"
    if name.endswith("_edge"):
        return "no node is in front of it"
    if name in _ROLES:
        return f"{_ROLES[name]} no constant"
    return f"{_text(place)} is missing"


def _free(dimension: Expression, read: Read) -> str:
    """``dimension`` is ``shape.dim(n)``."""
    index = read(dimension[3][0])
    names = _AXES.get(read(["method", dimension[1], "dim_size", []]), ())
    return f"its {names[index]} is free" if index < len(names) else f"its dimension {index} is free"


def _is_call(one: Expression, method: str) -> bool:
    return isinstance(one, list) and one[0] == "method" and one[2] == method


def _is_seen(one: Expression) -> bool:
    return isinstance(one, list) and one[0] in ("method", "field", "var") and one[1] not in ("graph", "graph_viewer")


def _seen(one: Expression, read: Read) -> str:
    """``name is value``."""
    try:
        value = read(one)
    except (Meaningless, Refused):
        return _text(one)
    if _is_call(one, "elem_type"):
        return f"its input is {NAMES.get(value, 'of an unknown type')}"
    if _is_call(one, "dim_size") or (one[0] == "var" and one[1] == "rank"):
        return f"its input has {value} dimensions"
    if _is_call(one, "SinceVersion") or (one[0] == "var" and one[1] == "opset_version"):
        return f"it is version {value} of its operator"
    if isinstance(value, Symbol) and value.name.endswith("_invalid"):
        return _NO_KNOWN_TYPES
    return f"{_text(one)} is {_shown(value)}"


def _role(one: Expression) -> str:
    """Who ``one`` (``arg.Name()``) names."""
    owner = one[1] if _is_call(one, "Name") else one
    while isinstance(owner, list) and owner[0] in ("deref", "at", "field"):
        if owner[0] == "at":
            return f"input {owner[2]} is"
        owner = owner[1]
    name = owner[1] if isinstance(owner, list) and owner[0] == "var" else ""
    return _ROLES.get(name.removesuffix("_arg"), f"{name or 'an input'} is")


def _shown(value: Any) -> str:
    if isinstance(value, Symbol):
        return value.name.rpartition("::")[2]
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, NodeArg):
        return value.name
    return str(value)


def _text(one: Expression) -> str:
    """Near to the C++ that it was."""
    if not isinstance(one, list):
        return "null" if one is None else str(one)
    what, *rest = one
    if what in ("var", "member"):
        return str(rest[0]).removesuffix("_name").removesuffix("_str")
    if what in ("text", "symbol", "function"):
        return str(rest[0]).rpartition("::")[2] or '""'
    if what == "field":
        return str(rest[1]) if rest[1] not in ("first", "second", "node_arg") else _text(rest[0])
    if what == "method":
        inside = ", ".join(_text(part) for part in rest[2])
        return _text(rest[0]) if rest[1] in ("f", "i", "s") else f"{_text(rest[0])}.{rest[1]}({inside})"
    if what == "at":
        return f"{_text(rest[0])}[{_text(rest[1])}]"
    if what in ("deref", "address"):
        return _text(rest[0])
    if what == "not":
        return f"!{_text(rest[0])}"
    if what in ("call", "builtin", "new"):
        return f"{rest[0].rpartition('::')[2]}({', '.join(_text(part) for part in rest[1])})"
    if len(rest) == 2:
        return f"{_text(rest[0])} {what} {_text(rest[1])}"
    return str(what)
