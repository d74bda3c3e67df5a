"""One client's connection, as seen from the thread that does all reading."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import deque

from .endpoints import Endpoint
from .http_message import Head, HttpError, parse_head
from .limits import Limits

_END = b"\r\n\r\n"
_ONE_READ = 64 << 10
IDLE_SECONDS = 1.0
"""A connection that has been idle for less may have its next request on the way."""
SLOW_SECONDS = 0.1
"""Clients on the device send a request at once: whoever has not in this time has to give way to others."""
SLOW_BYTES = 256 << 10
"""Per second. Nor does one who sends a body faster than this have to give way."""
# Linux takes 1024 parts in one call; no answer has so many but one with very many outputs.
_MOST_PARTS = 512


class Budget:
    """Bytes that all bodies may take together."""

    def __init__(self, total: int) -> None:
        self._lock = threading.Lock()
        self.free = total

    def take(self, amount: int) -> bool:
        """Whether there was room; if so it is taken until :meth:`give`."""
        with self._lock:
            if amount > self.free:
                return False
            self.free -= amount
            return True

    def give(self, amount: int) -> None:
        """Back what was taken."""
        with self._lock:
            self.free += amount


class Connection:
    """A non-blocking socket, what has come from it, and what has yet to go.

    ``state``: "idle" between requests, "head" and "body" while one comes in, "busy" while it is answered,
    "writing" while an answer goes out, "lingering" when the last has gone and the client's rest is thrown away.
    """

    def __init__(self, sock: socket.socket, limits: Limits, now: float) -> None:
        sock.setblocking(False)
        self.socket = sock
        self.limits = limits
        self.state = "idle"
        self.buffer = bytearray()
        self.head: Head | None = None
        self.body = bytearray()
        self.filled = 0
        self.out: deque[memoryview] = deque()
        self.keep_alive = True
        self.ended = False
        """The client has closed its side, and may still read."""
        self.gone = False
        """The connection is broken or closed."""
        self.deadline = now + limits.idle_seconds
        self.since = now
        """When it came into its state, except for "busy" and "writing"."""
        self.asked = False
        """Whether a request has been answered."""
        self.last_byte = now
        """When something last came or went."""
        self.endpoint: Endpoint | None = None
        self.parameters: tuple[str, ...] = ()
        self.taken = 0
        """Bytes of the budget."""
        self._scanned = 0

    def receive(self, now: float) -> None:
        """Take what is there. Sets ``ended`` at the end of the stream, and ``gone`` where it broke."""
        try:
            if self.state == "body" and self.filled < len(self.body):
                with memoryview(self.body) as view:
                    count = self.socket.recv_into(view[self.filled :])
                self.filled += count
            else:
                data = self.socket.recv(_ONE_READ)
                count = len(data)
                if self.state != "lingering":
                    self.buffer += data
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.gone = True
            return
        self.ended = not count
        self.last_byte = now

    def next_head(self, now: float) -> Head | None:
        """The head of the next request once it is complete. Raises :class:`HttpError`."""
        if self.state == "idle":
            # Some clients send an empty line after a body.
            while self.buffer[:2] == b"\r\n":
                del self.buffer[:2]
            if not self.buffer or self.buffer == b"\r":
                return None
            self.state, self.since, self._scanned = "head", now, 0
            self.deadline = now + self.limits.head_seconds
        end = self.buffer.find(_END, max(self._scanned - len(_END) + 1, 0), self.limits.head_bytes)
        if end < 0:
            self._scanned = len(self.buffer)
            if self._scanned >= self.limits.head_bytes:
                raise HttpError(431, f"request line and header fields take more than {self.limits.head_bytes} bytes")
            return None
        raw = bytes(self.buffer[:end])
        del self.buffer[: end + len(_END)]
        self.head = parse_head(raw, self.limits.head_fields)
        self.keep_alive = self.head.keep_alive
        return self.head

    def start_body(self, length: int, now: float) -> None:
        """Make room for a body, and put in what came along with the head."""
        self.state, self.deadline = "body", now + self.limits.body_seconds
        self.since = self.last_byte = now
        self.body = bytearray(length)
        self.filled = min(length, len(self.buffer))
        self.body[: self.filled] = self.buffer[: self.filled]
        del self.buffer[: self.filled]

    def send(self, now: float) -> bool:
        """Whether all of the answer has gone; sets ``gone`` where the client is."""
        while self.out:
            parts = [self.out[index] for index in range(min(len(self.out), _MOST_PARTS))]
            try:
                sent = self.socket.sendmsg(parts)
            except (BlockingIOError, InterruptedError):
                return False
            except OSError:
                self.gone = True
                self.out.clear()
                return True
            self.last_byte = now
            while self.out and sent >= self.out[0].nbytes:
                sent -= self.out.popleft().nbytes
            if sent:
                self.out[0] = self.out[0][sent:]
        return True

    def reset(self, now: float) -> None:
        """Ready for the next request."""
        self.state, self.head, self.endpoint = "idle", None, None
        self.body, self.filled = bytearray(), 0
        self.asked, self.since, self.deadline = True, now, now + self.limits.idle_seconds

    def linger(self, now: float) -> None:
        """Say that nothing more will come, and wait a little for the client to have read it.

        Closing at once would reset the connection where the client has sent more, and the answer be lost.
        """
        self.state, self.since, self.deadline = "lingering", now, now + 1.0
        self.buffer.clear()
        self.body = bytearray()
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)

    def expired(self, now: float) -> bool:
        """Whether it has been waited for long enough."""
        if self.state == "busy":
            return False
        stalled = self.state in ("body", "writing") and now - self.last_byte > self.limits.stall_seconds
        return stalled or (self.state != "writing" and now > self.deadline)

    def gives_way(self, now: float) -> bool:
        """Whether another client may have its place: it asks nothing, or takes its time."""
        waited = now - self.since
        if self.state == "idle":
            return waited > (IDLE_SECONDS if self.asked else SLOW_SECONDS)
        if self.state == "body":
            return waited > SLOW_SECONDS and self.filled < waited * SLOW_BYTES
        return self.state in ("head", "lingering") and waited > SLOW_SECONDS

    @property
    def cut_short(self) -> bool:
        """Whether the client has closed its side within a request."""
        return self.ended and not self.gone and self.state in ("head", "body")

    @property
    def over(self) -> bool:
        """Whether nothing more can come of it: its client is gone, or waits for no answer and asks nothing more."""
        return self.state != "busy" and (self.gone or (self.ended and self.state != "writing"))

    @property
    def wants_reading(self) -> bool:
        """While an answer is made only so much is read ahead."""
        return not self.ended and (self.state not in ("busy", "writing") or len(self.buffer) < self.limits.head_bytes)
