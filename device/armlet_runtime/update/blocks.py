"""Archives over MQTT, in blocks that are asked for: a few at a time, again where they do not come.

What is delivered comes from another thread, may come twice, late, in any order, or be nothing that was asked for. Only
what is being waited for is kept, and only until it is on the disk: there is never more in memory than those few.
"""

from __future__ import annotations

import threading
import time
from typing import Callable, NamedTuple

from armlet_runtime.update.interface import BlockSource, Desired, FetchError, Incoming

_GLANCE = 0.25
"""Seconds between two looks at whether it is called off."""
_LONGEST_WAIT = 600.0
_OFFLINE_WAIT = 1.0
"""Seconds."""
_GAPS = 3
"""A block is late once nothing has come for so many times the gaps of late."""
_OVERTAKEN = 8
"""A block is lost once so many that were asked for after it have come: a broker keeps the order."""


class _Current(NamedTuple):
    """The archive that is on its way."""

    archive: str
    size: int
    block_size: int

    def length(self, number: int) -> int:
        return min(self.block_size, self.size - number * self.block_size)


class BlocksFetcher:
    """A :class:`~armlet_runtime.update.interface.Fetcher`; :meth:`deliver` and :meth:`again` take any thread.

    Args:
        source: where blocks are asked for.
        in_flight: how many are asked for at a time.
        first_wait: seconds without any block before those that were asked for are asked for again; then twice as long.
        patience: seconds without any block, or without a connection, after which it is left for later.
    """

    def __init__(
        self, source: BlockSource, *, in_flight: int = 4, first_wait: float = 30.0, patience: float = 120.0
    ) -> None:
        self._source = source
        self._in_flight = in_flight
        self._first_wait = first_wait
        self._patience = patience
        self._changed = threading.Condition()
        self._current: _Current | None = None
        self._asked: dict[int, int] = {}
        """In the order of asking: how many that were asked for later have come."""
        self._came: dict[int, bytes] = {}
        self._anew = False
        self._refused = 0

    def deliver(self, archive: str, number: int, data: bytes) -> None:
        """A block has come, or what somebody takes for one. Returns at once."""
        with self._changed:
            current = self._current
            if current is None or archive != current.archive or number not in self._asked:
                return
            if len(data) != current.length(number):
                self._refused += 1
                return
            for other in self._asked:
                if other == number:
                    break
                self._asked[other] += 1
            del self._asked[number]
            self._came[number] = data
            self._changed.notify_all()

    def again(self) -> None:
        """What was asked for before this is not going to come: the connection is a new one."""
        with self._changed:
            self._anew = True
            self._changed.notify_all()

    def fetch(
        self, desired: Desired, into: Incoming, progress: Callable[[float], None], cancelled: Callable[[], bool]
    ) -> None:
        with self._changed:
            self._current = _Current(desired.archive_sha256, into.size, into.block_size)
            self._asked.clear()
            self._came.clear()
            self._anew = False
            self._refused = 0
        try:
            self._fetch(desired, into, progress, cancelled)
        finally:
            with self._changed:
                self._current = None
                self._asked.clear()
                self._came.clear()
            into.sync()

    def _fetch(
        self, desired: Desired, into: Incoming, progress: Callable[[float], None], cancelled: Callable[[], bool]
    ) -> None:
        waiting = into.missing()
        # The next one is the last of the list.
        waiting.reverse()
        left = len(waiting)
        wait, gap = self._first_wait, 0.0
        last = asked_at = time.monotonic()
        connected = True
        while left:
            if cancelled():
                raise FetchError("download", "it was called off")
            if connected:
                connected = self._ask(desired, waiting)
            came, anew = self._next(min(_GLANCE, wait))
            for number, data in came.items():
                into.put(number, data)
            now = time.monotonic()
            if anew:
                self._lose(waiting, 0)
                connected, asked_at = True, now
            if came:
                left -= len(came)
                # An outage is soon forgotten, a slow link is not.
                gap = max(now - last, gap / 2)
                wait = min(_LONGEST_WAIT, max(self._first_wait, _GAPS * gap))
                last = asked_at = now
                progress(1 - left / into.blocks)
            elif now - last > self._patience:
                raise FetchError("download", self._silence(connected))
            elif now - asked_at > (wait if connected else min(wait, _OFFLINE_WAIT)):
                self._lose(waiting, 0)
                wait = min(_LONGEST_WAIT, 2 * wait) if connected else wait
                connected, asked_at = True, now
            self._lose(waiting, _OVERTAKEN)

    def _next(self, seconds: float) -> tuple[dict[int, bytes], bool]:
        """What has come, waiting for it a little; whether all that was asked for is to be asked for again."""
        with self._changed:
            if not self._came and not self._anew:
                self._changed.wait(seconds)
            (came, self._came), (anew, self._anew) = (self._came, {}), (self._anew, False)
            return came, anew

    def _lose(self, waiting: list[int], overtaken: int) -> None:
        """Blocks that were overtaken so often are asked for again, before all others."""
        with self._changed:
            lost = [number for number, asked in self._asked.items() if asked >= overtaken]
            for number in lost:
                del self._asked[number]
        waiting.extend(sorted(lost, reverse=True))

    def _ask(self, desired: Desired, waiting: list[int]) -> bool:
        """Whether there is a connection."""
        with self._changed:
            room = self._in_flight - len(self._asked) - len(self._came)
            numbers = [waiting.pop() for _ in range(min(room, len(waiting)))]
            # Before they are asked for: they may come at once.
            self._asked.update(dict.fromkeys(numbers, 0))
        if not numbers or self._source.want(desired, numbers):
            return True
        with self._changed:
            unsent = [number for number in numbers if self._asked.pop(number, None) is not None]
        waiting.extend(reversed(unsent))
        return False

    def _silence(self, connected: bool) -> str:
        what = f"no block has come for {self._patience:g} s" if connected else "there is no connection to the broker"
        return f"{what}; {self._refused} had another length than they should" if self._refused else what
