"""A clock that is set back."""

from __future__ import annotations

import ctypes
import errno
import signal
import threading
import time
from collections.abc import Iterator

import pytest
from armlet_runtime.serve.clock import NUDGE, Jumps, nudge


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    before = signal.getsignal(NUDGE)
    yield
    signal.signal(NUDGE, before)


def test_only_jumps_back_are_jumps() -> None:
    now = {"wall": 1000.0, "clock": 50.0}
    jumps = Jumps(lambda: now["wall"], lambda: now["clock"])
    for wall, clock, jumped in (
        (1001, 51, False),
        (9001, 52, False),
        (5000, 53, True),
        (5001, 54, False),
        # Slowly, as NTP does it.
        (5001.9, 55, False),
    ):
        now.update(wall=wall, clock=clock)
        assert jumps.look() is jumped


class Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


def test_threads_reckon_anew() -> None:
    """What older Pythons wait with, until a time that the jump has moved far away, is interrupted."""
    Jumps()
    libc = ctypes.CDLL(None, use_errno=True)
    semaphore = ctypes.create_string_buffer(64)
    assert libc.sem_init(semaphore, 0, 0) == 0
    ended: list[int] = []

    def wait() -> None:
        until = Timespec(int(time.time()) + 3600, 0)
        libc.sem_timedwait(semaphore, ctypes.byref(until))
        ended.append(ctypes.get_errno())

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    end = time.monotonic() + 20
    while not ended and time.monotonic() < end:
        nudge()
        time.sleep(0.05)
    assert ended == [errno.EINTR]


def test_waits_of_threads_go_on() -> None:
    Jumps()
    event, seen = threading.Event(), list[bool]()
    thread = threading.Thread(target=lambda: seen.append(event.wait(0.5)))
    began = time.monotonic()
    thread.start()
    for _ in range(5):
        nudge()
        time.sleep(0.05)
    thread.join()
    assert seen == [False]
    assert time.monotonic() - began >= 0.5
