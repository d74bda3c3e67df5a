"""The one exception of the binding."""

from __future__ import annotations

from typing import Iterable

from ._api_table import OrtErrorCode


class OrtError(Exception):
    """A call was refused, by ONNX Runtime or by this binding on its behalf.

    ``code`` is ONNX Runtime's error code; ``message`` is its text, or the binding's own.
    """

    def __init__(self, code: OrtErrorCode, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}"


class LibraryError(OrtError):
    """No usable ONNX Runtime library; the message names every place that was tried."""


def invalid(message: str) -> OrtError:
    """The error for a caller's mistake."""
    return OrtError(OrtErrorCode.INVALID_ARGUMENT, message)


def unsupported(message: str) -> OrtError:
    """The error for what ONNX Runtime can do and this binding cannot."""
    return OrtError(OrtErrorCode.NOT_IMPLEMENTED, message)


def quoted(names: Iterable[str]) -> str:
    """Names for a message."""
    return ", ".join(f'"{name}"' for name in names) or "none"
