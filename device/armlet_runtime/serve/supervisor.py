"""The engine: models by name, each answered by a process of its own, and swapped without losing a request."""

from __future__ import annotations

import logging
import time
from typing import Any, Callable, Mapping, Sequence

from armlet_runtime.serve.call import Call, demand_fitting
from armlet_runtime.serve.config import DeviceConfig
from armlet_runtime.serve.ini import near
from armlet_runtime.serve.interface import Answer, ModelInfo, NoTelemetry, Refused, Request, Telemetry
from armlet_runtime.serve.keeper import Keeper
from armlet_runtime.serve.payloads import BadPayload, Candidate, Catalogue
from armlet_runtime.serve.queue import Closed, Full
from armlet_runtime.serve.slot import Activation, Slot
from armlet_runtime.serve.starter import Starter
from armlet_runtime.serve.tally import Seen

log = logging.getLogger("armlet.serve")

_LOOK_SECONDS = 0.05
"""How often a waiting call asks whether its caller is still there."""
_STILL_SECONDS = 10.0
"""Without the keeper going round, nothing is alive."""


class Supervisor:
    """Implements :class:`armlet_runtime.serve.interface.Engine`.

    ``keeper``: further arguments of the :class:`Keeper`.
    """

    def __init__(
        self,
        config: DeviceConfig,
        catalogue: Catalogue,
        telemetry: Telemetry | None = None,
        keeper: Mapping[str, Any] | None = None,
    ) -> None:
        self._config = config
        self._catalogue = catalogue
        self._telemetry = telemetry or NoTelemetry()
        self._keeper = Keeper(config, self._telemetry, **(keeper or {}))
        self._closing = False
        self._starter: Starter | None = None

    def start(self) -> None:
        """Begin to load every model; returns at once."""
        with self._keeper.changed:
            for name in sorted({*self._catalogue.names(), *self._config.models}):
                self._add_locked(name)
        self._keeper.begin()
        wanted = [name for name, slot in sorted(self._keeper.slots.items()) if slot.wanted]
        self._starter = Starter(wanted, self._catalogue, self._begin, self._note_bad)

    def models(self) -> Sequence[ModelInfo]:
        """Every model of the catalogue and of the configuration, sorted by name."""
        return [slot.info() for _, slot in sorted(self._keeper.slots.items())]

    def infer(self, request: Request, cancelled: Callable[[], bool] = lambda: False) -> Answer:
        """Block until it is answered, at the latest until its deadline. Raises :class:`Refused`."""
        began = time.monotonic()
        outcome = "internal"
        call = Call(request)
        try:
            answer = self._infer(call, cancelled)
            outcome = "ok"
        except Refused as refused:
            outcome = refused.kind
            raise
        finally:
            self._telemetry.observed(request.model, time.monotonic() - began, outcome)
            self._keeper.tallies.ended(request.model, call.payload or self._of(request.model), outcome)
        self._telemetry.inputs(request.model, request.inputs)
        self._telemetry.outputs(request.model, answer.outputs)
        return answer

    def load(self, model: str) -> None:
        """Serve a model as its payload is now; blocks until it is ready. Raises :class:`Refused`."""
        self._demand_open()
        if model not in self._keeper.slots and model not in self._catalogue.names():
            raise self._unknown(model)
        try:
            candidate = self._catalogue.current(model)
        except BadPayload as error:
            self._note_bad(model, error)
            raise Refused("internal", f"{model} cannot be served: {error}") from error
        self._tell_rejected(candidate)
        if candidate.rejected and self._serves(candidate):
            raise Refused("internal", f"{model} {candidate.version} serves on: {candidate.refusals}")
        reason = self.activate(candidate)
        if reason:
            raise Refused("internal", f"{model} {candidate.version} was not activated: {reason}")

    def activate(self, payload: Candidate) -> str:
        """Try a payload, and serve it if it proves good; blocks. Returns why it was not activated, or nothing.

        Whatever comes of it, what served before serves on until the new one has proved good.
        """
        return self.attempt(Activation(payload)).reason

    def attempt(self, activation: Activation) -> Activation:
        """As :meth:`activate`, in the way that the activation asks for; gives it back once it has ended."""
        with self._keeper.changed:
            if self._closing:
                activation.end("the service is ending")
            else:
                self._keeper.activate_locked(self._add_locked(activation.payload.model), activation)
        activation.wait()
        return activation

    def serving(self, model: str) -> Candidate | None:
        """What answers requests, also while its worker is being replaced; None: nothing does."""
        with self._keeper.changed:
            slot = self._keeper.slots.get(model)
            return slot.payload if slot is not None and slot.wanted and slot.ready is not None else None

    def seen(self, model: str, payload: str) -> Seen:
        """What became of the requests to a payload, since it took over."""
        return self._keeper.tallies.of(model, payload)

    def unload(self, model: str) -> None:
        """Answer what has been accepted and end the worker. Raises :class:`Refused` for an unknown model."""
        with self._keeper.changed:
            slot = self._keeper.slots.get(model)
            if slot is None:
                raise self._unknown(model)
            self._withdraw_locked(slot, "it was unloaded")
        while not self._settled(slot):
            time.sleep(_LOOK_SECONDS)

    def live(self) -> bool:
        """Whether workers are being watched."""
        keeper = self._keeper
        return not keeper.broken and time.monotonic() - keeper.ticked < _STILL_SECONDS

    def ready(self) -> bool:
        """Whether every model that is to be served is."""
        slots = list(self._keeper.slots.values())
        return not self._closing and all(slot.state == "ready" for slot in slots if slot.wanted)

    def settled(self) -> bool:
        """Whether every model serves or has failed at least once."""
        slots = list(self._keeper.slots.values())
        starting = self._starter is None or self._starter.working
        return not starting and all(slot.state != "loading" for slot in slots)

    def close(self, seconds: float | None = None) -> bool:
        """Take nothing more, answer what was taken, end all workers. Whether all was answered within the time.

        ``seconds``: None for the configuration's.
        """
        until = time.monotonic() + (self._config.service.drain_seconds if seconds is None else seconds)
        with self._keeper.changed:
            self._closing = True
            slots = list(self._keeper.slots.values())
            for slot in slots:
                self._withdraw_locked(slot, "the service is ending")
        while not all(map(self._settled, slots)) and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS / 2)
        answered = True
        for slot in slots:
            slot.queue.close()
            answered = self._refuse_waiting(slot, "the service is ending") and not slot.workers and answered
        self._keeper.end()
        return answered

    def _infer(self, call: Call, cancelled: Callable[[], bool]) -> Answer:
        request = call.request
        slot = self._slot_for(request)
        try:
            evicted = slot.queue.put(call, request.deadline)
        except Full:
            raise self._overloaded(slot) from None
        except Closed:
            raise Refused("not_ready", "the service is ending") from None
        if evicted is not None:
            evicted.refuse(self._overloaded(slot))
        if not slot.wanted and slot.current is None and not slot.leaving:
            # Unloaded between the look and the put: nobody would ever take it.
            call.refuse(Refused("not_ready", f"{slot.name}: {slot.reason}"))
        self._telemetry.queue_depth(slot.name, len(slot.queue))
        while not call.wait(max(0.0, min(_LOOK_SECONDS, request.deadline - time.monotonic()))):
            if cancelled():
                call.refuse(Refused("cancelled", "the caller has gone"))
            elif time.monotonic() >= request.deadline:
                call.refuse(Refused("deadline", f"{slot.name} had no answer in time"))
            else:
                continue
            if not slot.queue.discard(call):
                for worker in slot.workers:
                    worker.cancel(call)
        return call.result()

    def _slot_for(self, request: Request) -> Slot:
        self._demand_open()
        slot = self._keeper.slots.get(request.model)
        if slot is None:
            raise self._unknown(request.model)
        slot.demand_serving(request.deadline)
        payload = slot.payload
        if payload is None or (request.version is not None and request.version != payload.version):
            serves = payload.version if payload else "none"
            raise Refused("unknown_model", f"{request.model} has no version {request.version}; it serves {serves}")
        demand_fitting(request, payload.inputs, payload.outputs, self._config.service.message_mb << 20)
        return slot

    def _overloaded(self, slot: Slot) -> Refused:
        wait = max(0.1, slot.mean_seconds * (len(slot.queue) + 1))
        return Refused("overloaded", f"{slot.name} has {len(slot.queue)} requests waiting, and takes no more", wait)

    def _unknown(self, model: str) -> Refused:
        return Refused("unknown_model", f'there is no model "{model}"{near(model, sorted(self._keeper.slots))}')

    def _demand_open(self) -> None:
        if self._closing:
            raise Refused("not_ready", "the service is ending")

    def _add_locked(self, name: str) -> Slot:
        if name not in self._keeper.slots:
            # Readers take no lock: they see the old dictionary or the new one.
            self._keeper.slots = {**self._keeper.slots, name: Slot(name, self._config.model(name))}
        return self._keeper.slots[name]

    def _withdraw_locked(self, slot: Slot, reason: str) -> None:
        slot.wanted = False
        slot.become("unloaded", reason)
        if slot.activation is not None:
            slot.activation.end(reason)
            slot.activation = None
        if slot.candidate is not None:
            slot.candidate.kill("is not needed any more")
            slot.leaving.add(slot.candidate)
            slot.candidate = None
        self._keeper.release_locked(slot)

    def _settled(self, slot: Slot) -> bool:
        with self._keeper.changed:
            if slot.wanted:
                return True
            if not slot.workers:
                self._refuse_waiting(slot, slot.reason)
            return not slot.workers

    def _refuse_waiting(self, slot: Slot, reason: str) -> bool:
        waiting = slot.queue.clear()
        for call in waiting:
            call.refuse(Refused("not_ready", f"{slot.name}: {reason}"))
        return not waiting

    def _begin(self, candidate: Candidate) -> Activation | None:
        self._tell_rejected(candidate)
        with self._keeper.changed:
            slot = self._keeper.slots[candidate.model]
            if not slot.wanted or slot.activation is not None or slot.current is not None or self._closing:
                return None
            activation = Activation(candidate)
            self._keeper.activate_locked(slot, activation)
            return activation

    def _of(self, model: str) -> str:
        slot = self._keeper.slots.get(model)
        return slot.payload.payload if slot is not None and slot.payload is not None else ""

    def _tell_rejected(self, candidate: Candidate) -> None:
        for reason in candidate.rejected:
            log.error("%s: %s", candidate.model, reason)

    def _serves(self, candidate: Candidate) -> bool:
        """Whether this very payload serves already; then what was refused beside it is kept as its reason."""
        with self._keeper.changed:
            slot = self._keeper.slots.get(candidate.model)
            if slot is None or slot.current is None or slot.payload is None:
                return False
            if (slot.payload.folder, slot.payload.manifest) != (candidate.folder, candidate.manifest):
                return False
            slot.payload, slot.reason = candidate, candidate.refusals
            return True

    def _note_bad(self, name: str, error: BadPayload) -> None:
        for reason in error.reasons:
            log.error("%s: %s", name, reason)
        self._telemetry.worker(name, "failed")
        with self._keeper.changed:
            slot = self._add_locked(name)
            if slot.current is None:
                slot.become("failed", str(error))
            else:
                slot.reason = f"a payload was refused: {error}"
