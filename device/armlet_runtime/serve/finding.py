"""Something that is in the way of serving, or looks as if it were."""

from __future__ import annotations

from typing import NamedTuple

WARNING, MODEL, INPUT, HOST = "warning", "model", "input", "host"
"""Served all the same; costs the models that it is about, or a provider; a mistake in file or payload; this machine
lacks something."""


class Finding(NamedTuple):
    """One line for the operator."""

    what: str
    """Begins with where it is: file, line and section, or a model's name."""
    kind: str = INPUT
    stops: bool = False
    """Whether nothing at all is served because of it."""

    def __str__(self) -> str:
        return f"warning: {self.what}" if self.kind == WARNING else self.what
