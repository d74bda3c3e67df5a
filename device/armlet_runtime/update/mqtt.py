"""The device's end of MQTT: wishes and blocks come in, states, telemetry and alerts go out.

Two threads. One is paho's: it connects, reads, and puts what comes into bounded boxes. The other one hands it over
and sends; what could not be sent goes to the spool. Those who report only ever touch memory.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import deque
from typing import Mapping, Protocol, Sequence

from armlet_runtime.serve.backoff import Backoff
from armlet_runtime.serve.exposition import Family, Labels, counter, gauge
from armlet_runtime.update import messages
from armlet_runtime.update.access import Access, BrokerError
from armlet_runtime.update.alerts import Outcomes
from armlet_runtime.update.broker import Link
from armlet_runtime.update.desired import WishError, parse
from armlet_runtime.update.interface import Category, Desired, Report
from armlet_runtime.update.mailbox import Block, Inbox, Outbox, Wish
from armlet_runtime.update.post import MOST_UNANSWERED, Post
from armlet_runtime.update.spool import Spool
from armlet_runtime.update.topics import MODEL, Topics

log = logging.getLogger("armlet.update")

_FAREWELL_SECONDS = 2.0
_AGAIN_SECONDS = 1.0


class Receiver(Protocol):
    """Takes wishes; each call is quick and raises nothing."""

    def wish(self, model: str, desired: Desired | None) -> None:
        """None: nobody wishes anything any more."""

    def refuse(self, model: str, category: Category, reason: str) -> None:
        """A message that was no wish."""


class Blocks(Protocol):
    """Takes blocks; each call is quick and raises nothing."""

    def deliver(self, archive: str, number: int, data: bytes) -> None:
        """``archive``: its sha256."""

    def again(self) -> None:
        """What was asked for before is not going to come: the connection is a new one."""


def reconnecting() -> Backoff:
    """From two seconds to five minutes."""
    return Backoff(first=2.0, longest=300.0, healthy=60.0)


class Mqtt:
    """A :class:`~.interface.Reporter`, a :class:`~.interface.BlockSource`, and a sink of snapshots."""

    def __init__(
        self,
        access: Access,
        topics: Topics,
        spool: Spool | None = None,
        *,
        largest: int = 512 << 20,
        backoff: Backoff | None = None,
    ) -> None:
        """``largest``: bytes that an archive may have."""
        self._access = access
        self._topics = topics
        self._largest = largest
        self._backoff = backoff or reconnecting()
        self._inbox, self._outbox = Inbox(), Outbox()
        self._post = Post(self._outbox, topics, spool, time.monotonic)
        self._answers: deque[tuple[Link, int, str]] = deque(maxlen=4 * MOST_UNANSWERED)
        self._refused: deque[str] = deque(maxlen=8)
        self._said: set[str] = set()
        self._lock = threading.Lock()
        self._outcomes = Outcomes()
        self._presence = messages.ONLINE
        self._something = threading.Event()
        self._ending = threading.Event()
        self._link: Link | None = None
        self._known: Link | None = None
        """That the carrying thread has seen open."""
        self._receiver: Receiver | None = None
        self._blocks: Blocks | None = None
        self._connections = 0
        self._threads = [
            threading.Thread(target=self._stay_connected, name="mqtt", daemon=True),
            threading.Thread(target=self._carry, name="mqtt-post", daemon=True),
        ]

    def start(self, receiver: Receiver, blocks: Blocks) -> None:
        """Connect, now and whenever the connection is lost; returns at once."""
        self._receiver, self._blocks = receiver, blocks
        for thread in self._threads:
            thread.start()

    def stop(self, seconds: float = _FAREWELL_SECONDS) -> None:
        """Say goodbye within that time, and keep what did not go out."""
        until = time.monotonic() + seconds
        self._post.idle.clear()
        self._presence = messages.OFFLINE
        self._outbox.state(self._topics.of("availability"), self._presence)
        self._something.set()
        while self.connected and time.monotonic() < until and not self._post.idle.wait(0.05):
            pass
        self._ending.set()
        self._something.set()
        link = self._link
        if link is not None:
            link.end(tell=True)
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(max(0.2, until - time.monotonic()))

    @property
    def connected(self) -> bool:
        """Whether messages go out now."""
        link = self._link
        return link is not None and link.ready.is_set()

    # Reporter, BlockSource, Sink: from any thread.

    def report(self, report: Report) -> None:
        """See :class:`~.interface.Reporter`."""
        self._outbox.state(self._topics.of("state", report.model), messages.state(report, time.time()))
        self._something.set()
        with self._lock:
            alert = self._outcomes.of(report)
        if alert is not None:
            self.alert(*alert)

    def alert(self, model: str, kind: str, text: str) -> None:
        """See :class:`~.interface.Reporter`."""
        self._outbox.alert(messages.alert(model, kind, text, time.time()))
        self._something.set()

    def want(self, desired: Desired, numbers: Sequence[int]) -> bool:
        """See :class:`~.interface.BlockSource`."""
        link = self._link
        if link is None or not link.ready.is_set():
            return False
        self._inbox.ask(desired.archive_sha256, desired.block_size, numbers)
        self._outbox.question(self._topics.of("wanted", desired.model), messages.wanted(desired, numbers), link)
        self._something.set()
        return True

    def write(self, snapshot: Mapping[str, float], when: float) -> None:
        """See :class:`armlet_runtime.serve.sinks.Sink`."""
        self._post.snapshot(messages.telemetry(snapshot, when))
        self._something.set()

    def families(self) -> list[Family]:
        """For /metrics."""
        dropped: dict[Labels, float] = {(("reason", why),): n for why, n in sorted(self._inbox.dropped.items())}
        lost = "Records of telemetry and alerts that were thrown away."
        return [
            gauge("armlet_mqtt_connected", "Whether there is a connection to the broker.", {(): int(self.connected)}),
            counter("armlet_mqtt_connections_total", "Connections that were made.", {(): self._connections}),
            counter("armlet_mqtt_dropped_total", "Messages that nobody read, by reason.", dropped),
            gauge("armlet_mqtt_spool_bytes", "Telemetry on disk.", {(): self._post.spooled}),
            counter("armlet_mqtt_lost_total", lost, {(): self._post.lost}),
        ]

    # Events of a link, in paho's thread.

    def opened(self) -> None:
        """See :class:`~.broker.Events`."""
        self._connections += 1
        self._something.set()

    def refused(self, topic: str) -> None:
        """See :class:`~.broker.Events`."""
        self._refused.append(f"the broker does not let us listen to {topic}: no update comes that way")
        self._something.set()

    def came(self, topic: str, payload: bytes) -> None:
        """See :class:`~.broker.Events`."""
        if self._inbox.put(self._topics.match(topic), topic, payload):
            self._something.set()

    def arrived(self, link: Link, number: int, refusal: str) -> None:
        """See :class:`~.broker.Events`."""
        if refusal:
            self._refused.append(f"the broker does not take a message of ours: {refusal}")
        self._answers.append((link, number, refusal))
        self._something.set()

    def _stay_connected(self) -> None:
        will = self._topics.of("availability"), messages.OFFLINE
        said = ""
        while not self._ending.is_set():
            since = 0.0
            try:
                link = self._link = Link(self._access, self, self._topics.filters, will)
                why = link.run()
                since = link.since
            except BrokerError as error:
                why = str(error)
            self._link = None
            self._something.set()
            if self._ending.is_set():
                return
            # A thousand devices that lost the same broker are not to come back all at once.
            wait = self._backoff.failed(time.monotonic() - since if since else 0.0) * random.uniform(0.5, 1.5)
            if since or why != said:
                where = f"{self._access.host}:{self._access.port}"
                log.warning("MQTT: %s: %s; it is tried again in %.1f s, and so on", where, why, wait)
            said = why
            self._ending.wait(wait)

    # What the other thread does.

    def _carry(self) -> None:
        while not self._ending.is_set():
            self._something.wait(self._post.pause(self._known is not None))
            self._something.clear()
            self._go_safely()
        self._go_safely()
        self._post.close()

    def _go_safely(self) -> None:
        try:
            self._go_round()
        except Exception:
            # Were the thread to end, no update would ever come again.
            log.exception("MQTT met what it should not")
            self._ending.wait(_AGAIN_SECONDS)

    def _go_round(self) -> None:
        self._hand_over()
        link = self._link
        if link is not None and not link.ready.is_set():
            link = None
        while self._answers:
            of, number, _ = self._answers.popleft()
            if of is self._known:
                self._post.answered(number)
        if link is not self._known:
            self._change(link)
        while self._refused:
            self._complain(self._refused.popleft())
        if link is None:
            self._post.keep()
        elif self._post.overdue():
            log.warning("MQTT: the broker acknowledges nothing")
            link.end()
        else:
            self._post.send(link)

    def _change(self, link: Link | None) -> None:
        if self._known is not None:
            self._post.closed()
        self._known = link
        if link is not None:
            log.info("MQTT: connected to %s:%d", self._access.host, self._access.port)
            self._outbox.state(self._topics.of("availability"), self._presence)
            self._post.opened()
            if self._blocks is not None:
                self._blocks.again()
            self._said.clear()

    def _complain(self, what: str) -> None:
        """Once for each connection."""
        if what not in self._said:
            self._said.add(what)
            log.error("MQTT: %s", what)

    def _hand_over(self) -> None:
        while True:
            item = self._inbox.take()
            if item is None:
                return
            if isinstance(item, Wish):
                self._hand_over_wish(item)
            elif isinstance(item, Block) and self._blocks is not None:
                self._blocks.deliver(item.archive, item.number, item.data)

    def _hand_over_wish(self, item: Wish) -> None:
        model = item.model or messages.model_of(item.message)
        if self._receiver is None or not MODEL.fullmatch(model):
            self._inbox.dropped["foreign"] += 1
            return
        try:
            desired = parse(item.message, model, largest=self._largest)
        except WishError as error:
            self._receiver.refuse(model, error.category, error.reason)
        else:
            self._receiver.wish(model, desired)
