"""Hands a worker one call after the other, for as long as it is the one that answers."""

from __future__ import annotations

import time
from typing import Callable

from armlet_runtime.serve.interface import Refused, Telemetry
from armlet_runtime.serve.process import WorkerProcess
from armlet_runtime.serve.queue import Closed, Empty
from armlet_runtime.serve.slot import Slot
from armlet_runtime.serve.tally import Tallies


def dispatch(
    slot: Slot,
    worker: WorkerProcess,
    telemetry: Telemetry,
    tallies: Tallies,
    drain_seconds: float,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Until the worker leaves; then it is ended, within ``drain_seconds``."""

    def enough() -> bool:
        if worker.gone.is_set() or worker.killed_for:
            return True
        return bool(worker.leaving and (slot.current is not None or slot.gives_way or not len(slot.queue)))

    while True:
        try:
            call = slot.queue.get(stop=enough)
        except (Empty, Closed):
            break
        telemetry.queue_depth(slot.name, len(slot.queue))
        if call.ended:
            continue
        began = clock()
        if worker.compute(call):
            seconds = clock() - began
            slot.took(seconds)
            if call.answered:
                tallies.took(slot.name, call.payload, seconds)
        elif not slot.queue.put_back(call):
            call.refuse(Refused("internal", f"{slot.name}: the worker {worker.how}; this request is lost"))
    if not worker.gone.is_set():
        worker.stop(drain_seconds)
