"""How many compilers this machine carries at once. Pure."""

from __future__ import annotations

GIB = 1 << 30

# What the largest batch of ONNX Runtime's sources takes of one compiler, with room to spare.
BYTES_PER_JOB = 5 * GIB // 2


def jobs(cores: int, available_bytes: int) -> int:
    """As many as there are cores, fewer where the memory would not hold them; at least one."""
    return max(1, min(cores, available_bytes // BYTES_PER_JOB))
