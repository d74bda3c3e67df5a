"""What goes on beside updates: payloads whose workers crash again and again, starts that do not last, old files."""

from __future__ import annotations

import logging
from typing import Callable, Collection, Sequence

from armlet_runtime.serve.payloads import Candidate
from armlet_runtime.store.errors import StoreError
from armlet_runtime.update.course import Course
from armlet_runtime.update.ending import Watch
from armlet_runtime.update.interface import Desired

log = logging.getLogger("armlet.update")


class Caretaker:
    """Blocks, in the updater's thread. ``now``: seconds, of the agent's clock, when it begins."""

    def __init__(self, course: Course, models: Callable[[], Sequence[str]], now: float) -> None:
        self._course = course
        self._store, self._board, self._catalogue = course.store, course.board, course.catalogue
        self._models = models
        self._hopeless: set[tuple[str, str]] = set()
        self._steady_at = now + course.rules.steady_seconds
        self._behind = self._catalogue.factory_first
        """Whether some model may serve another payload than the best, since the loop breaker held at the start."""

    def look(self, now: float, watch: Watch) -> bool:
        """Notes that the service runs steadily, once it does. Whether payloads of the store may serve again by that."""
        if now < self._steady_at:
            return False
        self._steady_at = now + self._course.rules.steady_seconds
        if self._behind:
            # The starts are not forgotten yet: should the service end again by this, the next start is careful.
            self._behind = self._catalogue.factory_first = False
            log.warning("payloads of the store may serve again: the service ran steadily")
            for model in self._models():
                self._course.serve_best(model, watch)
            return True
        try:
            self._store.steady()
        except (OSError, StoreError) as error:
            log.warning("a steady run could not be noted: %s", error)
        return False

    def give_back(self, payload: Candidate, how: str, watch: Watch) -> bool:
        """Has another payload served in place of one that crashes; whether that one is not to blame, and may be had
        anew."""
        model, state = payload.model, self._store.state(payload.model)
        serving = self._course.engine.serving(model)
        tried = state.candidate is not None and state.candidate.ref.id == payload.payload_sha256
        if tried or (serving is not None and serving.payload_sha256 != payload.payload_sha256):
            # A candidate is judged by its probation.
            return False
        if payload.source == "store" and not self._course.is_sound(model, payload.payload_sha256):
            self._course.serve_best(model, watch)
            self._board.tell(model, "FAILED", category="damaged", reason=f"the disk has damaged it: {how}")
            return True
        reason = f"{how}, again and again"
        if not self._catalogue.refuse(payload, reason):
            if (model, payload.payload_sha256) not in self._hopeless:
                self._hopeless.add((model, payload.payload_sha256))
                self._board.alert(model, "crashes", f"{reason}, and there is no other payload")
            return False
        if state.committed is not None and state.committed.id == payload.payload_sha256:
            try:
                self._store.revert(model, "crashes", reason)
            except (OSError, StoreError) as error:
                self._board.alert(model, "store", f"the state could not be written: {error}")
        self._course.serve_best(model, watch)
        self._board.tell(model, "ROLLED_BACK", category="crashes", reason=reason)
        return False

    def is_new(self, desired: Desired) -> bool:
        """Whether a wish is for a payload that was never tried here."""
        state = self._store.state(desired.model)
        candidate = state.candidate.ref if state.candidate is not None else None
        known = {ref.id for ref in (state.committed, candidate) if ref is not None}
        return desired.payload not in known and not state.refusal(desired)[0]

    def collect(self, hoped: Collection[Desired] | None) -> None:
        """Removes what nobody needs; ``hoped``: wishes that may yet be fulfilled; None: nobody knows yet."""
        keep = {key for wish in hoped or () for key in (wish.payload, wish.archive_sha256)}
        # In this run a payload may serve that the state does not name any more, or not yet.
        serving = [self._course.engine.serving(model) for model in self._models()]
        keep |= {one.payload_sha256 for one in serving if one is not None}
        try:
            self._store.collect(keep, arrivals=hoped is not None)
        except (OSError, StoreError) as error:
            log.warning("what is not needed any more could not be removed: %s", error)
