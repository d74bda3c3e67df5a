"""The one error of a payload that is not taken."""

from __future__ import annotations

SIGNATURE = "signature"
"""Nobody who is trusted signed it."""
DAMAGED = "damaged"
"""Something is missing, cut short or changed."""
UNSAFE = "unsafe"
"""It holds what could reach out of its folder: paths, links, devices, names that stand in each other's way."""
FORM = "form"
"""It is another thing than a payload, or written in another form than payloads are."""
LIMIT = "limit"
"""It is larger than the stated limit."""
KEY = "key"
"""A key's file is none: the payload was not looked at."""
LIBRARY = "library"
"""This machine has no library that checks signatures: the payload was not looked at."""


class PayloadError(Exception):
    """A payload was refused.

    ``reason`` is one of this module's constants, ``what`` a sentence, ``hint`` what mends it.
    """

    def __init__(self, reason: str, what: str, hint: str) -> None:
        super().__init__(what)
        self.reason = reason
        self.what = what
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.what} ({self.hint})"
