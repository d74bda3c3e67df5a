"""A queue that never grows beyond its capacity, and says what it does instead."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Callable, Generic, Literal, TypeVar

T = TypeVar("T")
Policy = Literal["drop-oldest", "drop-newest", "block"]
POLICIES: tuple[Policy, ...] = ("drop-oldest", "drop-newest", "block")


class Full(Exception):
    """The item was not taken: there was no room, nor any until the deadline."""


class Empty(Exception):
    """Nothing came in time."""


class Closed(Exception):
    """Nothing goes in any more; or nothing is left and nothing will come."""


class BoundedQueue(Generic[T]):
    """First in, first out, for any number of threads.

    Where it is full, ``drop-oldest`` gives up the item that has waited longest, ``drop-newest`` the one that comes,
    and ``block`` waits for room until the deadline and then gives up the one that comes.
    ``condition`` and ``clock`` (seconds) are there for tests.
    """

    def __init__(
        self,
        capacity: int,
        policy: Policy,
        *,
        clock: Callable[[], float] = time.monotonic,
        condition: threading.Condition | None = None,
    ) -> None:
        if capacity < 1 or policy not in POLICIES:
            raise ValueError(f"no queue of {capacity} items with policy {policy!r}")
        self.capacity = capacity
        self.policy = policy
        self.accepted = 0
        self.dropped = 0
        """Items given up, whether they had been in the queue or not."""
        self._clock = clock
        self._changed = condition or threading.Condition()
        self._items: deque[T] = deque()
        self._closed = False

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: T, deadline: float | None = None) -> T | None:
        """Append an item; returns the one that was given up for it.

        ``deadline`` (of ``clock``) is for the policy ``block``; None does not wait. Raises :class:`Full`,
        :class:`Closed`.
        """
        with self._changed:
            if self.policy == "block" and deadline is not None:
                self._await_room(deadline)
            if self._closed:
                raise Closed
            evicted = None
            if len(self._items) >= self.capacity:
                self.dropped += 1
                if self.policy != "drop-oldest":
                    raise Full
                evicted = self._items.popleft()
            self._items.append(item)
            self.accepted += 1
            self._changed.notify_all()
            return evicted

    def get(self, timeout: float | None = None, stop: Callable[[], bool] = lambda: False) -> T:
        """Take the oldest item, waiting for one at most ``timeout`` seconds (None: as long as it takes).

        ``stop`` is asked whenever :meth:`wake` was called. Raises :class:`Empty` when the time is over or ``stop``
        says so, :class:`Closed`.
        """
        until = None if timeout is None else self._clock() + timeout
        with self._changed:
            while True:
                if stop():
                    raise Empty
                if self._items:
                    item = self._items.popleft()
                    self._changed.notify_all()
                    return item
                if self._closed:
                    raise Closed
                left = None if until is None else until - self._clock()
                if left is not None and left <= 0:
                    raise Empty
                self._changed.wait(left)

    def put_back(self, item: T) -> bool:
        """Put an item that was got where it was, at the front; False where its place has been taken."""
        with self._changed:
            if len(self._items) >= self.capacity:
                return False
            self._items.appendleft(item)
            self._changed.notify_all()
            return True

    def wake(self) -> None:
        """Have everyone who waits look again."""
        with self._changed:
            self._changed.notify_all()

    def discard(self, item: T) -> bool:
        """Take out this very item; False if it is not there."""
        with self._changed:
            for index, other in enumerate(self._items):
                if other is item:
                    del self._items[index]
                    self._changed.notify_all()
                    return True
        return False

    def clear(self) -> list[T]:
        """Take out all items."""
        with self._changed:
            items = list(self._items)
            self._items.clear()
            self._changed.notify_all()
            return items

    def close(self) -> None:
        """Take nothing more in; what is inside can still be got."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _await_room(self, deadline: float) -> None:
        while len(self._items) >= self.capacity and not self._closed:
            left = deadline - self._clock()
            if left <= 0:
                return
            self._changed.wait(left)
