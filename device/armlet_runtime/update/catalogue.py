"""What serves, out of what was updated and what came with the rootfs: the first that is sound and fits."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any, Callable, Iterator, Mapping, Protocol, Sequence

from armlet_runtime.refusal import PayloadError
from armlet_runtime.serve.payloads import BadPayload, Candidate, FactorySet, candidate_of
from armlet_runtime.store.admission import Held
from armlet_runtime.store.state import ModelState


class Shelf(Protocol):
    """What is asked of the store here."""

    def models(self) -> Sequence[str]:
        """Those that there is a state of."""

    def state(self, model: str) -> ModelState:
        """Of one of them."""

    def held(self, payload: str) -> Held:
        """A payload, verified. Raises PayloadError, OSError."""


class StoredSet:
    """A :class:`~armlet_runtime.serve.payloads.Catalogue`: committed, previous, factory, in this order.

    A factory payload of a higher generation than the committed one goes first: new firmware brought it. While
    ``factory_first`` holds, any does.
    """

    def __init__(self, factory: FactorySet, store: Shelf) -> None:
        self.factory_first = False
        self._factory = factory
        self._store = store
        self._lock = threading.Lock()
        self._refused: dict[tuple[str, str], str] = {}
        """(model, payload) -> why not in this run."""

    def names(self) -> Sequence[str]:
        """Of the factory's models and those that came later, sorted."""
        stored = [model for model in self._store.models() if self._store.state(model).committed is not None]
        return sorted({*self._factory.names(), *stored})

    def current(self, model: str) -> Candidate:
        """The payload to serve, checked anew. Raises :class:`BadPayload`."""
        reasons: list[str] = []
        for look in self._in_order(model, reasons):
            try:
                found = look()
            except BadPayload as error:
                reasons += error.reasons
                continue
            refused = self.refused(model, found.payload)
            if not refused:
                return dataclasses.replace(found, rejected=(*found.rejected, *reasons))
            reasons.append(f"version {found.version} was tried in vain: {refused}")
        raise BadPayload(reasons or [f"there is no payload of {model}"])

    def refuse(self, candidate: Candidate, reason: str) -> bool:
        """Not to be served in this run. Whether there may be another; the last one stays, to be tried again."""
        with self._lock:
            self._refused[candidate.model, candidate.payload] = reason
        try:
            self.current(candidate.model)
        except BadPayload:
            with self._lock:
                del self._refused[candidate.model, candidate.payload]
            return False
        return True

    def refused(self, model: str, payload: str) -> str:
        """Why a payload is not served in this run; empty: it may be."""
        with self._lock:
            return self._refused.get((model, payload), "")

    def forgive(self, model: str, payload: str) -> None:
        """It serves after all."""
        with self._lock:
            self._refused.pop((model, payload), None)

    def factory(self, model: str) -> Candidate | None:
        """The one that came with the rootfs, if it is sound."""
        try:
            return self._factory.current(model) if model in self._factory.names() else None
        except BadPayload:
            return None

    def stored(self, model: str, payload: str) -> Candidate:
        """One of the store's, verified. Raises :class:`BadPayload`."""
        try:
            held = self._store.held(payload)
        except PayloadError as error:
            raise BadPayload([f"{payload[:12]}: {error}"]) from error
        except OSError as error:
            raise BadPayload([f"{payload[:12]}: {error.strerror}"]) from error
        return self.candidate(model, held)

    def candidate(self, model: str, held: Held) -> Candidate:
        """What has been verified, if it fits. Raises :class:`BadPayload`."""
        manifest: Mapping[str, Any] = held.payload.manifest
        found = candidate_of(held.folder, manifest)
        if found.model != model:
            raise BadPayload([f'it is a payload of the model "{found.model}"'])
        problems = self._factory.check(manifest)
        if problems:
            raise BadPayload([f"not for this runtime: {problem}" for problem in problems])
        return dataclasses.replace(found, payload=held.payload.sha256, source="store")

    def _in_order(self, model: str, reasons: list[str]) -> Iterator[Callable[[], Candidate]]:
        state = self._store.state(model)
        factory: Candidate | None = None
        if model in self._factory.names():
            try:
                factory = self._factory.current(model)
            except BadPayload as error:
                reasons += error.reasons
        newer = factory is not None and (
            self.factory_first or state.committed is None or factory.generation > state.committed.generation
        )
        of_the_rootfs = [lambda: factory] if factory is not None else []
        stored = [ref.id for ref in (state.committed, state.previous) if ref is not None]
        # Each verifies only when the one before it is no good.
        looks = [lambda ref=ref: self.stored(model, ref) for ref in stored]
        yield from [*of_the_rootfs, *looks] if newer else [*looks, *of_the_rootfs]
