"""What sustained overload does to the service's front end: how quickly it says no, and what it still gets done.

    .venv/bin/python -m benchmarks.serve_overload [--seconds 10] [--clients 32]

The engine behind it is a fake: each inference takes 20 ms and no CPU, so that the front end alone is measured.
The service, its clients and the one who measures are processes of their own. Three phases: one client alone; then
``--clients`` that ask again as soon as they are answered; then one client alone again.
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import threading
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from typing import Any

from armlet_runtime.serve.limits import Limits
from armlet_runtime.serve.sysinfo import resident_bytes

from armlet.sinks.tables import table
from tests.fakes.fake_engine import FakeEngine
from tests.fakes.service import serving

SECONDS_EACH = 0.02
LIMITS = Limits(inferences=4, waiting=8)
MOST_SECONDS = 0.05
"""Within which 99 of 100 refusals must have come."""
BODY = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [4], "data": [1, 2, 3, 4]}]})


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    seconds: float
    answers: list[float]
    """Latencies of what was answered, sorted, in seconds."""
    refusals: list[float]
    failures: int
    """Anything but 200, and 503 with Retry-After."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--clients", type=int, default=32)
    chosen = parser.parse_args()
    ours, theirs = multiprocessing.Pipe()
    service = multiprocessing.Process(target=serve, args=(theirs,), daemon=True)
    service.start()
    port = ours.recv()
    assert service.pid is not None
    before = load(port, 1, chosen.seconds / 2)
    memory_before = resident_bytes(service.pid) or 0
    under = load(port, chosen.clients, chosen.seconds)
    memory_after = resident_bytes(service.pid) or 0
    after = load(port, 1, chosen.seconds / 2)
    ours.send(None)
    service.join()
    report(before, under, after)
    most = LIMITS.inferences / SECONDS_EACH
    p99 = quantile(under.refusals, 0.99)
    print(
        f"\nrefusals' p99 {1e3 * p99:.1f} ms (at most {1e3 * MOST_SECONDS:.0f}); "
        f"answered {len(under.answers) / under.seconds / most:.2f} of what the engine can do; "
        f"afterwards {quantile(after.answers, 0.5) / quantile(before.answers, 0.5):.2f} times the latency of before; "
        f"memory {memory_after / memory_before:.2f} times; "
        f"{before.failures + under.failures + after.failures} failures"
    )
    if p99 > MOST_SECONDS:
        raise SystemExit(1)


def serve(pipe: Pipe) -> None:
    """The service, until something comes through the pipe."""
    with serving(FakeEngine(seconds=SECONDS_EACH), LIMITS) as (server, counted):
        pipe.send(server.port)
        while not pipe.poll(0.5):
            # A list of all answers would be the memory that is measured.
            counted.clear()


def load(port: int, clients: int, seconds: float) -> Phase:
    """Up to eight clients share a process."""
    processes = []
    for start in range(0, clients, 8):
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.Process(
            target=ask, args=(theirs, port, min(8, clients - start), seconds), daemon=True
        )
        process.start()
        processes.append((process, ours))
    results = []
    for process, ours in processes:
        results += ours.recv()
        process.join()
    return Phase(
        seconds=seconds,
        answers=sorted(took for status, took in results if status == 200),
        refusals=sorted(took for status, took in results if status == 503),
        failures=sum(status not in (200, 503) for status, _ in results),
    )


def ask(pipe: Pipe, port: int, clients: int, seconds: float) -> None:
    """(status, seconds) of every request of some clients; status 0 where there was no whole answer."""
    results: list[tuple[int, float]] = []
    end = time.monotonic() + seconds

    def one() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        while (start := time.monotonic()) < end:
            results.append((asked(connection), time.monotonic() - start))

    threads = [threading.Thread(target=one) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pipe.send(results)


def asked(connection: Any) -> int:
    try:
        connection.request("POST", "/v2/models/echo/infer", BODY)
        response = connection.getresponse()
        response.read()
    except (OSError, http.client.HTTPException):
        connection.close()
        return 0
    told = response.status != 503 or response.headers["Retry-After"] is not None
    return int(response.status) if told else 0


def quantile(values: list[float], share: float) -> float:
    """Of sorted values; 0 where there are none."""
    return values[min(int(share * len(values)), len(values) - 1)] if values else 0.0


def report(before: Phase, under: Phase, after: Phase) -> None:
    rows = []
    for name, phase in (("one client", before), ("overload", under), ("one client again", after)):
        rows += [
            (
                name,
                kind,
                f"{len(values) / phase.seconds:.0f}",
                *(f"{1e3 * quantile(values, share):.1f}" for share in (0.5, 0.99)),
            )
            for kind, values in (("answered", phase.answers), ("refused", phase.refusals))
            if values
        ]
    print(table(("phase", "requests", "per second", "p50 ms", "p99 ms"), rows))


if __name__ == "__main__":
    main()
