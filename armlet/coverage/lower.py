"""A provider's functions as JSON: statement by statement what the C++ says, for ``armlet/coverage/evaluate.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from armlet.coverage import vocabulary
from armlet.coverage.cpp import Function, Sources, Unlowerable, text_of, where
from armlet.coverage.expressions import BINARY, Expression, Expressions

Statement = list[Any]
"""``[what, line, ...]``."""


def lower(roots: Iterable[str], sources: Sources) -> dict[str, dict[str, Any]]:
    """The functions that ``roots`` name and all of the provider's that they call, by name.

    Raises:
        Unlowerable: one is missing, or something in it is not in the vocabulary.
    """
    wanted: list[Function] = []
    for root in roots:
        found = sources.method(root) if "::" in root else sources.function(root, "")
        if found is None:
            raise Unlowerable(f"no function {root} in the provider's sources")
        wanted.append(found)
    made: dict[str, dict[str, Any]] = {}
    origins: dict[str, Function] = {}
    while wanted:
        function = wanted.pop()
        if origins.setdefault(function.name, function) is not function:
            raise Unlowerable(f"{function.file}: {function.name} is also defined in {origins[function.name].file}")
        if function.name in made:
            continue
        if function.body.has_error:
            raise Unlowerable(f"{where(function.file, function.body)}: {function.name} cannot be parsed")
        body = _Body(function, sources)
        made[function.name] = {
            "file": function.file,
            "parameters": [[name, written] for name, written, _ in function.parameters],
            "body": body.block(function.body),
        }
        wanted += body.expressions.needed
    return dict(sorted(made.items()))


class _Body:
    def __init__(self, function: Function, sources: Sources) -> None:
        self.expressions = Expressions(function, sources)

    def block(self, node: Any) -> list[Statement]:
        """A statement, or those in braces."""
        if node.type != "compound_statement":
            return self._one(node)
        return [made for child in node.named_children for made in self._one(child)]

    def _one(self, node: Any) -> list[Statement]:
        if node.type == "comment":
            return []
        lowered = _STATEMENTS.get(node.type)
        if lowered is None:
            raise self.expressions.fail(node, f"no rule for {node.type}")
        return lowered(self, node)

    def _declaration(self, node: Any) -> list[Statement]:
        kind = text_of(node.child_by_field_name("type"))
        return [
            self._declared(node, kind, one)
            for one in node.children_by_field_name("declarator")
            if one.type != "comment"
        ]

    def _declared(self, node: Any, kind: str, place: Any) -> Statement:
        value: Expression
        if place.type == "init_declarator":
            inner, tree = place.child_by_field_name("declarator"), place.child_by_field_name("value")
            value = self._initial(node, kind, tree, pointer=inner.type == "pointer_declarator")
        elif place.type == "function_declarator":
            # ``Type name(argument);`` reads like a function that is declared.
            inner, arguments = place.child_by_field_name("declarator"), place.child_by_field_name("parameters")
            value = self.expressions.made(node, kind, [self._argument(one) for one in arguments.named_children])
        else:
            inner, pointer = place, place.type == "pointer_declarator"
            value = None if pointer else self.expressions.made(node, kind, [])
        if inner.type == "structured_binding_declarator":
            names = [text_of(one) for one in inner.named_children]
            self.expressions.locals.update(names)
            return ["unpack", _line(node), names, value]
        name = _innermost(inner)
        self.expressions.locals.add(name)
        if kind in self.expressions.sources.structs:
            self.expressions.records.add(name)
        return ["let", _line(node), name, value]

    def _initial(self, node: Any, kind: str, tree: Any, *, pointer: bool) -> Expression:
        if tree.type == "argument_list":
            return self.expressions.made(node, kind, self.expressions.each(tree.named_children))
        if tree.type != "initializer_list":
            return self.expressions.lower(tree)
        given = self.expressions.each(tree.named_children)
        plain = kind.partition("<")[0]
        if plain in vocabulary.TYPES:
            return ["new", plain, [["list", given]]]
        if pointer and len(given) == 1:
            return given[0]
        return self.expressions.made(node, kind, given)

    def _argument(self, node: Any) -> Expression:
        name = text_of(node)
        if name not in self.expressions.locals:
            raise self.expressions.fail(node, "an unknown name")
        return ["var", name]

    def _if(self, node: Any) -> list[Statement]:
        condition = node.child_by_field_name("condition")
        if condition.type != "condition_clause" or condition.child_by_field_name("initializer") is not None:
            raise self.expressions.fail(node, "a condition with a declaration")
        test = self.expressions.lower(condition.child_by_field_name("value"))
        then = self.block(node.child_by_field_name("consequence"))
        otherwise = node.child_by_field_name("alternative")
        rest = self.block(otherwise.named_children[0]) if otherwise is not None else []
        return [["if", _line(node), test, then, rest]]

    def _do(self, node: Any) -> list[Statement]:
        condition = node.child_by_field_name("condition")
        if text_of(condition) != "(false)":
            raise self.expressions.fail(condition, "a loop that may run again")
        return [["once", _line(node), self.block(node.child_by_field_name("body"))]]

    def _for(self, node: Any) -> list[Statement]:
        start, test, step = (node.child_by_field_name(part) for part in ("initializer", "condition", "update"))
        if start is None or start.type != "declaration" or test is None or step is None:
            raise self.expressions.fail(node, "a loop of an unknown form")
        (first,) = self._declaration(start)
        if step.type != "update_expression" or text_of(step.child_by_field_name("operator")) != "++":
            raise self.expressions.fail(step, "a loop that does not count up")
        if text_of(step.child_by_field_name("argument")) != first[2]:
            raise self.expressions.fail(step, "a loop that counts another variable")
        body = self.block(node.child_by_field_name("body"))
        return [["for", _line(node), first[2], first[3], self.expressions.lower(test), body]]

    def _each(self, node: Any) -> list[Statement]:
        name = _innermost(node.child_by_field_name("declarator"))
        over = self.expressions.lower(node.child_by_field_name("right"))
        self.expressions.locals.add(name)
        return [["each", _line(node), name, over, self.block(node.child_by_field_name("body"))]]

    def _switch(self, node: Any) -> list[Statement]:
        subject = self.expressions.lower(node.child_by_field_name("condition").child_by_field_name("value"))
        cases = []
        for case in node.child_by_field_name("body").named_children:
            if case.type == "comment":
                continue
            value = case.child_by_field_name("value")
            inside = [one for one in case.named_children if one != value]
            label = None if value is None else [self.expressions.lower(value)]
            cases.append([label, [made for one in inside for made in self._one(one)]])
        return [["switch", _line(node), subject, cases]]

    def _expression(self, node: Any) -> list[Statement]:
        if not node.named_children:
            return []
        inner = node.named_children[0]
        if _begins_with(inner) in vocabulary.IGNORED:
            return []
        line = _line(node)
        if inner.type == "assignment_expression":
            place, value = (self.expressions.lower(inner.child_by_field_name(side)) for side in ("left", "right"))
            operator = text_of(inner.child_by_field_name("operator")).removesuffix("=")
            if operator and operator not in BINARY:
                raise self.expressions.fail(inner, "no such assignment")
            return [["set", line, place, [operator, place, value] if operator else value]]
        if inner.type == "update_expression":
            place = self.expressions.lower(inner.child_by_field_name("argument"))
            return [["set", line, place, [text_of(inner.child_by_field_name("operator"))[0], place, 1]]]
        if inner.type == "call_expression":
            macro = text_of(inner.child_by_field_name("function"))
            arguments = [one for one in inner.child_by_field_name("arguments").named_children if one.type != "comment"]
            if macro in (vocabulary.RETURN_IF, vocabulary.RETURN_UNLESS):
                test, *said = self.expressions.each(arguments)
                test = ["not", test] if macro == vocabulary.RETURN_UNLESS else test
                return [["refuse", line, test, said]]
            if macro == vocabulary.RETURN_ERROR:
                return [["pass-on", line, self.expressions.lower(arguments[0])]]
            if macro in vocabulary.THROW:
                return [["throw", line, self.expressions.each(arguments)]]
        return [["do", line, self.expressions.lower(inner)]]

    def _return(self, node: Any) -> list[Statement]:
        value = self.expressions.lower(node.named_children[0]) if node.named_children else None
        return [["return", _line(node), value]]


_STATEMENTS: dict[str, Callable[[_Body, Any], list[Statement]]] = {
    "compound_statement": _Body.block,
    "declaration": _Body._declaration,
    "if_statement": _Body._if,
    "do_statement": _Body._do,
    "for_statement": _Body._for,
    "for_range_loop": _Body._each,
    "switch_statement": _Body._switch,
    "expression_statement": _Body._expression,
    "return_statement": _Body._return,
    "break_statement": lambda _body, node: [["break", _line(node)]],
}


def _line(node: Any) -> int:
    return int(node.start_point[0]) + 1


def _innermost(node: Any) -> str:
    while node.type not in ("identifier", "qualified_identifier"):
        node = node.named_children[-1]
    return text_of(node)


def _begins_with(node: Any) -> str:
    while node.named_children and node.type in ("binary_expression", "call_expression"):
        node = node.child_by_field_name("left" if node.type == "binary_expression" else "function")
    return text_of(node)
