"""Section ``[updates]`` of the device's file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Literal, Mapping

from armlet_runtime.serve import values

Swap = Literal["together", "serial"]


@dataclass(frozen=True)
class Updates:
    """How models are updated; without a store they are not."""

    store: Path | None = None
    """Where payloads that come later are kept; None: only the factory set is served."""
    reserve_mb: int = 16
    """Left free on the store's file system."""
    swap: Swap = "together"
    """Whether the old worker serves while the new one is tried, or ends before."""
    ca: Path | None = None
    """A PEM file of those who may have signed the certificates of servers that archives come from; None: the
    system's."""
    cert: Path | None = None
    """A PEM file that this device shows them; None: none."""
    key: Path | None = None
    """Its private half; None: it is in the same file."""
    probation_seconds: float = 300.0
    """How long a new payload is watched before it counts as good."""
    probation_requests: int = 20
    """Fewer say little of it: then only one that mostly fails is taken back."""
    max_error_rate: float = 0.02
    """Share of requests that may fail in probation; the old payload's own share excuses as much."""
    max_slowdown: float = 1.5
    """95th percentile in probation against the old payload's, where payload.json has no ``p95_ms``; 0: any."""
    max_crashes: int = 2
    """Of its worker, in probation."""
    steady_seconds: float = 600.0
    """A service that ran for that long runs well: the starts before are forgotten."""


def _one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        plain = " ".join(text.split())
        if plain not in words:
            raise ValueError(" or ".join(words))
        return plain

    return read


READERS: Mapping[str, Callable[[str], Any]] = {
    "store": values.path_or_none,
    "reserve_mb": values.whole(0, 65_536),
    "swap": _one_of("together", "serial"),
    "ca": values.path_or_none,
    "cert": values.path_or_none,
    "key": values.path_or_none,
    "probation_seconds": values.number(0, 604_800),
    "probation_requests": values.whole(1, 1_000_000),
    "max_error_rate": values.number(0, 1),
    "max_slowdown": values.number(0, 1000),
    "max_crashes": values.whole(0, 1000),
    "steady_seconds": values.number(1, 604_800),
}
