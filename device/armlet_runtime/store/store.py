"""The store of payloads: what an update does to the disk, one method for each step.

Every method takes any thread, and whatever a crash or a failed write cuts short counts as not done: the state before
it or the state after it is what the next start finds. A method that changes something raises :class:`StoreError`
where the store is read-only, and OSError where the disk fails; the same call may then be made again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Collection, Mapping, NamedTuple, Sequence

from armlet_runtime.payload import LIMIT_BYTES, Payload, Trusted
from armlet_runtime.signature import Verifier
from armlet_runtime.store.disk import Disk
from armlet_runtime.store.state import Bad, ModelState, Ref
from armlet_runtime.update.interface import Category, Desired, Incoming

MOST_ATTEMPTS = 3
"""Trials that one payload gets; a power loss in each of them makes it bad."""
MOST_STARTS = 5
"""Starts without a steady run, after which only payloads from the factory are served."""
RESERVE = 16 << 20
"""Bytes that an update leaves free."""

Check = Callable[[Mapping[str, Any]], Sequence[str]]
"""payload.json -> in words, what of it this runtime cannot do."""


class StoreError(Exception):
    """The store does not do it. ``category`` is as in a report, ``reason`` a sentence, ``hint`` what mends it."""

    def __init__(self, category: Category, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.category: Category = category
        self.reason = reason
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.reason} ({self.hint})" if self.hint else self.reason


class Held(NamedTuple):
    """A payload in the store, verified just now."""

    folder: Path
    payload: Payload

    @property
    def ref(self) -> Ref:
        """As the state names it."""
        raise NotImplementedError


class Store:
    """One folder, one process. ``readonly`` is empty, or why nothing can be changed; ``notes`` what was found amiss."""

    readonly: str
    notes: tuple[str, ...]

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

        Raises:
            StoreError: ("store") it cannot even be read, or its file system is none that a store may be on.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Gives the lock back."""

    # What it knows. None of these touches the disk but ``held``.

    def models(self) -> Sequence[str]:
        """Those that there is a state of, sorted."""
        raise NotImplementedError

    def state(self, model: str) -> ModelState:
        """An empty one for a model that was never updated."""
        raise NotImplementedError

    @property
    def starts(self) -> int:
        """Since the last steady run, this one included."""
        raise NotImplementedError

    @property
    def flapping(self) -> bool:
        """Whether the loop breaker holds: ``starts`` is above ``MOST_STARTS``."""
        raise NotImplementedError

    def has(self, payload: str) -> bool:
        """Whether a payload is there: ``admit`` needs no archive then."""
        raise NotImplementedError

    def held(self, payload: str) -> Held:
        """A payload, every byte of it verified, its signature too; whether it fits the runtime is not looked at.

        Raises:
            PayloadError: it is refused.
            OSError: it is not there or cannot be read.
        """
        raise NotImplementedError

    # An update, in the order of its steps.

    def demand_space(self, desired: Desired) -> None:
        """Raises:
        StoreError: ("space") there is no room for what is still missing of the archive, its files and the reserve.
        """
        raise NotImplementedError

    def incoming(self, desired: Desired, block_size: int) -> Incoming:
        """Where the archive goes; the blocks that an earlier run synced are there.

        One of another block size or length begins anew. ``desired.block_size`` is what ``block_size`` is by blocks;
        by URL it is the fetcher's to choose.
        """
        raise NotImplementedError

    def admit(self, desired: Desired) -> Held:
        """Verifies the archive (its sha256, then as a payload, then whether it is the wished one and fits the
        runtime), and keeps it as a payload; nothing of the archive remains where it was refused. One that ``has``
        knows is verified where it is.

        Raises:
            StoreError: ("damaged") the archive is not the one of the wish, or not whole; ("manifest") it is another
                model, version or generation; ("contract") it does not fit this runtime.
            PayloadError: it is refused.
        """
        raise NotImplementedError

    def begin_trial(self, model: str, ref: Ref) -> int:
        """Notes that a payload is tried from now on, in place of any other candidate; the attempts with this one.

        It may be the candidate already, also in probation (a boot): another attempt. Raises StoreError
        ("interrupted", and the payload is bad from then on) above ``MOST_ATTEMPTS``, ("known_bad"), ("stale").
        """
        raise NotImplementedError

    def begin_probation(self, model: str) -> None:
        """The candidate passed its trial and serves. Raises ValueError: there is none."""

    def commit(self, model: str) -> None:
        """The candidate is the committed one from now on, and that the previous. Raises ValueError: there is none."""

    def reject(self, model: str, category: Category, reason: str) -> None:
        """The candidate is bad; the committed one stays. Raises ValueError: there is none."""

    def withdraw(self, model: str) -> None:
        """There is no candidate any more, and it is not bad: it may be wished again."""

    def revert(self, model: str, category: Category, reason: str) -> Ref | None:
        """The committed one is bad, the previous one is committed again: the new committed one, None: the factory's.

        Raises ValueError: nothing is committed.
        """
        raise NotImplementedError

    # Housekeeping.

    def started(self) -> int:
        """Counts a start of the service: call it once, first of all. ``starts``."""
        raise NotImplementedError

    def steady(self) -> None:
        """The service runs well: ``starts`` is 0 from now on. Cheap where it is 0 already."""

    def collect(self, keep: Collection[str]) -> int:
        """Removes what nobody needs, and answers how many bytes were freed.

        It keeps the payloads that the state names, and of ``keep`` (payload ids, archives' sha256: the wishes in
        hand) payloads and incoming archives.
        """
        raise NotImplementedError

    def bad(self, model: str, payload: str) -> Bad | None:
        """Why a payload is not tried again; None: it is not known to be bad."""
        raise NotImplementedError
