"""Ownership of native objects."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Callable

from ._errors import invalid


class Handle:
    """One native object, released exactly once: when it is closed and no call is inside it.

    Use it as a context manager around each native call: entering yields the pointer. ``owner`` is the
    Python object whose collection closes the handle; ``parent`` is a handle that must outlive this one;
    ``keep`` is anything else that must, such as a buffer that the object points into.
    """

    def __init__(
        self,
        owner: object,
        name: str,
        pointer: int,
        release: Callable[[int], object],
        parent: Handle | None = None,
        keep: object = None,
    ) -> None:
        self._name = name
        self._pointer = pointer
        self._release = release
        self._parent = parent
        self._keep = keep
        self._process = os.getpid()
        self._users = 0
        self._closed = False
        self._released = False
        # Reentrant: a finalizer may run, in the thread that holds the lock, at any allocation.
        self._lock = threading.RLock()
        if parent is not None:
            parent.__enter__()
        # At exit, finalizers run newest first and before modules are torn down, unlike __del__.
        weakref.finalize(owner, self.close)

    def __enter__(self) -> int:
        with self._lock:
            if self._closed:
                raise invalid(f"this {self._name} is closed")
            self._users += 1
        return self._pointer

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
        self._release_if_idle()

    def close(self) -> None:
        """Release the object now, or as soon as the calls inside it return. May be called again."""
        with self._lock:
            self._closed = True
        self._release_if_idle()

    def _release_if_idle(self) -> None:
        with self._lock:
            if not self._closed or self._users or self._released:
                return
            self._released = True
        # A forked child has the object's memory but not its threads: releasing would wait for them forever.
        if self._process == os.getpid():
            self._release(self._pointer)
        self._keep = None
        if self._parent is not None:
            self._parent.__exit__()
