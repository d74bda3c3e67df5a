"""Ten thousand requests; memory stays where it was."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from armlet_runtime import ort

from tests.fakes import serving


def resident(pid: int) -> int:
    """KiB."""
    (line,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1])


@pytest.mark.heavy
def test_memory_stays_flat(tmp_path: Path, library: ort.Library) -> None:
    serving.adds(tmp_path, 1.0)
    with serving.serving(tmp_path) as service:

        def ask(count: int) -> None:
            for number in range(count):
                assert service.add(float(number)) == number + 1.0

        def ask_by_many(count: int) -> None:
            threads = [threading.Thread(target=ask, args=(count // 4,)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        ask_by_many(1000)
        worker = service.pid("add")
        before = resident(os.getpid()), resident(worker)
        ask_by_many(10_000)
        after = resident(os.getpid()), resident(worker)
        print(f"KiB of supervisor and worker: {before} after 1,000, {after} after 11,000 requests")
        assert service.pid("add") == worker
        assert all(late - early < 1024 for early, late in zip(before, after, strict=True))
