"""What systemd is told: ready, stopping, and that the service makes progress."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from typing import Callable, Mapping, MutableMapping, Sequence


def notify(message: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Send ``READY=1`` and the like; whether there was someone to send it to."""
    where = environment.get("NOTIFY_SOCKET", "")
    if where[:1] not in ("/", "@"):
        return False
    # Linux' abstract names begin with NUL, which an environment cannot hold.
    address = "\0" + where[1:] if where[0] == "@" else where
    with contextlib.suppress(OSError, ValueError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        # A full queue must not hold up who notifies.
        sock.setblocking(False)
        sock.sendto(message.encode("utf-8"), address)
        return True
    return False


def ready(status: str) -> None:
    """Everything is up; ``status`` is one line for ``systemctl status``."""
    notify(f"READY=1\nSTATUS={status}")


def stopping(status: str) -> None:
    """The end has begun."""
    notify(f"STOPPING=1\nSTATUS={status}")


def extend_start(seconds: float) -> None:
    """Loading goes on: do not give up before so many seconds from now."""
    notify(f"EXTEND_TIMEOUT_USEC={int(seconds * 1e6)}")


def watchdog_seconds(environment: Mapping[str, str] = os.environ) -> float | None:
    """How long systemd waits for a sign of life; None where it does not wait for this process."""
    meant_for = environment.get("WATCHDOG_PID", str(os.getpid()))
    try:
        seconds = int(environment.get("WATCHDOG_USEC", "")) / 1e6
    except ValueError:
        return None
    return seconds if seconds > 0 and meant_for == str(os.getpid()) else None


def forget(environment: MutableMapping[str, str] = os.environ) -> None:
    """So that children do not speak for the service. Call it once ``watchdog_seconds`` has been read."""
    for name in ("WATCHDOG_PID", "WATCHDOG_USEC"):
        environment.pop(name, None)


class Watchdog:
    """Sends a sign of life only while every part makes progress.

    ``parts``: name -> whether it does. Call :meth:`feed` from a loop that itself is worth watching, at least
    once per :attr:`interval`.
    """

    def __init__(
        self,
        parts: Mapping[str, Callable[[], bool]],
        seconds: float | None,
        send: Callable[[str], object] = notify,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._parts = parts
        self._send = send
        self._clock = clock
        self._next = 0.0
        self.interval = seconds / 3 if seconds else None
        """Seconds; None where nobody waits."""
        self.stuck: Sequence[str] = ()
        """Parts that made no progress when last asked."""

    def feed(self) -> None:
        """Ask every part; tell systemd when all is well, and which part is not when it is not."""
        now = self._clock()
        if self.interval is None or now < self._next:
            return
        before, self.stuck = self.stuck, [name for name, progresses in self._parts.items() if not progresses()]
        if not self.stuck:
            self._next = now + self.interval
            self._send("WATCHDOG=1")
        elif self.stuck != before:
            self._send(f"STATUS=no progress: {', '.join(self.stuck)}")
