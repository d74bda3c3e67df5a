"""Calls through the function table ``OrtApi``."""

from __future__ import annotations

import ctypes
from typing import Any, Callable

from ._api_table import FUNCTIONS, OrtErrorCode
from ._errors import OrtError

_C_TYPES: dict[str, Any] = {
    "s": ctypes.c_void_p,
    "p": ctypes.c_void_p,
    "v": None,
    "z": ctypes.c_size_t,
    "i": ctypes.c_int,
    "I": ctypes.c_uint32,
    "q": ctypes.c_int64,
    "f": ctypes.c_float,
    "?": ctypes.c_bool,
}


class Api:
    """The C functions as attributes, named as in the header; a failed call raises :class:`OrtError`.

    ctypes lets go of the GIL during each call.
    """

    def __init__(self, table: int) -> None:
        self._table = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in FUNCTIONS:
            raise AttributeError(name)
        index, signature = FUNCTIONS[name]
        result, _, arguments = signature.partition(":")
        prototype = ctypes.CFUNCTYPE(_C_TYPES[result], *(_C_TYPES[letter] for letter in arguments))
        function: Callable[..., Any] = prototype(self._table[index] or 0)
        if result == "s":
            function = self.checked(function)
        # The next access finds it in the instance and does not come here.
        setattr(self, name, function)
        return function

    def checked(self, function: Callable[..., Any]) -> Callable[..., None]:
        """``function``, which returns an ``OrtStatus*``, with failure turned into an exception."""

        def call(*arguments: Any) -> None:
            status = function(*arguments)
            if status:
                raise self._error_of(status)

        return call

    def out(self, c_type: Any, name: str, *arguments: Any) -> Any:
        """Call ``name``, whose last parameter is a pointer to one ``c_type``, and return what it wrote."""
        slot = c_type()
        getattr(self, name)(*arguments, ctypes.byref(slot))
        return slot.value

    def pointer(self, name: str, *arguments: Any) -> int:
        """Call ``name``, whose last parameter receives a new object, and return the object's address."""
        return self.out(ctypes.c_void_p, name, *arguments) or 0

    def size(self, name: str, *arguments: Any) -> int:
        """Call ``name``, whose last parameter receives a ``size_t``, and return it."""
        return int(self.out(ctypes.c_size_t, name, *arguments))

    def _error_of(self, status: int) -> OrtError:
        try:
            number = self.GetErrorCode(status)
            message = text_at(self.GetErrorMessage(status))
        finally:
            self.ReleaseStatus(status)
        try:
            return OrtError(OrtErrorCode(number), message)
        except ValueError:  # a code that came after the header this binding was made from
            return OrtError(OrtErrorCode.FAIL, f"{message} (error code {number})")


def text_at(address: int | None) -> str:
    """The zero-terminated UTF-8 text at ``address``; empty for NULL."""
    return ctypes.string_at(address).decode("utf-8", "replace") if address else ""
