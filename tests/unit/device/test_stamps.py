"""Times as text."""

from __future__ import annotations

import time

import pytest
from armlet_runtime import stamps
from armlet_runtime.payload_manifest import created_at


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1769860800.9, "2026-01-31T12:00:00Z"),
        (-0.5, "1969-12-31T23:59:59Z"),
        (2**31, "2038-01-19T03:14:08Z"),
        (2214043200, "2040-02-28T12:00:00Z"),
    ],
)
def test_a_time(seconds: float, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # As where its seconds have 32 bits.
    monkeypatch.setattr(time, "gmtime", lambda _: (_ for _ in ()).throw(OverflowError))
    assert stamps.utc(seconds) == text
    if isinstance(seconds, int):
        assert created_at(text) == seconds
