"""Addresses of Python buffers, read-only ones included, which ctypes itself will not give."""

from __future__ import annotations

import ctypes
from typing import Any

_WRITABLE = 1  # PyBUF_WRITABLE; plain 0 asks for a contiguous, perhaps read-only, buffer


class _PyBuffer(ctypes.Structure):
    """``Py_buffer``, which has been the same since Python 2.6 and is part of the stable ABI since 3.11."""

    _fields_ = (
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    )


# Private function objects: setting argtypes on the shared ctypes.pythonapi would be seen by everyone.
_get_buffer = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(_PyBuffer), ctypes.c_int)(
    ("PyObject_GetBuffer", ctypes.pythonapi)
)
_release_buffer = ctypes.PYFUNCTYPE(None, ctypes.POINTER(_PyBuffer))(("PyBuffer_Release", ctypes.pythonapi))


class PinnedBuffer:
    """Keeps a C-contiguous buffer in place while native code uses it.

    ``address`` and ``nbytes`` say where it is. The buffer is let go when this object is.
    Raises :class:`BufferError` when the buffer is not contiguous, or not writable though ``writable`` is set.
    """

    __slots__ = ("_buffer", "_let_go", "address", "nbytes")

    def __init__(self, data: Any, *, writable: bool = False) -> None:
        # At interpreter shutdown module globals may be gone before the last buffer is.
        self._let_go = _release_buffer
        self._buffer = _PyBuffer()
        _get_buffer(data, self._buffer, _WRITABLE if writable else 0)
        self.address: int = self._buffer.buf or 0
        self.nbytes: int = self._buffer.len

    def __del__(self) -> None:
        # Does nothing where __init__ failed: obj is then NULL.
        self._let_go(self._buffer)
