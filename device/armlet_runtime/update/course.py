"""The way of one update, from the wish to the payload that serves, or back."""

from __future__ import annotations

import errno
import time
from dataclasses import dataclass
from typing import Callable, Mapping

from armlet_runtime import refusal
from armlet_runtime.refusal import PayloadError
from armlet_runtime.serve.payloads import BadPayload, Candidate
from armlet_runtime.serve.slot import Activation
from armlet_runtime.serve.tally import Seen
from armlet_runtime.store.admission import Held
from armlet_runtime.store.errors import StoreError
from armlet_runtime.store.state import Ref
from armlet_runtime.store.store import Store
from armlet_runtime.update.board import Board
from armlet_runtime.update.catalogue import StoredSet
from armlet_runtime.update.ending import End, Ended, Interrupted, Watch
from armlet_runtime.update.interface import Category, Desired, Fetcher, FetchError
from armlet_runtime.update.needs import Engine
from armlet_runtime.update.probation import Verdict, judge
from armlet_runtime.update.settings import Updates

URL_BLOCK = 64 << 10
"""Bytes: what a power loss costs of a download by URL, at most."""
LOOK_SECONDS = 1.0
_LEAST_LOOK = 0.05
_PROGRESS_SECONDS = 2.0
_WRITE_AGAIN_SECONDS = 10.0
_TRIES = 5

_REFUSED: Mapping[str, Category] = {
    refusal.SIGNATURE: "signature",
    refusal.LIBRARY: "signature",
    refusal.KEY: "signature",
    refusal.DAMAGED: "damaged",
}
_AGAIN = frozenset({"space", "store", "damaged"})
"""What may be otherwise the next time."""


@dataclass(frozen=True)
class Course:
    """Blocks, in the updater's thread."""

    store: Store
    engine: Engine
    catalogue: StoredSet
    fetchers: Mapping[str, Fetcher]
    """"url", "blocks"."""
    board: Board
    rules: Updates
    clock: Callable[[], float] = time.monotonic

    def follow(self, desired: Desired, watch: Watch) -> End | None:
        """None: interrupted."""
        try:
            self._demand_new(desired)
            candidate = self._obtained(desired, watch)
            if self._is_committed(desired):
                return self._mended(desired, watch)
            before = self._tried(desired, candidate, watch)
            return self._watched(desired, candidate, before, watch)
        except Interrupted:
            return None
        except Ended as ended:
            return ended.end
        except StoreError as error:
            again = error.category in _AGAIN and not self.store.readonly
            return End("FAILED", error.category, str(error), again)
        except PayloadError as error:
            category = _REFUSED.get(error.reason, "manifest")
            return End("FAILED", category, str(error), category in _AGAIN)
        except BadPayload as error:
            return End("FAILED", "contract", str(error))
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            what = f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)
            return End("FAILED", "space" if full else "store", what, again=True)

    def serve_best(self, model: str, watch: Watch) -> bool:
        """Have what the catalogue names served, or what comes after it; False: nothing of it could be."""
        for number in range(_TRIES):
            try:
                best = self.catalogue.current(model)
            except BadPayload as error:
                self.board.alert(model, "nothing_serves", str(error))
                return False
            serving = self.engine.serving(model)
            if serving is not None and serving.payload_sha256 == best.payload_sha256:
                return True
            done = self.engine.attempt(Activation(best, serial=self.rules.swap == "serial"))
            if not done.reason or watch.stopping():
                return not done.reason
            if done.fault == "trial":
                self.catalogue.refuse(best, done.reason)
            watch.pause(LOOK_SECONDS * 2**number)
        self.board.alert(model, "nothing_serves", done.reason)
        return False

    def _demand_new(self, desired: Desired) -> None:
        """Raises Ended for a wish that is fulfilled already, or never will be."""
        model, payload = desired.model, desired.payload
        state, serving = self.store.state(model), self.engine.serving(model)
        tried = state.candidate is not None and state.candidate.ref.id == payload
        if serving is not None and serving.payload_sha256 == payload and not tried:
            raise Ended(End("UPDATED"))
        factory = self.catalogue.factory(model)
        if factory is not None and desired.generation <= factory.generation:
            if tried:
                self._noted(model, lambda: self.store.withdraw(model))
            told = f"generation {desired.generation} is not above {factory.generation}, which came with the rootfs"
            raise Ended(End("FAILED", "stale", told))
        if self._is_committed(desired) and self.is_sound(model, payload):
            raise Ended(self._not_now(desired))
        category, reason = state.refusal(desired)
        if category and not tried:
            raise Ended(End("FAILED", category, reason))
        if self.store.readonly:
            raise Ended(End("FAILED", "store", self.store.readonly))

    def _is_committed(self, desired: Desired) -> bool:
        committed = self.store.state(desired.model).committed
        return committed is not None and committed.id == desired.payload

    def is_sound(self, model: str, payload: str) -> bool:
        """Whether a payload of the store is as it was when it came."""
        try:
            self.catalogue.stored(model, payload)
        except BadPayload:
            return False
        return True

    def _not_now(self, desired: Desired) -> End:
        refused = self.catalogue.refused(desired.model, desired.payload)
        why = refused or "another payload serves until the next start"
        return End("FAILED", "trial", f"it was good, and failed when it was loaded: {why}")

    def _mended(self, desired: Desired, watch: Watch) -> End:
        """What was committed was damaged on the disk, and has come anew."""
        self.serve_best(desired.model, watch)
        serving = self.engine.serving(desired.model)
        served = serving is not None and serving.payload_sha256 == desired.payload
        return End("UPDATED") if served else self._not_now(desired)

    def _obtained(self, desired: Desired, watch: Watch) -> Candidate:
        model = desired.model
        if not desired.archive_size:
            return self._left(desired)
        held = self._there(desired)
        if held is None:
            self.store.demand_space(desired)
            self._download(desired, watch)
            self.board.tell(model, "DOWNLOADED", desired=desired)
            held = self.store.admit(desired)
        self.board.tell(model, "VERIFIED", desired=desired)
        return self.catalogue.candidate(model, held)

    def _there(self, desired: Desired) -> Held | None:
        """What needs no download; None: it is not there, or not any more, since it was damaged."""
        if not self.store.has(desired.payload):
            return None
        try:
            return self.store.admit(desired)
        except StoreError as error:
            if error.category != "download":
                raise
            return None

    def _left(self, desired: Desired) -> Candidate:
        """The candidate of the last run; one that is no good any more is forgotten, and may be wished again."""
        try:
            return self.catalogue.stored(desired.model, desired.payload)
        except BadPayload as error:
            self.store.withdraw(desired.model)
            raise Ended(End("FAILED", "damaged", str(error))) from error

    def _download(self, desired: Desired, watch: Watch) -> None:
        way = "blocks" if desired.block_size else "url"
        fetcher = self.fetchers.get(way)
        if fetcher is None:
            raise Ended(End("FAILED", "download", f"this device takes no archives by {way}"))
        incoming = self.store.incoming(desired, desired.block_size or URL_BLOCK)
        told = 0.0

        def progress(share: float) -> None:
            nonlocal told
            if self.clock() - told >= _PROGRESS_SECONDS:
                told = self.clock()
                self.board.tell(desired.model, "DOWNLOADING", desired=desired, progress=share)

        progress(1.0 - len(incoming.missing()) / max(1, incoming.blocks))
        try:
            fetcher.fetch(desired, incoming, progress, watch.cancelled)
        except FetchError as error:
            if watch.cancelled():
                raise Interrupted from error
            raise Ended(End("FAILED", error.category, error.reason, error.again)) from error

    def _tried(self, desired: Desired, candidate: Candidate, watch: Watch) -> Seen:
        """The payload serves now. What served before."""
        model, before = desired.model, self.engine.serving(desired.model)
        if watch.stopping():
            raise Interrupted
        self.store.begin_trial(model, Ref(candidate.payload_sha256, candidate.version, candidate.generation))
        self.board.tell(model, "TRIAL", desired=desired, phase="trial")
        old = self.engine.seen(model, before.payload_sha256) if before is not None else Seen()
        done = self.engine.attempt(Activation(candidate, judged=True, serial=self.rules.swap == "serial"))
        if not done.reason:
            return old
        if done.fault in ("trial", "budget"):
            category: Category = "budget" if done.fault == "budget" else "trial"
            self.store.reject(model, category, done.reason)
            raise Ended(End("FAILED", category, done.reason))
        if watch.stopping():
            raise Interrupted
        raise Ended(End("FAILED", "trial", done.reason, again=True))

    def _watched(self, desired: Desired, candidate: Candidate, old: Seen, watch: Watch) -> End:
        model = desired.model
        self._noted(model, lambda: self.store.begin_probation(model))
        self.board.tell(model, "TRIAL", desired=desired, phase="probation")
        began, share, budget = self.clock(), self._share(model), candidate.manifest.get("budget") or {}
        verdict = Verdict("wait")
        while verdict.kind == "wait":
            if watch.stopping():
                raise Interrupted
            serving, newest = self.engine.serving(model), watch.newest()
            if serving is None or serving.payload_sha256 != candidate.payload_sha256:
                self._noted(model, lambda: self.store.withdraw(model))
                return End("FAILED", "probation", "another payload was loaded meanwhile, or this one was unloaded")
            committed = self.store.state(model).committed
            if newest is not None and committed is not None and newest.payload == committed.id:
                self._noted(model, lambda: self.store.withdraw(model))
                self.serve_best(model, watch)
                return End("FAILED", "probation", "it was withdrawn: the payload before is wished again")
            seen, now = self.engine.seen(model, candidate.payload_sha256), self._share(model)
            elapsed = self.clock() - began
            verdict = judge(
                self.rules,
                elapsed,
                seen,
                old,
                budget_ms=budget.get("p95_ms"),
                share_then=share,
                share_now=now,
            )
            if verdict.kind == "wait":
                watch.pause(min(LOOK_SECONDS, max(_LEAST_LOOK, self.rules.probation_seconds - elapsed)))
        if verdict.kind == "bad":
            return self._rolled_back(model, verdict, watch)
        self._committed(desired, watch)
        self.catalogue.forgive(model, candidate.payload_sha256)
        return End("UPDATED")

    def _rolled_back(self, model: str, verdict: Verdict, watch: Watch) -> End:
        self._noted(model, lambda: self.store.reject(model, verdict.category, verdict.reason))
        self.serve_best(model, watch)
        return End("ROLLED_BACK", verdict.category, verdict.reason)

    def _noted(self, model: str, do: Callable[[], None]) -> None:
        """What serves does not hang on it: at worst the next start tries the candidate again, a few times at most."""
        try:
            do()
        except (OSError, StoreError) as error:
            self.board.alert(model, "store", f"the state could not be written: {error}")

    def _committed(self, desired: Desired, watch: Watch) -> None:
        while True:
            try:
                self.store.commit(desired.model)
                self.store.steady()
                return
            except (OSError, StoreError) as error:
                told = f"it serves, and cannot be committed yet: {error}"
                how = {"desired": desired, "phase": "probation", "category": "store", "reason": told}
                self.board.tell(desired.model, "TRIAL", **how, retry_seconds=_WRITE_AGAIN_SECONDS)
                until = self.clock() + _WRITE_AGAIN_SECONDS
                while self.clock() < until:
                    if watch.stopping():
                        raise Interrupted from error
                    watch.pause(LOOK_SECONDS)

    def _share(self, model: str) -> Mapping[str, float]:
        return next((info.provider_share for info in self.engine.models() if info.name == model), {})
