"""What it costs one model's callers that another model's worker is killed again and again.

    .venv/bin/python -m benchmarks.serve_isolation [--seconds 20]

Two models, each with a worker and, where there are two, a core of its own. One client asks the first, at a steady pace,
first alone; then while the worker of the second is killed with SIGKILL every second and started again.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from functools import partial
from pathlib import Path

from benchmarks.paced import MOST, compared, measure, parsed
from tests.fakes import serving
from tests.fakes.serving import Service

TIMES = (20, "int64")


def main() -> None:
    seconds = parsed(__doc__)
    with tempfile.TemporaryDirectory() as root:
        serving.takes_long(Path(root))
        serving.adds(Path(root), 1.0)
        with serving.serving(Path(root)) as service:
            measure(partial(ask, service), 2.0)
            idle = measure(partial(ask, service), seconds)
            stop = threading.Event()
            kills: list[int] = []
            killer = threading.Thread(target=kill_often, args=(service, stop, kills))
            killer.start()
            disturbed = measure(partial(ask, service), seconds)
            stop.set()
            killer.join()
    what = f"while another worker is killed {len(kills)} times"
    raise SystemExit(compared(idle, disturbed, what) > MOST)


def ask(service: Service) -> None:
    service.ask("slow", times=TIMES)


def kill_often(service: Service, stop: threading.Event, kills: list[int]) -> None:
    while not stop.wait(1.0):
        pid = service.pid("add")
        if pid:
            # Else the pauses between its starts would become long, and the trial easy.
            service.engine._keeper.slots["add"].backoff.reset()
            os.kill(pid, signal.SIGKILL)
            kills.append(pid)


if __name__ == "__main__":
    main()
