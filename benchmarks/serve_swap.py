"""What it costs one model's callers that another model is updated again and again.

    PYTHONPATH=.:device .venv/bin/python -m benchmarks.serve_swap [--seconds 20]

Two models, each with a worker and, where there are two, a core of its own. One client asks the first, at a steady pace,
first alone; then while the second is given one payload after the other: archive verified, unpacked, tried in a new
worker, switched, committed.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

from benchmarks.paced import MOST, compared, measure, parsed
from tests.fakes import serving
from tests.fakes.updating import Updated, release

TIMES = 20
PAUSE_SECONDS = 1.0


def main() -> None:
    seconds = parsed(__doc__)
    made = [release(generation) for generation in range(2, 400)]
    with tempfile.TemporaryDirectory() as root:
        serving.takes_long(Path(root) / "factory")
        serving.adds(Path(root) / "factory", 1.0)
        with Updated(Path(root)).running() as device:
            measure(partial(ask, device), 2.0)
            idle = measure(partial(ask, device), seconds)
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
            during = measure(partial(ask, device), seconds)
            stop.set()
            swapping.join()
    print(f"an update took {statistics.median(swaps):.2f} s")
    raise SystemExit(compared(idle, during, f"during {len(swaps)} updates of another model") > MOST)


def ask(device: Updated) -> None:
    from armlet_runtime import ort
    from armlet_runtime.serve.interface import Request

    given = {"times": ort.Tensor.from_list(TIMES, "int64")}
    device.engine.infer(Request("slow", None, given, None, time.monotonic() + 60.0))


if __name__ == "__main__":
    main()
