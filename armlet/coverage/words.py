"""Why a provider left a node, in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Expression = Any


@dataclass(slots=True, kw_only=True)
class Guard:
    """A condition of the provider's sources that held, and made it leave the node."""

    file: str
    line: int
    test: Expression
    value: Callable[[Expression], Any]
    said: str = ""
    """What the sources themselves say."""
    within: Guard | None = None
    """The condition that made a function fail which this one asks."""

    def settle(self) -> None:
        """Puts it in words while its variables still hold what they held."""
        if not self.said:
            self.said = self.within.said if self.within else in_words(self.test, self.value)

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


def message(parts: list[Any]) -> str:
    """What the pieces of a C++ message come to."""
    return "".join(str(part) for part in parts)


def in_words(test: Expression, value: Callable[[Expression], Any]) -> str:
    return str(test)
