"""What a worker does to itself before it touches a model, so that it harms no other."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
from pathlib import Path
from typing import Iterable

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_SLACK = 128 << 20
"""Bytes of the stacks of threads and of what the allocator keeps, which count as data and are hardly touched."""
_OOM_SCORE = "500"
LEAST_MB = 12
"""Less than any worker takes before it has a model: Python, its modules and the library were 17 MB on 32 bits."""


def die_with(parent: int) -> None:
    """Have the kernel kill this process when the thread that started it is gone; at once if ``parent`` already is."""
    # Where the kernel cannot, the worker still ends when the supervisor hangs up.
    with contextlib.suppress(OSError):
        _prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:
        os._exit(0)


def name_process(name: str) -> None:
    """What ``ps`` shows; the kernel keeps 15 bytes."""
    with contextlib.suppress(OSError):
        _prctl(_PR_SET_NAME, ctypes.c_char_p(name.encode()[:15]))


def go_first() -> None:
    """Where memory runs out the kernel is to end this process, rather than the one that would start it again."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE, encoding="ascii")


def stay_on(cores: Iterable[int]) -> None:
    """Use these cores only, as far as the kernel lets."""
    # One may have been taken away since they were counted.
    with contextlib.suppress(OSError, ValueError):
        os.sched_setaffinity(0, cores)


def limit_memory(megabytes: int | None) -> None:
    """Have allocations fail somewhat beyond the limit; the supervisor watches what is really used."""
    if megabytes is None:
        return
    wanted = (megabytes << 20) + _SLACK
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, wanted))


def _prctl(option: int, argument: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    value = argument if isinstance(argument, ctypes.c_char_p) else ctypes.c_ulong(int(str(argument)))
    if libc.prctl(option, value, 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
