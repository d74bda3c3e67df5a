"""C++ expressions as JSON: a list whose first item says what it is, or a plain number, text or null."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from armlet.coverage import vocabulary
from armlet.coverage.cpp import Function, Sources, Unlowerable, text_of, where

Expression = Any

BINARY = frozenset(["==", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/", "%", "^", "&&", "||"])
_ESCAPES = {r"\n": "\n", r"\t": "\t", r"\"": '"', r"\\": "\\"}


class Expressions:
    """Lowers the expressions of one function; ``needed`` collects the functions that they call."""

    def __init__(self, function: Function, sources: Sources) -> None:
        self.function, self.sources = function, sources
        self.locals = {name for name, _, _ in function.parameters}
        self.records = {name for name, _, kind in function.parameters if kind in sources.structs}
        """Locals of the provider's own structures."""
        self.needed: list[Function] = []

    def fail(self, node: Any, what: str) -> Unlowerable:
        shown = re.sub(r"\s+", " ", text_of(node))[:80]
        return Unlowerable(f"{where(self.function.file, node)}: {what}: {shown}")

    def lower(self, node: Any) -> Expression:
        """Raises Unlowerable: the vocabulary lacks it."""
        lowered = _KINDS.get(node.type)
        if lowered is None:
            raise self.fail(node, f"no rule for {node.type}")
        return lowered(self, node)

    def each(self, nodes: Sequence[Any]) -> list[Expression]:
        return [self.lower(node) for node in nodes if node.type != "comment"]

    def made(self, node: Any, name: str, arguments: list[Expression]) -> Expression:
        """A new object of a type."""
        plain = _without_template(name).removeprefix("const ").removeprefix("onnxruntime::")
        if plain in vocabulary.TYPES or plain in self.sources.structs:
            return ["new", plain, arguments]
        if plain in vocabulary.NUMBERS and len(arguments) <= 1:
            return arguments[0] if arguments else 0
        if not arguments and any(one.startswith(f"{plain}::") for one in self.sources.enums):
            return None
        raise self.fail(node, f"no such type in the vocabulary: {plain}")

    def _call(self, node: Any) -> Expression:
        callee, listed = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        arguments = self.each(listed.named_children)
        if callee.type == "template_function":
            return self._cast(node, callee, arguments)
        if callee.type == "field_expression":
            return self._method(node, callee, arguments)
        name = text_of(callee)
        if callee.type == "identifier" and name in vocabulary.TYPES | self.sources.structs:
            return self.made(node, name, arguments)
        found = self.sources.function(name, self.function.file)
        if found is not None:
            self.needed.append(found)
            return ["call", found.name, self._with_defaults(name, found, arguments)]
        plain = _without_template(name).removeprefix("onnxruntime::")
        if plain not in vocabulary.FUNCTIONS:
            raise self.fail(node, f"no such function in the vocabulary: {plain}")
        return ["builtin", plain, arguments]

    def _with_defaults(self, name: str, found: Function, arguments: list[Expression]) -> list[Expression]:
        missing = len(found.parameters) - len(arguments)
        trees = self.sources.defaults.get(name, [])[-missing:] if missing > 0 else []
        given = [*arguments, *self.each(trees)]
        if len(given) != len(found.parameters):
            raise self.fail(found.body, f"called with {len(arguments)} of {len(found.parameters)} arguments")
        return given

    def _method(self, node: Any, callee: Any, arguments: list[Expression]) -> Expression:
        owner, name = self.lower(callee.child_by_field_name("argument")), callee.child_by_field_name("field")
        plain = _without_template(text_of(name))
        if plain in vocabulary.METHODS:
            return ["method", owner, plain, arguments]
        if plain in vocabulary.FIELDS:
            # ``entry->second(...)``: a function that a map holds.
            return ["invoke", ["field", owner, plain], arguments]
        raise self.fail(node, f"no such method in the vocabulary: {plain}")

    def _cast(self, node: Any, callee: Any, arguments: list[Expression]) -> Expression:
        name = _without_template(text_of(callee))
        template = text_of(callee).partition("<")[2].rpartition(">")[0]
        if name in ("static_cast", "narrow_cast") and len(arguments) == 1 and template in vocabulary.NUMBERS:
            return ["cast", template, arguments[0]]
        if name in vocabulary.TYPES:
            return self.made(node, name, arguments)
        raise self.fail(node, "no such cast or template in the vocabulary")

    def _identifier(self, node: Any) -> Expression:
        name = text_of(node)
        if name in self.locals:
            return ["var", name]
        if name in self.sources.enums:
            return ["symbol", self.sources.enums[name]]
        if name in vocabulary.SYMBOLS:
            return _constant(vocabulary.SYMBOLS[name])
        if name.endswith("_"):
            return ["member", name]
        found = self.sources.function(name, self.function.file)
        if found is None:
            raise self.fail(node, "an unknown name")
        self.needed.append(found)
        return ["function", found.name]

    def _qualified(self, node: Any) -> Expression:
        name = text_of(node)
        if name in self.sources.enums:
            return ["symbol", self.sources.enums[name]]
        if name in vocabulary.SYMBOLS:
            return _constant(vocabulary.SYMBOLS[name])
        found = self.sources.method(name)
        if found is None:
            raise self.fail(node, "an unknown name")
        self.needed.append(found)
        return ["function", found.name]

    def _field(self, node: Any) -> Expression:
        owner, name = self.lower(node.child_by_field_name("argument")), text_of(node.child_by_field_name("field"))
        if name not in vocabulary.FIELDS and not (owner[0] == "var" and owner[1] in self.records):
            raise self.fail(node, f"no such field in the vocabulary: {name}")
        return ["field", owner, name]

    def _subscript(self, node: Any) -> Expression:
        (index,) = self.each(node.child_by_field_name("indices").named_children)
        return ["at", self.lower(node.child_by_field_name("argument")), index]

    def _binary(self, node: Any) -> Expression:
        operator = text_of(node.child_by_field_name("operator"))
        if operator not in BINARY:
            raise self.fail(node, f"no such operator: {operator}")
        return [operator, *(self.lower(node.child_by_field_name(side)) for side in ("left", "right"))]

    def _unary(self, node: Any) -> Expression:
        operator = text_of(node.child_by_field_name("operator"))
        inner = self.lower(node.child_by_field_name("argument"))
        if operator not in "!-":
            raise self.fail(node, f"no such operator: {operator}")
        if operator == "-" and isinstance(inner, int | float):
            return -inner
        return ["not" if operator == "!" else "negative", inner]

    def _pointer(self, node: Any) -> Expression:
        inner = self.lower(node.child_by_field_name("argument"))
        return ["address" if text_of(node.child_by_field_name("operator")) == "&" else "deref", inner]

    def _conditional(self, node: Any) -> Expression:
        parts = ("condition", "consequence", "alternative")
        return ["choose", *(self.lower(node.child_by_field_name(part)) for part in parts)]

    def _number(self, node: Any) -> Expression:
        text = text_of(node)
        try:
            return int(text, 0)
        except ValueError:
            return float(text.rstrip("fFlL"))

    def _string(self, node: Any) -> Expression:
        inner = "".join(text_of(child) for child in node.named_children)
        return ["text", re.sub(r"\\.", lambda found: _ESCAPES[found[0]], inner)]

    def _literal(self, node: Any) -> Expression:
        kind, value = (node.child_by_field_name(part) for part in ("type", "value"))
        if kind.is_missing:
            # A parameter's default in braces: the parser expects a type in front of them.
            return self.lower(value)
        return self.made(node, text_of(kind), self.each(value.named_children))

    def _cast_expression(self, node: Any) -> Expression:
        target = text_of(node.child_by_field_name("type"))
        if target not in vocabulary.NUMBERS:
            raise self.fail(node, "a cast to another type than a number")
        return ["cast", target, self.lower(node.child_by_field_name("value"))]


_KINDS: dict[str, Callable[[Expressions, Any], Expression]] = {
    "call_expression": Expressions._call,
    "identifier": Expressions._identifier,
    "qualified_identifier": Expressions._qualified,
    "field_expression": Expressions._field,
    "subscript_expression": Expressions._subscript,
    "binary_expression": Expressions._binary,
    "unary_expression": Expressions._unary,
    "pointer_expression": Expressions._pointer,
    "conditional_expression": Expressions._conditional,
    "cast_expression": Expressions._cast_expression,
    "number_literal": Expressions._number,
    "string_literal": Expressions._string,
    "concatenated_string": lambda self, node: [
        "text",
        "".join(self._string(child)[1] for child in node.named_children if child.type == "string_literal"),
    ],
    "true": lambda _self, _node: True,
    "false": lambda _self, _node: False,
    "null": lambda _self, _node: None,
    "nullptr": lambda _self, _node: None,
    "parenthesized_expression": lambda self, node: self.lower(node.named_children[0]),
    "initializer_list": lambda self, node: ["list", self.each(node.named_children)],
    "compound_literal_expression": Expressions._literal,
}


def _constant(value: object) -> Expression:
    if isinstance(value, dict):
        return ["symbol", value["symbol"]]
    return ["text", value] if isinstance(value, str) else value


def _without_template(name: str) -> str:
    return name.partition("<")[0].strip()
