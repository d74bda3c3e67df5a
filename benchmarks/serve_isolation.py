"""What it costs one model's callers that another model's worker is killed again and again.

    .venv/bin/python -m benchmarks.serve_isolation [--seconds 20]

Two models, each with a worker and, where there are two, a core of its own. One client asks the first, at a steady pace,
first alone; then while the worker of the second is killed with SIGKILL every second and started again.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import tempfile
import threading
import time
from pathlib import Path

import onnxruntime

from armlet.sinks.tables import table
from tests.fakes import serving
from tests.fakes.serving import Service

MOST = 1.2
"""The 95th percentile while workers die, against the one before."""
PACE_SECONDS = 0.01
TIMES = (20, "int64")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=20.0)
    chosen = parser.parse_args()
    (library,) = (Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so.*")
    os.environ.setdefault("ARMLET_ORT_LIBRARY", str(library))
    with tempfile.TemporaryDirectory() as root:
        serving.takes_long(Path(root))
        serving.adds(Path(root), 1.0)
        with serving.serving(Path(root)) as service:
            measure(service, 2.0)
            idle = measure(service, chosen.seconds)
            stop = threading.Event()
            kills: list[int] = []
            killer = threading.Thread(target=kill_often, args=(service, stop, kills))
            killer.start()
            disturbed = measure(service, chosen.seconds)
            stop.set()
            killer.join()
    rows = [
        [name, str(len(taken)), *(f"{quantile(taken, share) * 1e3:.2f}" for share in (0.5, 0.95, 0.99))]
        for name, taken in (("idle", idle), (f"while another worker is killed {len(kills)} times", disturbed))
    ]
    ratio = quantile(disturbed, 0.95) / quantile(idle, 0.95)
    print(table(["", "requests", "p50 ms", "p95 ms", "p99 ms"], rows))
    print(f"p95: {ratio:.2f} x idle, {MOST} at most")
    raise SystemExit(ratio > MOST)


def measure(service: Service, seconds: float) -> list[float]:
    taken = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        service.ask("slow", times=TIMES)
        taken.append(time.monotonic() - began)
        time.sleep(PACE_SECONDS)
    return taken


def kill_often(service: Service, stop: threading.Event, kills: list[int]) -> None:
    while not stop.wait(1.0):
        pid = service.pid("add")
        if pid:
            # Else the pauses between its starts would become long, and the trial easy.
            service.engine._keeper.slots["add"].backoff.reset()
            os.kill(pid, signal.SIGKILL)
            kills.append(pid)


def quantile(taken: list[float], share: float) -> float:
    return statistics.quantiles(taken, n=100)[int(share * 100) - 1]


if __name__ == "__main__":
    main()
