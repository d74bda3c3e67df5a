"""All connections of a server: who is watched for what, and who has to go."""

from __future__ import annotations

import contextlib
import logging
import resource
import selectors
import socket
from typing import Iterator

from .connection import Connection
from .limits import Limits

log = logging.getLogger(__name__)
_OTHER_FILES = 32
"""Descriptors for all but clients: workers, payloads that are read, what the kernel is asked."""


def places(wanted: int) -> int:
    """How many connections there is room for, with as many that are turned away. Asks for more files if need be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * wanted + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        more = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (more, hard))
            soft = more
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    found = max(1, (soft - _OTHER_FILES) // 2)
    log.warning("at most %d connections instead of %d: this process may open %d files", found, wanted, soft)
    return found


class Crowd:
    """The selector, the connections in it, and a way to wake its thread. For that thread alone, but :meth:`wake`."""

    def __init__(self, limits: Limits) -> None:
        self.places = places(limits.connections)
        """Fewer than wanted where this process may not open so many files."""
        self._masks: dict[Connection, int] = {}
        self._selector = selectors.DefaultSelector()
        self._waker, self._alarm = socket.socketpair()
        self._waker.setblocking(False)
        self._alarm.setblocking(False)
        self._selector.register(self._waker, selectors.EVENT_READ, None)

    def __len__(self) -> int:
        return len(self._masks)

    def __iter__(self) -> Iterator[Connection]:
        return iter(list(self._masks))

    def __contains__(self, connection: object) -> bool:
        return connection in self._masks

    @property
    def full(self) -> bool:
        """Whether there is a place for one more to be served."""
        return len(self._masks) >= self.places

    @property
    def crammed(self) -> bool:
        """Whether there is not even a place for one more to be turned away."""
        return len(self._masks) >= 2 * self.places

    def events(self, seconds: float) -> list[tuple[Connection | socket.socket, int]]:
        """Who is ready; a bare socket is the listener."""
        ready: list[tuple[Connection | socket.socket, int]] = []
        for key, mask in self._selector.select(seconds):
            if key.fileobj is self._waker:
                with contextlib.suppress(BlockingIOError):
                    self._waker.recv(4096)
            else:
                ready.append((key.data, mask))
        return ready

    def wake(self) -> None:
        """End a wait for events; from any thread."""
        # A full pipe wakes as well, and a closed one has nobody to wake.
        with contextlib.suppress(OSError):
            self._alarm.send(b"\0")

    def listen_on(self, listener: socket.socket, wanted: bool) -> None:
        """Whether new clients are waited for."""
        if wanted:
            self._selector.register(listener, selectors.EVENT_READ, listener)
        else:
            with contextlib.suppress(KeyError):
                self._selector.unregister(listener)

    def add(self, connection: Connection) -> None:
        """One more."""
        self._masks[connection] = 0

    def watch(self, connection: Connection) -> None:
        """Wait for what its state asks for."""
        if connection not in self._masks:
            return
        wanted = 0
        if connection.wants_reading:
            wanted |= selectors.EVENT_READ
        if connection.state == "writing":
            wanted |= selectors.EVENT_WRITE
        before, self._masks[connection] = self._masks[connection], wanted
        if wanted == before:
            return
        if not before:
            self._selector.register(connection.socket, wanted, connection)
        elif wanted:
            self._selector.modify(connection.socket, wanted, connection)
        else:
            self._selector.unregister(connection.socket)

    def drop(self, connection: Connection) -> None:
        """Close it."""
        if self._masks.pop(connection, 0):
            self._selector.unregister(connection.socket)
        connection.state = "closed"
        connection.gone = True
        connection.socket.close()

    def who_gives_way(self, now: float, state: str = "") -> Connection | None:
        """Who is sent away for another, of those in a state where one is named: slow ones before idle ones."""
        found = [one for one in self._masks if one.gives_way(now) and state in ("", one.state)]
        return min(found, key=lambda one: (one.state == "idle" and one.asked, one.since), default=None)

    def drop_lingering(self) -> bool:
        """Whether there was one that has its answer; it has had the longest time to read it."""
        lingering = [one for one in self._masks if one.state == "lingering"]
        if lingering:
            self.drop(min(lingering, key=lambda one: one.since))
        return bool(lingering)

    def close(self) -> None:
        """Of all, the end."""
        for connection in self:
            self.drop(connection)
        self._selector.close()
        self._waker.close()
        self._alarm.close()
