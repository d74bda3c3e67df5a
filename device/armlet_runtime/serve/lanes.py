"""Threads that answer requests, in groups that cannot starve each other."""

from __future__ import annotations

import queue
import threading
from dataclasses import dataclass
from typing import Callable

Job = Callable[[], None]


@dataclass(frozen=True)
class LanePlan:
    """``threads`` work, and at most ``waiting`` jobs wait for one of them."""

    threads: int
    waiting: int


class Lane:
    """A bounded group of threads; jobs raise nothing."""

    def __init__(self, name: str, plan: LanePlan) -> None:
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self.room = plan.threads + plan.waiting
        """How many jobs more would be taken now."""
        self._threads = [
            threading.Thread(target=self._work, name=f"http-{name}-{number}", daemon=True)
            for number in range(plan.threads)
        ]
        for thread in self._threads:
            thread.start()

    def offer(self, job: Job) -> bool:
        """Whether there was room for it."""
        with self._lock:
            if not self.room:
                return False
            self.room -= 1
        self._jobs.put(job)
        return True

    def stop(self) -> None:
        """End the threads once they have done what was offered; does not wait for them."""
        for _ in self._threads:
            self._jobs.put(None)

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                return
            try:
                job()
            finally:
                with self._lock:
                    self.room += 1
