"""How long to wait before what failed is tried again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Backoff:
    """Doubles with each failure in a row, up to ``longest``; forgets them after ``healthy`` seconds of health."""

    first: float = 0.25
    longest: float = 60.0
    healthy: float = 30.0
    failures: int = 0
    """In a row."""

    def failed(self, ran: float) -> float:
        """Seconds to wait, after a failure that came ``ran`` seconds after it was last known to be well."""
        if ran >= self.healthy:
            self.failures = 0
        # Beyond 2**32 the cap has long been reached, and a float would overflow some day.
        delay = min(self.longest, self.first * 2.0 ** min(self.failures, 32))
        self.failures += 1
        return delay

    def reset(self) -> None:
        """Forget the failures: something has changed, such as the payload."""
        self.failures = 0
