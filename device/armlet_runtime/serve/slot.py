"""A model's place in the service: what serves it now, what is about to, and what waits."""

from __future__ import annotations

import threading
import time
from typing import Callable, Mapping

from armlet_runtime.serve import chain, cores
from armlet_runtime.serve.backoff import Backoff
from armlet_runtime.serve.call import Call
from armlet_runtime.serve.config import DeviceConfig, ModelSettings
from armlet_runtime.serve.interface import ModelInfo, Refused, State
from armlet_runtime.serve.job import Fault, Job, Ready
from armlet_runtime.serve.payloads import Candidate
from armlet_runtime.serve.process import WorkerProcess
from armlet_runtime.serve.queue import BoundedQueue

# Of the newest duration in the running mean: a few requests, so that it follows a model that was swapped.
_NEWEST = 0.2


class Activation:
    """The wish to have a payload served, and what became of it.

    ``judged``: its budget counts. ``serial``: what serves ends first, so that the two are never in memory together.
    """

    def __init__(self, payload: Candidate, *, judged: bool = False, serial: bool = False) -> None:
        self.payload = payload
        self.judged = judged
        self.serial = serial
        self.reason = ""
        """Why it came to nothing; empty where it serves."""
        self.fault: Fault = ""
        self._ended = threading.Event()

    def end(self, reason: str = "", fault: Fault = "chance") -> None:
        """Tell who waits."""
        self.reason = reason
        self.fault = fault if reason else ""
        self._ended.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Whether it ends within that time."""
        return self._ended.wait(seconds)


class Slot:
    """Plain state; whoever changes it holds the supervisor's lock. The queue locks itself."""

    def __init__(self, name: str, settings: ModelSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self.settings = settings
        self.queue: BoundedQueue[Call] = BoundedQueue(settings.queue, settings.policy)
        self.wanted = settings.enabled
        self.payload: Candidate | None = None
        """What serves, or served last."""
        self.ready: Ready | None = None
        self.current: WorkerProcess | None = None
        self.candidate: WorkerProcess | None = None
        self.activation: Activation | None = None
        """What ``candidate`` is for, or is about to be."""
        self.leaving: set[WorkerProcess] = set()
        self.backoff = Backoff()
        self.well_since: float | None = None
        self.retry_at: float | None = None
        self.alone = False
        """Whether its workers are never to be in memory together."""
        self.avoid: dict[str, str] = {}
        self.mean_seconds = 0.0
        """Of late, for one call in the worker."""
        self.state: State = "loading" if self.wanted else "unloaded"
        self.reason = "" if self.wanted else "it is switched off in the device's configuration"
        self._clock = clock
        self.since = clock()

    def become(self, state: State, reason: str = "") -> None:
        """Note a change of state."""
        if state != self.state:
            self.since = self._clock()
        self.state, self.reason = state, reason

    def took(self, seconds: float) -> None:
        """Note how long the worker had a call in hand."""
        self.mean_seconds += (seconds - self.mean_seconds) * (_NEWEST if self.mean_seconds else 1.0)

    @property
    def workers(self) -> list[WorkerProcess]:
        """All that are there."""
        return [worker for worker in (self.current, self.candidate, *self.leaving) if worker is not None]

    def expected_at(self) -> float | None:
        """When a model that has served before will probably serve again; None: nobody knows."""
        if self.ready is None or not self.wanted:
            return None
        if self.candidate is not None:
            return self.candidate.started + self.ready.seconds
        return (self._clock() if self.retry_at is None else self.retry_at) + self.ready.seconds

    def demand_serving(self, deadline: float) -> None:
        """Raises :class:`Refused` unless there is a worker, or will be before the deadline."""
        if self.current is not None:
            return
        expected = self.expected_at()
        if expected is not None and expected < deadline:
            return
        why = self.reason or "it is being loaded"
        retry = 1.0 if expected is None else max(1.0, expected - self._clock())
        raise Refused("not_ready", f"{self.name}: {why}", retry if self.wanted else None)

    @property
    def gives_way(self) -> bool:
        """Whether its worker has to end before the next one may begin."""
        return self.activation is not None and self.activation.serial

    def info(self) -> ModelInfo:
        """What the front end is told."""
        # One after the other may change meanwhile; each is read once.
        payload, ready, current = self.payload, self.ready, self.current
        activation = self.activation
        shown = payload or (activation.payload if activation is not None else None)
        return ModelInfo(
            name=self.name,
            version=shown.version if shown else "",
            generation=shown.generation if shown else 0,
            sha256=shown.sha256 if shown else "",
            state=self.state,
            reason=self.reason,
            inputs=shown.inputs if shown else (),
            outputs=shown.outputs if shown else (),
            providers=ready.providers if ready else (),
            skipped=ready.skipped if ready else {},
            provider_share=ready.share if ready else {},
            nodes=ready.nodes if ready else (),
            pid=current.pid if current else None,
            since=self.since,
        )


def job_for(
    slot: Slot,
    payload: Candidate,
    config: DeviceConfig,
    available: set[int],
    wanted: Mapping[str, int | None],
    *,
    judged: bool = False,
) -> Job:
    """What a worker of a model is told. ``available`` are cores, ``wanted`` those that each served model asks for."""
    settings, service, manifest = slot.settings, config.service, payload.manifest
    own = cores.budget(available, {**wanted, slot.name: settings.cores})[slot.name]
    # A payload knows the fleet's largest device; more threads than cores only take turns.
    threads = settings.threads or min(manifest["threads"] or len(own), len(own))
    return Job(
        model=slot.name,
        version=payload.version,
        folder=str(payload.folder),
        model_file=str(payload.model_file),
        chain=tuple(chain.wanted(manifest["providers"], settings.providers, config.provider_options)),
        threads=threads,
        cores=own,
        inputs=payload.inputs,
        outputs=payload.outputs,
        golden=tuple(manifest["golden"]),
        payload=payload.payload,
        budget=dict(manifest.get("budget") or {}) if judged else {},
        min_share=settings.min_provider_share,
        avoid=dict(slot.avoid),
        library=str(service.library) if service.library else "",
        scratch=(str(service.scratch),) if service.scratch else (),
        memory_mb=settings.memory_mb,
        message_bytes=service.message_mb << 20,
    )
