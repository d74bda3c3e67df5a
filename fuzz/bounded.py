"""The bound on memory that every fuzzer has."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

_ONE_IN = 64
"""Memory is traced for so few: it makes everything several times slower."""
_runs = itertools.count(1)


@contextmanager
def bounded(size: int, *, times: int, fixed: int) -> Iterator[None]:
    """Raises AssertionError where the block took more than ``times * size + fixed`` bytes. Mostly nobody looks."""
    if next(_runs) % _ONE_IN:
        yield
        return
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
        assert peak < times * size + fixed, f"{peak} bytes for {size}"
    finally:
        tracemalloc.stop()
