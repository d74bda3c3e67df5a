"""The thread that starts workers, watches them, and has those that fail replaced.

It alone starts processes, and it lives as long as the service: the kernel ends a worker with the thread that
started it.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter
from typing import Callable

from armlet_runtime.serve.config import DeviceConfig
from armlet_runtime.serve.dispatch import dispatch
from armlet_runtime.serve.interface import Telemetry
from armlet_runtime.serve.job import Fault, Job, Ready
from armlet_runtime.serve.payloads import Candidate
from armlet_runtime.serve.process import Owner, WorkerProcess
from armlet_runtime.serve.slot import Activation, Slot, job_for
from armlet_runtime.serve.tally import Tallies

log = logging.getLogger("armlet.serve")

TICK_SECONDS = 0.25
CRASHES_IN_A_ROW = 5
"""After which somebody has to decide whether another payload should serve."""
Start = Callable[[Job, Owner], WorkerProcess]


class Keeper:
    """Holds the lock that guards every :class:`Slot`; methods whose name says so want it held."""

    def __init__(
        self,
        config: DeviceConfig,
        telemetry: Telemetry,
        *,
        start: Start = WorkerProcess,
        activated: Callable[[Candidate], None] = lambda _: None,
        gives_up: Callable[[Candidate, str], None] = lambda _payload, _how: None,
        clock: Callable[[], float] = time.monotonic,
        available: Callable[[], set[int]] = lambda: os.sched_getaffinity(0),
    ) -> None:
        self.changed = threading.Condition(threading.RLock())
        self.slots: dict[str, Slot] = {}
        self.ticked = clock()
        """When the thread last went round."""
        self.tallies = Tallies(clock)
        self.broken = False
        """Whether it met something that should not be."""
        self._config = config
        self._telemetry = telemetry
        self._start = start
        self._activated = activated
        self._gives_up = gives_up
        self._clock = clock
        self._available = available
        self._by_worker: dict[WorkerProcess, Slot] = {}
        self._ending = False
        self._thread = threading.Thread(target=self._run, name="keeper", daemon=True)

    def begin(self) -> None:
        """Start the thread."""
        self._thread.start()

    def end(self) -> None:
        """End the thread, once all workers are gone or have been killed."""
        with self.changed:
            self._ending = True
            self.changed.notify_all()
        self._thread.join()

    def activate_locked(self, slot: Slot, activation: Activation) -> None:
        """Have a payload served; one that is on its way already makes room."""
        if slot.activation is not None:
            slot.activation.end("another payload came before it was ready")
        if slot.candidate is not None:
            slot.candidate.kill("makes room for another payload")
            slot.leaving.add(slot.candidate)
            slot.candidate = None
        slot.activation = activation
        slot.alone = activation.serial
        slot.wanted = True
        slot.avoid = {}
        slot.backoff.reset()
        slot.retry_at = None
        if slot.current is None:
            slot.become("loading")
        self.changed.notify_all()

    def release_locked(self, slot: Slot) -> None:
        """Have the current worker end after the call in hand."""
        if slot.current is not None:
            slot.current.leaving = True
            slot.leaving.add(slot.current)
            slot.current = None
        slot.queue.wake()

    # What workers tell, each in a thread of its own.

    def became_ready(self, worker: WorkerProcess, ready: Ready) -> None:
        """The worker takes over."""
        with self.changed:
            slot = self._by_worker[worker]
            activation = slot.activation
            if slot.candidate is not worker or activation is None:
                return
            old = slot.current
            self.release_locked(slot)
            if slot.ready is None or slot.payload is None or slot.payload.payload != activation.payload.payload:
                self.tallies.begin(slot.name, activation.payload.payload)
            slot.current, slot.candidate, slot.activation = worker, None, None
            slot.payload, slot.ready, slot.retry_at = activation.payload, ready, None
            slot.well_since = self._clock()
            slot.become("ready", activation.payload.refusals)
            done_within = self._config.service.drain_seconds
            given = (slot, worker, self._telemetry, self.tallies, done_within, self._clock)
            threading.Thread(target=dispatch, args=given, name=slot.name, daemon=True).start()
            self.changed.notify_all()
        log.info("%s %s: %s", slot.name, activation.payload.version, _in_words(ready))
        self._activated(activation.payload)
        self._telemetry.worker(slot.name, "swapped" if old is not None else "ready")
        activation.end()

    def failed(self, worker: WorkerProcess, reason: str, fault: Fault = "trial") -> None:
        """The payload is not served; what served before still does."""
        with self.changed:
            slot = self._by_worker[worker]
            if slot.candidate is worker:
                slot.candidate = None
                slot.leaving.add(worker)
                self._fail_locked(slot, reason, fault)

    def ended(self, worker: WorkerProcess) -> None:
        """The worker is gone."""
        with self.changed:
            slot = self._by_worker.pop(worker)
            if worker in slot.leaving:
                slot.leaving.discard(worker)
                self._telemetry.worker(slot.name, "stopped")
            how = f"its worker {worker.how}"
            if slot.current is worker:
                slot.current = None
                ran = self._clock() - (slot.well_since or worker.started)
                slot.retry_at = self._clock() + slot.backoff.failed(ran)
                slot.become("loading", how)
                log.error("%s: %s; another one starts in %.2f s", slot.name, how, slot.retry_at - self._clock())
                self._telemetry.worker(slot.name, "stalled" if worker.killed_for else "crashed")
                self._failed_again_locked(slot, how)
            elif slot.candidate is worker:
                slot.candidate = None
                if not self._tries_without_locked(slot, worker):
                    # What somebody else killed may be as good as any other.
                    self._fail_locked(slot, how, "trial" if worker.crashed or worker.killed_for else "chance")
            slot.queue.wake()
            self.changed.notify_all()

    def _tries_without_locked(self, slot: Slot, worker: WorkerProcess) -> bool:
        first = next((name for name in worker.tried if name != "cpu" and name not in slot.avoid), None)
        if not worker.crashed or first is None:
            return False
        slot.avoid[first] = f"the worker {worker.how} while it was tried"
        log.error("%s: %s %s", slot.name, first, slot.avoid[first])
        return True

    def _failed_again_locked(self, slot: Slot, how: str) -> None:
        """What is to serve does not."""
        if slot.payload is None:
            return
        self.tallies.crashed(slot.name, slot.payload.payload)
        if slot.backoff.failures >= CRASHES_IN_A_ROW:
            self._gives_up(slot.payload, how)

    def _fail_locked(self, slot: Slot, reason: str, fault: Fault) -> None:
        activation, slot.activation = slot.activation, None
        if activation is None:
            return
        self._telemetry.worker(slot.name, "failed")
        log.error("%s %s was not activated: %s", slot.name, activation.payload.version, reason)
        if slot.current is not None:
            slot.reason = f"version {activation.payload.version} was not activated: {reason}"
        else:
            # What served before is the better thing to try again; else it is the only one.
            again = slot.ready is not None and slot.payload is not activation.payload
            slot.payload = slot.payload or activation.payload
            # What made room for it comes back at once.
            slot.retry_at = self._clock() + (0.0 if again else slot.backoff.failed(0.0))
            slot.become("loading" if again else "failed", reason)
            if not again:
                self._failed_again_locked(slot, reason)
        activation.end(reason, fault)
        self.changed.notify_all()

    # What the thread does.

    def _run(self) -> None:
        while True:
            try:
                with self.changed:
                    if self._ending and not self._by_worker:
                        return
                    self._go_round_locked()
                    self.ticked = self._clock()
                    self.changed.wait(TICK_SECONDS)
            except Exception:
                # Were the thread to end, all workers would.
                self.broken = True
                log.exception("the keeper met what it should not")
                time.sleep(TICK_SECONDS)

    def _go_round_locked(self) -> None:
        for worker, slot in list(self._by_worker.items()):
            why = self._reason_to_kill(worker, slot)
            if self._ending or why:
                log.error("%s: the worker %s (pid %d)", slot.name, why or "is ended", worker.pid)
                worker.kill(why or "was ended with the service")
        if self._ending:
            return
        for slot in self.slots.values():
            now = self._clock()
            idle = slot.wanted and slot.current is None and slot.candidate is None and slot.activation is None
            if idle and slot.payload is not None and slot.retry_at is not None and slot.retry_at <= now:
                slot.activation = Activation(slot.payload, serial=slot.alone)
            if slot.activation is not None and slot.candidate is None and self._has_room():
                if slot.gives_way and slot.workers:
                    if slot.current is not None:
                        slot.become("loading", "it makes room for another payload")
                    self.release_locked(slot)
                else:
                    self._start_locked(slot, slot.activation)

    def _has_room(self) -> bool:
        starting = sum(slot.candidate is not None for slot in self.slots.values())
        return starting < max(1, len(self._available()))

    def _start_locked(self, slot: Slot, activation: Activation) -> None:
        wanted = {name: other.settings.cores for name, other in self.slots.items() if other.wanted}
        payload, judged = activation.payload, activation.judged
        job = job_for(slot, payload, self._config, self._available(), wanted, judged=judged)
        try:
            worker = self._start(job, self)
        except OSError as error:
            self._fail_locked(slot, f"no process can be started: {error.strerror}", "chance")
            return
        self._by_worker[worker] = slot
        slot.candidate = worker
        self._telemetry.worker(slot.name, "started")

    def _reason_to_kill(self, worker: WorkerProcess, slot: Slot) -> str:
        if worker.killed_for:
            return ""
        service, now = self._config.service, self._clock()
        # Before its first word it reads Python's modules, which takes what it takes on a slow device.
        if worker.heard > worker.started and now - worker.heard > service.stall_seconds:
            return f"showed no life for {service.stall_seconds:g} s"
        if worker is slot.candidate and now - worker.started > service.start_seconds:
            return f"was not ready within {service.start_seconds:g} s"
        busy = worker.busy_since
        if busy is not None and now - busy > service.run_seconds:
            return f"had one request in hand for {service.run_seconds:g} s"
        limit = slot.settings.memory_mb
        if limit is not None and worker.memory() > limit << 20:
            return f"took more than its {limit} MB of memory"
        return ""


def _in_words(ready: Ready) -> str:
    parts = [f"ready after {ready.seconds:.1f} s"]
    for name, share in ready.share.items():
        operators = Counter(operator for _, operator, provider in ready.nodes if provider == name)
        told = ", ".join(f"{operator} x{count}" for operator, count in operators.most_common())
        parts.append(f"{name} runs {share:.0%} of the nodes ({told})")
    parts += [f"without {name}: {why}" for name, why in ready.skipped.items()]
    return "; ".join([*parts, *([ready.note] if ready.note else [])])
