"""The store of payloads: what an update does to the disk, one method for each step.

Every method takes any thread, and whatever a crash or a failed write cuts short counts as not done: the state before
it or the state after it is what the next start finds. A method that changes something raises :class:`StoreError`
where the store is read-only, and OSError where the disk fails; the same call may then be made again.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Callable, Collection, Iterator, Sequence

from armlet_runtime.payload import LIMIT_BYTES, Trusted
from armlet_runtime.refusal import KEY, LIBRARY, PayloadError
from armlet_runtime.signature import Verifier
from armlet_runtime.store.admission import Admission, Check, Held, Rules
from armlet_runtime.store.arrivals import Arrivals
from armlet_runtime.store.copies import Copies
from armlet_runtime.store.disk import Disk
from armlet_runtime.store.errors import StoreError
from armlet_runtime.store.filesystem import free_bytes
from armlet_runtime.store.lock import soon
from armlet_runtime.store.place import INCOMING, Place
from armlet_runtime.store.state import Bad, ModelState, Ref
from armlet_runtime.store.state_file import identity
from armlet_runtime.update.interface import Category, Desired, Incoming

MOST_ATTEMPTS = 3
"""Trials that one payload gets; a power loss in each of them makes it bad."""
MOST_STARTS = 5
"""Starts without a steady run, after which only payloads from the factory are served."""
RESERVE = 16 << 20
"""Bytes that an update leaves free."""


class Store:
    """One folder, one process."""

    def __init__(
        self,
        root: Path,
        keys: Trusted | None,
        check: Check,
        *,
        disk: Disk | None = None,
        limit: int = LIMIT_BYTES,
        reserve: int = RESERVE,
        verifier: Verifier | None = None,
    ) -> None:
        """Opens it, makes it where it is not there, and locks it until :meth:`close`.

        A folder that cannot be written, another owner, a state that a newer version wrote: all of them make it
        read-only, and what can be read counts.

        Args:
            root: its folder; the one above has to be there.
            keys: whose payloads are taken in; None: anybody's, also unsigned ones.
            check: what of a payload this runtime cannot do.
            disk: what changes the disk; a test's, perhaps.
            limit: bytes that the files of a payload may have together.
            reserve: bytes that an update leaves free.
            verifier: by default that of the library that is there.

        Raises:
            StoreError: ("store") it cannot even be read, or its file system is none that a store may be on.
        """
        self._root = root
        self._disk = disk or Disk()
        self._reserve = reserve
        self._mutex = threading.RLock()
        self._place = Place(self._disk, root)
        self._copies = Copies(self._disk, root)
        try:
            self._place.prepare(self._copies)
        except BaseException:
            self._place.close()
            raise
        self._arrivals = Arrivals(self._disk, root / INCOMING)
        self._admission = Admission(self._disk, root, Rules(keys, check, limit, verifier))

    @property
    def readonly(self) -> str:
        """Why nothing can be changed; empty: it can."""
        return self._place.readonly

    @property
    def notes(self) -> tuple[str, ...]:
        """What was found amiss when it was opened, in words."""
        return (*self._copies.notes, *self._place.notes)

    def close(self) -> None:
        """Gives the lock back, unless another thread is in the middle of a step: that ends as by a power loss."""
        with soon(self._mutex) as mine:
            if mine:
                self._arrivals.close()
                self._place.close()

    # What it knows. None of these touches the disk but ``has`` and ``held``.

    def models(self) -> Sequence[str]:
        """Those that there is a state of, sorted."""
        return sorted(self._copies.state.models)

    def state(self, model: str) -> ModelState:
        """An empty one for a model that was never updated."""
        return self._copies.state.of(model)

    @property
    def starts(self) -> int:
        """Since the last steady run, this one included."""
        return self._copies.state.starts

    @property
    def flapping(self) -> bool:
        """Whether the loop breaker holds: ``starts`` is above ``MOST_STARTS``."""
        return self.starts > MOST_STARTS

    def bad(self, model: str, payload: str) -> Bad | None:
        """Why a payload is not tried again; None: it is not known to be bad."""
        return next((one for one in self.state(model).bad if one.id == payload), None)

    def has(self, payload: str) -> bool:
        """Whether a payload is there: ``admit`` needs no archive then, as long as nothing happened to it."""
        return self._admission.has(identity(payload))

    def held(self, payload: str) -> Held:
        """A payload, every byte of it verified, its signature too; whether it fits the runtime is not looked at.

        Raises:
            PayloadError: it is refused.
            OSError: it is not there or cannot be read.
        """
        return self._admission.held(identity(payload))

    # An update, in the order of its steps.

    def demand_space(self, desired: Desired) -> None:
        """Raises:
        StoreError: ("space") there is no room for what is still missing of the archive, its files and the reserve.
        OSError: nobody can say.
        """
        if self.has(desired.payload):
            return
        there = self._arrivals.allocated(identity(desired.archive_sha256))
        # An archive is larger than its files together.
        wanted = max(0, desired.archive_size - there) + desired.archive_size + self._reserve
        free = free_bytes(self._root)
        if free < wanted:
            what = f"{self._root} has {free >> 10} KiB free, and the update takes {-(-wanted >> 10)} KiB"
            raise StoreError("space", what, "make room there, or give it a larger partition")

    def incoming(self, desired: Desired, block_size: int) -> Incoming:
        """Where the archive goes; the blocks that an earlier run synced are there.

        ``desired.block_size`` is what ``block_size`` is by blocks; by URL it is the fetcher's to choose. What came in
        blocks of another size counts where it makes whole ones of this size.
        """
        with self._changing():
            return self._arrivals.take(identity(desired.archive_sha256), desired.archive_size, block_size)

    def admit(self, desired: Desired) -> Held:
        """Verifies the archive (its sha256, then as a payload, then whether it is the wished one and fits the
        runtime), and keeps it as a payload; nothing of the archive remains, also where it was refused. One that
        ``has`` knows is verified where it is.

        Raises:
            StoreError: ("download") not all of the archive is there; ("damaged") it is not the one of the wish;
                ("manifest") it is another payload, model, version or generation; ("contract") it does not fit this
                runtime.
            PayloadError: it is refused.
        """
        name, _ = identity(desired.archive_sha256), identity(desired.payload)
        with self._changing():
            held = self._admission.kept(desired)
            if held is None:
                archive = self._arrivals.finished(name, desired.archive_size)
                if archive is None:
                    raise StoreError("download", "not all of the archive is there")
                try:
                    held = self._admission.unpacked(desired, archive)
                except (StoreError, PayloadError) as error:
                    if not (isinstance(error, PayloadError) and error.reason in (KEY, LIBRARY)):
                        self._forget(name)
                    raise
            self._forget(name)
            return held

    def begin_trial(self, model: str, ref: Ref) -> int:
        """Notes that a payload is tried from now on, in place of any other candidate; the attempts with this one.

        It may be the candidate already, also in probation (a boot): another attempt.

        Raises:
            StoreError: ("interrupted", and the payload is bad from then on) there were ``MOST_ATTEMPTS``;
                ("known_bad", "stale").
            ValueError: it is not in the store, or committed already.
        """
        with self._changing():
            category, reason = self.state(model).refusal_of(ref)
            if category:
                raise StoreError(category, reason)
            if not self.has(ref.id):
                raise ValueError(f"{ref.id} is not there")
            state = self.state(model).tried(ref)
            assert state.candidate is not None
            if state.candidate.attempts > MOST_ATTEMPTS:
                reason = f"each of {MOST_ATTEMPTS} trials was cut short: the device went down, or its worker was killed"
                self._change(model, lambda _: state.rejected("interrupted", reason))
                raise StoreError("interrupted", reason)
            self._change(model, lambda _: state)
            return state.candidate.attempts

    def begin_probation(self, model: str) -> None:
        """The candidate passed its trial and serves. Raises ValueError: there is none."""
        self._change(model, ModelState.on_probation)

    def commit(self, model: str) -> None:
        """The candidate is the committed one from now on, and that the previous. Raises ValueError: there is none."""
        self._change(model, ModelState.with_committed)

    def reject(self, model: str, category: Category, reason: str) -> None:
        """The candidate is bad; the committed one stays. Raises ValueError: there is none."""
        self._change(model, lambda state: state.rejected(category, reason))

    def withdraw(self, model: str) -> None:
        """There is no candidate any more, and it is not bad: it may be wished again."""
        self._change(model, ModelState.withdrawn)

    def revert(self, model: str, category: Category, reason: str) -> Ref | None:
        """The committed one is bad, the previous one is committed again: the new committed one, None: the factory's.

        Raises ValueError: nothing is committed.
        """
        self._change(model, lambda state: state.reverted(category, reason))
        return self.state(model).committed

    # Housekeeping.

    def started(self) -> int:
        """Counts a start of the service: call it once, first of all. ``starts``."""
        self._count(self.starts + 1)
        return self.starts

    def steady(self) -> None:
        """The service runs well: ``starts`` is 0 from now on. Cheap where it is 0 already."""
        if self.starts:
            self._count(0)

    def ended(self) -> None:
        """The service ends as it was told to: neither its starts nor a trial that this cuts short count."""
        with soon(self._mutex) as mine:
            if mine and self._copies.state.ended() != self._copies.state:
                self._place.demand(self._copies)
                self._copies.write(self._copies.state.ended())

    def collect(self, keep: Collection[str], *, arrivals: bool = True) -> int:
        """Removes what nobody needs, and answers how many bytes were freed. Also what an earlier run left half done:
        call it at the start too.

        It keeps the payloads that the state names, and of ``keep`` (payload ids, archives' sha256: the wishes in
        hand) payloads and incoming archives; without ``arrivals``, which is for as long as nobody knows what is
        wished, all of those.
        """
        with self._changing():
            self._copies.settle()
            self._place.sweep()
            return self._admission.sweep(self._copies.state.ids.union(keep)) + (
                self._arrivals.sweep(keep) if arrivals else 0
            )

    def _forget(self, archive: str) -> None:
        # What cannot be removed now is garbage later.
        with suppress(OSError):
            self._arrivals.forget(archive)

    def _count(self, starts: int) -> None:
        with self._changing():
            self._copies.write(replace(self._copies.state, starts=starts))

    def _change(self, model: str, how: Callable[[ModelState], ModelState]) -> None:
        with self._changing():
            before = self.state(model)
            after = how(before)
            if after != before:
                self._copies.write(self._copies.state.with_model(model, after))

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """One at a time. Raises StoreError, OSError where nothing can be changed."""
        with self._mutex:
            self._place.demand(self._copies)
            yield
