"""What goes out: in which order, how much at a time, and what becomes of it where it does not arrive. One thread."""

from __future__ import annotations

import threading
from collections import deque
from typing import Callable, Mapping, NamedTuple

from armlet_runtime.update.broker import Link
from armlet_runtime.update.mailbox import Outbox
from armlet_runtime.update.spool import Record, Spool
from armlet_runtime.update.topics import Kind, Topics

MOST_UNANSWERED = 16
"""Messages that the broker has not acknowledged."""
BACKLOG_SECONDS = 0.1
"""Between two records of the spool, so that what is new has its way."""
_MOST_BACKLOG = 4
ANSWER_SECONDS = 120.0
"""A broker that takes longer to acknowledge a message is left."""
_LOOK_SECONDS = 1.0
_MOST_SNAPSHOTS = 8

_KINDS: Mapping[bytes, Kind] = {b"T": "telemetry", b"A": "alerts"}
"""First byte of a record of the spool -> its topic."""


class _Sent(NamedTuple):
    at: float
    record: Record | None = None
    """Of the spool."""
    kept: bytes = b""
    """What goes back if it does not arrive: a letter of ``_KINDS`` and the message."""


class Post:
    """``snapshot`` takes any thread; the others are one thread's."""

    def __init__(self, outbox: Outbox, topics: Topics, spool: Spool | None, clock: Callable[[], float]) -> None:
        """Without a spool, telemetry of a time without connection is lost, and the last alerts stay in memory."""
        self._outbox = outbox
        self._topics = topics
        self._spool = spool
        self._clock = clock
        self._snapshots: deque[bytes] = deque(maxlen=_MOST_SNAPSHOTS)
        self._sent: dict[int, _Sent] = {}
        self._backlog_at = clock()
        self._lost = 0
        self._bytes = len(spool) if spool else 0
        self.idle = threading.Event()
        """Set while the broker has all that it was to have, but for the spool."""

    def snapshot(self, message: bytes) -> None:
        """Telemetry."""
        if len(self._snapshots) == _MOST_SNAPSHOTS:
            self._lost += 1
        self._snapshots.append(message)

    @property
    def lost(self) -> int:
        """Records that were thrown away."""
        return self._lost + (self._spool.dropped if self._spool else 0)

    @property
    def spooled(self) -> int:
        """Bytes on disk."""
        return self._bytes

    def pause(self, connected: bool) -> float:
        """Seconds after which there may be something to do without anybody's having said so."""
        backlog = connected and self._spool is not None and self._spool.waiting
        return max(0.0, min(_LOOK_SECONDS, self._backlog_at - self._clock())) if backlog else _LOOK_SECONDS

    def opened(self) -> None:
        """A connection is there, and the broker may have forgotten everything."""
        self._outbox.again()

    def closed(self) -> None:
        """The connection is gone: what did not arrive is kept."""
        sent, self._sent = list(self._sent.values()), {}
        for one in sent:
            if one.kept:
                self._keep(one.kept)
        if self._spool is not None:
            self._spool.rewind()

    def answered(self, number: int) -> None:
        """The broker has a message, or does not want it; more than once is no harm."""
        one = self._sent.pop(number, None)
        if one is not None and one.record is not None and self._spool is not None:
            self._spool.done(one.record)

    def overdue(self) -> bool:
        """Whether the broker has not acknowledged something for too long."""
        return any(self._clock() - one.at > ANSWER_SECONDS for one in self._sent.values())

    def send(self, link: Link) -> None:
        """As much as may be under way."""
        while len(self._sent) < MOST_UNANSWERED and self._send_one(link):
            self.idle.clear()
        if not self._sent and not self._snapshots and self._outbox.idle:
            self.idle.set()
        self._bytes = len(self._spool) if self._spool else 0

    def keep(self) -> None:
        """Nothing can be sent: telemetry and alerts go to the spool."""
        while self._snapshots:
            self._keep(b"T" + self._snapshots.popleft())
        while self._spool is not None:
            alert = self._outbox.next_alert()
            if alert is None:
                break
            self._keep(b"A" + alert)
        self._bytes = len(self._spool) if self._spool else 0

    def close(self) -> None:
        """All that is left is kept."""
        self.closed()
        self.keep()
        if self._spool is not None:
            self._spool.close()

    def _keep(self, kept: bytes) -> None:
        if self._spool is not None:
            self._spool.append(kept)
        elif kept[:1] == b"A":
            self._outbox.back([kept[1:]])
        else:
            self._lost += 1

    def _send_one(self, link: Link) -> bool:
        """Whether something went out."""
        question = self._outbox.next_question(link)
        if question is not None:
            return self._publish(link, *question, _Sent(self._clock()))
        state = self._outbox.next_state()
        if state is not None:
            # One that does not get out is told again after the next connection, as all are.
            return self._publish(link, *state, _Sent(self._clock()), retain=True)
        kept = self._next_kept()
        if kept:
            went = self._publish(link, self._topics.of(_KINDS[kept[:1]]), kept[1:], _Sent(self._clock(), kept=kept))
            if not went:
                self._keep(kept)
            return went
        return self._send_backlog(link)

    def _next_kept(self) -> bytes:
        alert = self._outbox.next_alert()
        if alert is not None:
            return b"A" + alert
        return b"T" + self._snapshots.popleft() if self._snapshots else b""

    def _send_backlog(self, link: Link) -> bool:
        now = self._clock()
        under_way = sum(one.record is not None for one in self._sent.values())
        if self._spool is None or now < self._backlog_at or under_way >= _MOST_BACKLOG:
            return False
        self._backlog_at = now + BACKLOG_SECONDS
        record = self._spool.next()
        if record is None:
            return False
        kind = _KINDS.get(record.data[:1])
        if kind is None:
            self._spool.done(record)
            return True
        return self._publish(link, self._topics.of(kind), record.data[1:], _Sent(now, record))

    def _publish(self, link: Link, topic: str, message: bytes, sent: _Sent, retain: bool = False) -> bool:
        number = link.publish(topic, message, retain)
        if number is not None:
            self._sent[number] = sent
        return number is not None
