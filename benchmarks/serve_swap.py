"""What it costs one model's callers that another model is updated again and again.

    PYTHONPATH=.:device .venv/bin/python -m benchmarks.serve_swap [--seconds 20]

Two models, each with a worker and, where there are two, a core of its own. One client asks the first, at a steady pace,
first alone; then while the second is given one payload after the other: archive verified, unpacked, tried in a new
worker, switched, committed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import threading
import time
from pathlib import Path

import onnxruntime

from armlet.sinks.tables import table
from tests.fakes import serving
from tests.fakes.updating import Updated, release

MOST = 1.2
"""The 95th percentile during swaps, against the one before."""
PACE_SECONDS = 0.01
TIMES = 20
PAUSE_SECONDS = 1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=20.0)
    chosen = parser.parse_args()
    (library,) = (Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so.*")
    os.environ.setdefault("ARMLET_ORT_LIBRARY", str(library))
    made = [release(generation) for generation in range(2, 400)]
    with tempfile.TemporaryDirectory() as root:
        serving.takes_long(Path(root) / "factory")
        serving.adds(Path(root) / "factory", 1.0)
        with Updated(Path(root)).running() as device:
            measure(device, 2.0)
            idle = measure(device, chosen.seconds)
            stop = threading.Event()
            swaps: list[float] = []

            def swap() -> None:
                for one in made:
                    if stop.is_set():
                        return
                    began = time.monotonic()
                    assert device.update(one).state == "UPDATED"
                    swaps.append(time.monotonic() - began)
                    stop.wait(PAUSE_SECONDS)

            swapping = threading.Thread(target=swap)
            swapping.start()
            during = measure(device, chosen.seconds)
            stop.set()
            swapping.join()
    rows = [
        [name, str(len(taken)), *(f"{quantile(taken, share) * 1e3:.2f}" for share in (0.5, 0.95, 0.99))]
        for name, taken in (("idle", idle), (f"during {len(swaps)} updates of another model", during))
    ]
    ratio = quantile(during, 0.95) / quantile(idle, 0.95)
    print(table(["", "requests", "p50 ms", "p95 ms", "p99 ms"], rows))
    print(f"an update took {statistics.median(swaps):.2f} s; p95: {ratio:.2f} x idle, {MOST} at most")
    raise SystemExit(ratio > MOST)


def measure(device: Updated, seconds: float) -> list[float]:
    from armlet_runtime import ort
    from armlet_runtime.serve.interface import Request

    taken = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        given = {"times": ort.Tensor.from_list(TIMES, "int64")}
        began = time.monotonic()
        device.engine.infer(Request("slow", None, given, None, began + 60.0))
        taken.append(time.monotonic() - began)
        time.sleep(PACE_SECONDS)
    return taken


def quantile(taken: list[float], share: float) -> float:
    return statistics.quantiles(taken, n=100)[int(share * 100) - 1]


if __name__ == "__main__":
    main()
