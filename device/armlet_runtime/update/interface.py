"""What the parts of an update know of each other: the wish, the way its bytes come, what is tried, what is told.

Times are seconds of :func:`time.monotonic`; no decision hangs on the wall clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Literal, Protocol

State = Literal["IDLE", "DOWNLOADING", "DOWNLOADED", "VERIFIED", "TRIAL", "UPDATED", "FAILED", "ROLLED_BACK"]
Category = Literal[
    "",
    "manifest",
    "stale",
    "known_bad",
    "space",
    "store",
    "download",
    "damaged",
    "signature",
    "contract",
    "trial",
    "budget",
    "probation",
    "crashes",
    "interrupted",
]
"""Why an update came to nothing, for programs; empty where it did not."""


@dataclass(frozen=True)
class Desired:
    """What a device is to serve for a model: the message on ``models/<model>/desired``, once it has been checked.

    Either ``url`` or ``block_size`` says how the archive comes.
    """

    model: str
    version: str
    generation: int
    payload: str
    """sha256 of payload.json, in hex: the identity of a payload everywhere."""
    archive_size: int
    """Bytes."""
    archive_sha256: str
    url: str = ""
    block_size: int = 0
    """Bytes of each block but the last; 0: it comes by URL."""


@dataclass(frozen=True)
class Active:
    """What answers requests now."""

    version: str
    generation: int
    payload: str
    """sha256 of payload.json."""
    source: Literal["store", "factory"]


@dataclass(frozen=True)
class Report:
    """What ``models/<model>/state`` says, retained."""

    model: str
    state: State
    active: Active | None = None
    """Always what serves, whatever the state; None: nothing does."""
    desired: Desired | None = None
    phase: str = ""
    """Within TRIAL: "trial", "probation"."""
    category: Category = ""
    reason: str = ""
    """In words."""
    progress: float | None = None
    """Of the download, 0 to 1."""
    retry_seconds: float | None = None
    """Until it is tried again; None: not before another wish comes."""


class FetchError(Exception):
    """The archive did not come; ``again``: another try may help."""

    def __init__(self, category: Category, reason: str, again: bool = True) -> None:
        super().__init__(reason)
        self.category: Category = category
        self.reason = reason
        self.again = again


class Incoming(Protocol):
    """An archive on its way in, kept on disk so that a power loss costs little of it.

    It is cut into blocks of ``block_size`` bytes (the last one may be shorter). A block counts as there once it has
    been synced; one that was not is asked for again.
    """

    size: int
    block_size: int
    path: Path

    @property
    def blocks(self) -> int:
        """How many there are in all."""

    def missing(self) -> list[int]:
        """Numbers of the blocks that are not there, ascending."""

    def put(self, number: int, data: bytes) -> None:
        """Keeps a block; one that is there already is left alone.

        Raises ValueError where it has another length than that block has, OSError.
        """

    def sync(self) -> None:
        """Makes what was put last; ``put`` does so too, now and then. Raises OSError."""

    def discard(self) -> None:
        """Forgets all of it: it was not what was wanted."""


class Fetcher(Protocol):
    """A way for an archive to come."""

    def fetch(
        self, desired: Desired, into: Incoming, progress: Callable[[float], None], cancelled: Callable[[], bool]
    ) -> None:
        """Blocks until nothing is missing; what came stays where it does not get that far. Raises
        :class:`FetchError`, OSError where the disk fails."""


class BlockSource(Protocol):
    """Where blocks are asked for; they come by ``deliver`` of the fetcher, in any order, or never."""

    def want(self, desired: Desired, numbers: list[int]) -> bool:
        """Asks for blocks; False: there is no connection now."""


class Reporter(Protocol):
    """Tells the outside; each call is quick, raises nothing and takes any thread."""

    def report(self, report: Report) -> None:
        """A model's state, in place of the one before."""

    def alert(self, model: str, kind: str, text: str) -> None:
        """Something that somebody should look at."""
