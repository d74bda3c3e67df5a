"""The one error of a store that does not do what it is asked to."""

from __future__ import annotations

from armlet_runtime.update.interface import Category


class StoreError(Exception):
    """The store does not do it. ``category`` is as in a report, ``reason`` a sentence, ``hint`` what mends it."""

    def __init__(self, category: Category, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.category: Category = category
        self.reason = reason
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.reason} ({self.hint})" if self.hint else self.reason
