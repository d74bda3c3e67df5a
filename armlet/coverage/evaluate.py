"""Runs a provider's lowered rules on a node, and tells which of its conditions made it say no."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from armlet.coverage.containers import (
    Items,
    Meaningless,
    Optional,
    Place,
    Refused,
    Status,
    Symbol,
    item,
)
from armlet.coverage.meanings import FUNCTIONS, OPERATORS, made, truth
from armlet.coverage.vocabulary import METHODS
from armlet.coverage.words import Guard, in_words, message

Expression = Any
Table = Mapping[str, Any]
"""Function -> file, parameters, body, as ``armlet/coverage/lower.py`` makes them."""


class _Left(Exception):
    """A statement that leaves: ``how`` is break or return."""

    def __init__(self, how: str, value: Any = None) -> None:
        super().__init__(how)
        self.how, self.value = how, value


@dataclass(slots=True)
class _Variable:
    """Where a function that is called may write."""

    holder: Any
    key: str

    def get(self) -> Any:
        return self.holder[self.key] if isinstance(self.holder, dict) else getattr(self.holder, self.key, None)

    def set(self, value: Any) -> None:
        if isinstance(self.holder, dict):
            self.holder[self.key] = value
        else:
            setattr(self.holder, self.key, value)


@dataclass(slots=True, kw_only=True)
class Rules:
    """The functions of one provider. ``members`` are what its checker's object holds (names that end in ``_``)."""

    functions: Table
    members: Mapping[str, Any] = field(default_factory=dict)
    reason: Guard | None = None
    """The last condition that made a function leave."""

    def call(self, name: str, arguments: list[Any]) -> Any:
        """What a function answers.

        Raises:
            Refused: it raises an exception. Meaningless: it does what C++ gives no meaning to.
        """
        function = self.functions[name]
        frame: dict[str, Any] = {}
        for (parameter, written), argument in zip(function["parameters"], arguments, strict=True):
            frame[parameter] = argument
            if written and isinstance(argument, _Variable):
                frame[parameter] = argument.get()
        try:
            _Frame(self, function["file"], frame).run(function["body"])
            answer = None
        except _Left as left:
            answer = left.value
        for (parameter, written), argument in zip(function["parameters"], arguments, strict=True):
            if written and isinstance(argument, _Variable):
                argument.set(frame[parameter])
        return answer


class _Frame:
    def __init__(self, rules: Rules, file: str, variables: dict[str, Any]) -> None:
        self.rules, self.file, self.variables = rules, file, variables

    # Statements.

    def run(self, body: list[Any]) -> None:
        for what, line, *rest in body:
            try:
                getattr(self, f"_do_{what.replace('-', '_')}")(line, *rest)
            except Meaningless as error:
                error.at(self.file, line)
                raise

    def _do_let(self, _line: int, name: str, value: Expression) -> None:
        self.variables[name] = self.value(value)

    def _do_unpack(self, _line: int, names: list[str], value: Expression) -> None:
        pair = self.value(value)
        self.variables.update(zip(names, (pair.first, pair.second), strict=True))

    def _do_set(self, _line: int, place: Expression, value: Expression) -> None:
        self._variable(place).set(self.value(value))

    def _do_do(self, _line: int, value: Expression) -> None:
        self.value(value)

    def _do_if(self, line: int, test: Expression, then: list[Any], rest: list[Any]) -> None:
        before = self.rules.reason
        chosen = truth(self.value(test))
        body = then if chosen else rest
        if chosen and body and body[-1][0] in ("break", "return"):
            # Where a function that was asked left for a reason of its own, that one tells more.
            inner = self.rules.reason if self.rules.reason is not before else None
            said = inner.said if inner else in_words(test, self.value)
            self.rules.reason = inner or Guard(file=self.file, line=line, said=said)
        self.run(body)

    def _do_for(self, _line: int, name: str, first: Expression, test: Expression, body: list[Any]) -> None:
        self.variables[name] = self.value(first)
        while truth(self.value(test)) and self._ran_through(body):
            self.variables[name] += 1

    def _do_each(self, _line: int, name: str, over: Expression, body: list[Any]) -> None:
        for one in self.value(over):
            self.variables[name] = one
            if not self._ran_through(body):
                return

    def _do_once(self, _line: int, body: list[Any]) -> None:
        self._ran_through(body)

    def _ran_through(self, body: list[Any]) -> bool:
        """False where a break ended it."""
        try:
            self.run(body)
        except _Left as left:
            if left.how != "break":
                raise
            return False
        return True

    def _do_switch(self, _line: int, subject: Expression, cases: list[Any]) -> None:
        value = self.value(subject)
        labels = [None if label is None else self.value(label[0]) for label, _ in cases]
        start = next((at for at, label in enumerate(labels) if label is not None and label == value), None)
        if start is None:
            start = next((at for at, (label, _) in enumerate(cases) if label is None), len(cases))
        for _, body in cases[start:]:
            if not self._ran_through(body):
                return

    def _do_break(self, _line: int) -> None:
        raise _Left("break")

    def _do_return(self, _line: int, value: Expression) -> None:
        raise _Left("return", self.value(value))

    def _do_refuse(self, line: int, test: Expression, said: list[Expression]) -> None:
        if truth(self.value(test)):
            text = message([self.value(part) for part in said])
            self.rules.reason = Guard(file=self.file, line=line, said=text)
            raise _Left("return", Status(text))

    def _do_pass_on(self, _line: int, value: Expression) -> None:
        status = self.value(value)
        if not status.IsOK():
            raise _Left("return", status)

    def _do_throw(self, line: int, said: list[Expression]) -> None:
        raise Refused(f"{message([self.value(part) for part in said])} ({self.file}:{line})")

    # Expressions.

    def value(self, made: Expression) -> Any:
        if not isinstance(made, list):
            return made
        what, *rest = made
        if what in OPERATORS:
            return self._operate(what, *rest)
        return getattr(self, f"_{what}")(*rest)

    def _operate(self, what: str, left: Expression, right: Expression) -> Any:
        first = self.value(left)
        if what == "&&":
            return truth(first) and truth(self.value(right))
        if what == "||":
            return truth(first) or truth(self.value(right))
        return OPERATORS[what](first, self.value(right))

    def _var(self, name: str) -> Any:
        return self.variables[name]

    def _member(self, name: str) -> Any:
        return self.rules.members[name]

    def _text(self, text: str) -> str:
        return text

    def _symbol(self, name: str) -> Symbol:
        return Symbol(name)

    def _function(self, name: str) -> str:
        return name

    def _list(self, parts: list[Expression]) -> Items:
        return Items(self.value(part) for part in parts)

    def _at(self, owner: Expression, index: Expression) -> Any:
        return item(self._pointed(owner), self.value(index))

    def _not(self, inner: Expression) -> bool:
        return not truth(self.value(inner))

    def _negative(self, inner: Expression) -> Any:
        return -self.value(inner)

    def _choose(self, test: Expression, first: Expression, second: Expression) -> Any:
        return self.value(first if truth(self.value(test)) else second)

    def _cast(self, target: str, inner: Expression) -> Any:
        value = self.value(inner)
        if target in ("float", "double", "auto"):
            return value
        return truth(value) if target == "bool" else int(value)

    def _address(self, place: Expression) -> Any:
        variable = self._variable(place)
        content = variable.get()
        # An object stands for its address as well; what is compared and written by value needs its place.
        return variable if content is None or isinstance(content, bool | int | float | str | Symbol) else content

    def _deref(self, inner: Expression) -> Any:
        pointed = self._pointed(inner)
        return pointed.get() if isinstance(pointed, _Variable) else pointed

    def _pointed(self, owner: Expression) -> Any:
        value = self.value(owner)
        if value is None:
            raise Meaningless("a read through a null pointer")
        if isinstance(value, Optional):
            return value.value()
        return value

    def _field(self, owner: Expression, name: str) -> Any:
        pointed = self.value(owner)
        if isinstance(pointed, Place):
            pointed = pointed.entry
        if isinstance(pointed, Optional):
            pointed = pointed.value()
        if pointed is None:
            raise Meaningless("a read through a null pointer")
        return getattr(pointed, name)

    def _method(self, owner: Expression, name: str, arguments: list[Expression]) -> Any:
        pointed = self.value(owner)
        if pointed is None or (isinstance(pointed, Place) and pointed.entry is None):
            raise Meaningless("a call through a null pointer")
        if isinstance(pointed, str):
            return {"empty": not pointed, "size": len(pointed)}[name]
        written = METHODS[name]
        given = [
            self._variable(part) if at in written and part[0] != "address" else self.value(part)
            for at, part in enumerate(arguments)
        ]
        return getattr(pointed, name)(*given)

    def _invoke(self, function: Expression, arguments: list[Expression]) -> Any:
        return self.rules.call(self.value(function), [self.value(part) for part in arguments])

    def _call(self, name: str, arguments: list[Expression]) -> Any:
        parameters = self.rules.functions[name]["parameters"]
        given = [
            self._variable(part)
            if written and isinstance(part, list) and part[0] in ("var", "field")
            else self.value(part)
            for (_, written), part in zip(parameters, arguments, strict=True)
        ]
        return self.rules.call(name, given)

    def _builtin(self, name: str, arguments: list[Expression]) -> Any:
        return FUNCTIONS[name](*(self.value(part) for part in arguments))

    def _new(self, kind: str, arguments: list[Expression]) -> Any:
        return made(kind, [self.value(part) for part in arguments])

    def _variable(self, place: Expression) -> _Variable:
        if place[0] == "var":
            return _Variable(self.variables, place[1])
        if place[0] == "field":
            return _Variable(self.value(place[1]), place[2])
        if place[0] == "deref":
            pointed: _Variable = self.value(place[1])
            return pointed
        raise TypeError(f"no place to write to: {place}")
