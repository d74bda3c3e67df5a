"""Times as text, also where the C library counts seconds in 32 bits: its calendar ends in January 2038."""

from __future__ import annotations

from datetime import datetime, timedelta

_EPOCH = datetime(1970, 1, 1)


def utc(seconds: float) -> str:
    """``2026-01-31T12:00:00Z`` of seconds since 1970. Raises OverflowError outside of the years 1 to 9999."""
    return (_EPOCH + timedelta(seconds=seconds // 1)).isoformat() + "Z"
