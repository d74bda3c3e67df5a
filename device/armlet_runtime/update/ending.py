"""How the way of an update ends, and what it looks out for meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from armlet_runtime.update.interface import Category, Desired, State


@dataclass(frozen=True)
class End:
    """What became of a wish; ``again``: trying once more may help."""

    state: State
    category: Category = ""
    reason: str = ""
    again: bool = False


class Ended(Exception):
    """The way ends here."""

    def __init__(self, end: End) -> None:
        super().__init__(end.reason)
        self.end = end


class Interrupted(Exception):
    """Something else comes first; what was reached so far stays."""


class Watch(Protocol):
    """What goes on around an update."""

    def cancelled(self) -> bool:
        """Whether a download should make room."""

    def stopping(self) -> bool:
        """Whether the service ends."""

    def newest(self) -> Desired | None:
        """The wish that counts now."""

    def pause(self, seconds: float) -> None:
        """Returns after that time, or earlier."""
