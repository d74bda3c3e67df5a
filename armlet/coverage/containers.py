"""The C++ library's and ONNX Runtime's small types, as the lowered rules use them; None stands for a null pointer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


class Meaningless(Exception):
    """The rules did what has no meaning: read through a null pointer, or beyond a list's end."""

    def at(self, file: str, line: int) -> None:
        """Says where, once: the innermost place counts."""
        if len(self.args) == 1:
            self.args = (*self.args, f"{file.rpartition('/')[2]}:{line}")

    def __str__(self) -> str:
        return " at ".join(map(str, self.args))


class Refused(Exception):
    """The rules raise an exception: ONNX Runtime refuses the model."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """An enumerator: equal to itself alone."""

    name: str


@dataclass(slots=True)
class Status:
    error: str = ""

    def IsOK(self) -> bool:
        return not self.error


class Optional:
    """``std::optional``."""

    def __init__(self, content: Any) -> None:
        self.content = content

    def has_value(self) -> bool:
        return self.content is not None

    def value(self) -> Any:
        if self.content is None:
            raise Meaningless("an optional value that is not there")
        return self.content


@dataclass(slots=True)
class Pair:
    first: Any
    second: Any


@dataclass(slots=True)
class Place:
    """An iterator. ``entry`` is None at the end."""

    entry: Any
    position: int


class Dictionary:
    """``std::unordered_map``; keys are compared by Python's equality."""

    def __init__(self, content: Mapping[Any, Any]) -> None:
        self.content = content

    def find(self, key: Any) -> Place:
        return Place(Pair(key, self.content[key]), 0) if key in self.content else self.end()

    def end(self) -> Place:
        return Place(None, -1)

    cend = end

    def count(self, key: Any) -> int:
        return int(key in self.content)

    def at(self, key: Any) -> Any:
        if key not in self.content:
            raise Meaningless(f"no {key} in a map")
        return self.content[key]


class Items(list[Any]):
    """``std::vector``, ``std::unordered_set``, ``TensorShape``."""

    def size(self) -> int:
        return len(self)

    NumDimensions = size

    def Size(self) -> int:
        product = 1
        for size in self:
            product *= size
        return product

    def empty(self) -> bool:
        return not self

    def push_back(self, one: Any) -> None:
        self.append(one)

    def count(self, one: Any) -> int:
        return int(one in self)

    def begin(self) -> Place:
        return Place(self, 0)

    cbegin = begin

    def end(self) -> Place:
        return Place(None, -1)

    cend = end


def item(every: Sequence[Any], index: int) -> Any:
    if not 0 <= index < len(every):
        raise Meaningless(f"item {index} of {len(every)}")
    return every[index]
