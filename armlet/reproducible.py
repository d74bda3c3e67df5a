"""The constants that make two builds of one plan bit-identical. Whatever writes a time or a path takes it from here."""

from __future__ import annotations

# 2025-03-08, the day ONNX Runtime 1.21.0 was released: no time of day, no clock, the same for every file.
EPOCH = 1_741_392_000
"""``SOURCE_DATE_EPOCH`` of every compile, and the time of every file in an archive (seconds since 1970, UTC)."""
