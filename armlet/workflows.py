"""The files that CI services read. They are as they lie in ``armlet/ci``: nothing in them depends on the project."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "ci"


def text(service: str) -> str:
    """Of ``github`` or ``gitlab``."""
    return (FOLDER / f"{service}.yml").read_text(encoding="utf-8")
