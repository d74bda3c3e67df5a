"""An archive on its way, in memory: what a fetcher puts, and when."""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class FakeIncoming:
    size: int
    block_size: int
    path: Path = Path("/nowhere")
    held: dict[int, bytes] = field(default_factory=dict)
    puts: list[int] = field(default_factory=list)
    """Numbers, in the order they were put."""
    syncs: int = 0
    discards: int = 0
    full_after: int | None = None
    """Blocks after which the disk is full."""

    @property
    def blocks(self) -> int:
        return -(-self.size // self.block_size)

    def missing(self) -> list[int]:
        return [number for number in range(self.blocks) if number not in self.held]

    def put(self, number: int, data: bytes) -> None:
        self._demand_open()
        if not 0 <= number < self.blocks:
            raise ValueError(number)
        if len(data) != min(self.block_size, self.size - number * self.block_size):
            raise ValueError(len(data))
        if self.full_after is not None and len(self.puts) >= self.full_after:
            raise OSError(28, "No space left on device")
        self.puts.append(number)
        self.held.setdefault(number, bytes(data))

    def sync(self) -> None:
        self._demand_open()
        self.syncs += 1

    def discard(self) -> None:
        self.discards += 1
        self.held.clear()

    def _demand_open(self) -> None:
        if self.discards:
            raise OSError(errno.EBADF, "this archive is no longer wanted")

    @property
    def content(self) -> bytes:
        """All of it; raises KeyError for a block that is missing."""
        return b"".join(self.held[number] for number in range(self.blocks))
