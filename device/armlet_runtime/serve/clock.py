"""The wall clock: it decides nothing, but older Pythons time the waits of their threads by it."""

from __future__ import annotations

import logging
import signal
import threading
import time
from contextlib import suppress
from typing import Callable

log = logging.getLogger("armlet.serve")

NUDGE = signal.SIGURG
"""By default it does nothing, and nobody else uses it."""
_LEAST = 0.5
"""Seconds."""


class Jumps:
    """Looks for a clock that was set back.

    Python 3.8, and 3.9 of Debian 11, tell the kernel until which time of day a thread waits: after such a jump it
    would wait for so much longer. A signal has each thread reckon anew, by the monotonic clock. Make it in the main
    thread.
    """

    def __init__(self, wall: Callable[[], float] = time.time, clock: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._clock = wall, clock
        self._ahead = wall() - clock()
        signal.signal(NUDGE, _nothing)

    def look(self) -> bool:
        """Whether there was a jump back since the last look."""
        before, self._ahead = self._ahead, self._wall() - self._clock()
        if before - self._ahead < _LEAST:
            return False
        log.warning("the clock was set back by %.1f s", before - self._ahead)
        nudge()
        return True


def nudge() -> None:
    """Interrupts what other threads wait for; Python goes on with it by itself."""
    for thread in threading.enumerate():
        if thread.ident is not None and thread is not threading.current_thread():
            with suppress(ProcessLookupError):
                signal.pthread_kill(thread.ident, NUDGE)


def _nothing(_number: int, _frame: object) -> None: ...
