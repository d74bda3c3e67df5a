"""What waits between paho's thread and ours, within bounds: a flood costs messages, never memory."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict, deque
from typing import Iterable, NamedTuple, Sequence

from armlet_runtime.update.topics import Match

MOST_WISHES = 64
LARGEST_WISH = 16 << 10
"""Bytes; one more is kept, so that whoever reads it sees that it is too long."""
MOST_BLOCKS = 8
"""That are asked for, and that wait to be taken."""
MOST_STATES = 256
MOST_ALERTS = 64


class Wish(NamedTuple):
    """A message on ``desired``; ``model`` is empty where the topic does not have it."""

    model: str
    message: bytes


class Block(NamedTuple):
    """A message on ``block`` that was asked for."""

    archive: str
    number: int
    data: bytes


class Inbox:
    """What came. Takes any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wishes: OrderedDict[tuple[str, bytes], Wish] = OrderedDict()
        self._blocks: deque[Block] = deque()
        self._asked: OrderedDict[tuple[str, int], int] = OrderedDict()
        self.dropped: Counter[str] = Counter()
        """Messages by why nobody read them."""

    def ask(self, archive: str, size: int, numbers: Sequence[int]) -> None:
        """Blocks of up to ``size`` bytes that are let in from now on; the oldest of too many are not any more."""
        with self._lock:
            for number in numbers:
                self._asked[archive, number] = size
                self._asked.move_to_end((archive, number))
            while len(self._asked) > MOST_BLOCKS:
                self._asked.popitem(last=False)

    def put(self, match: Match | None, topic: str, message: bytes) -> bool:
        """Whether it was let in."""
        with self._lock:
            why = self._put_locked(match, topic, message)
            if why:
                self.dropped[why] += 1
            return not why

    def take(self) -> Wish | Block | None:
        """The next one; None: there is none."""
        with self._lock:
            if self._blocks:
                return self._blocks.popleft()
            return self._wishes.popitem(last=False)[1] if self._wishes else None

    def _put_locked(self, match: Match | None, topic: str, message: bytes) -> str:
        if match is None:
            return "foreign"
        if match.kind == "block":
            # Only the first answer to a question counts.
            size = self._asked.get((match.archive, match.block))
            if size is None:
                return "unasked"
            if not 0 < len(message) <= size:
                return "size"
            if len(self._blocks) >= MOST_BLOCKS:
                return "full"
            del self._asked[match.archive, match.block]
            self._blocks.append(Block(match.archive, match.block, message))
            return ""
        message = message[: LARGEST_WISH + 1]
        key = topic, b"" if match.model else message
        self._wishes[key] = Wish(match.model, message)
        self._wishes.move_to_end(key)
        if len(self._wishes) > MOST_WISHES:
            self._wishes.popitem(last=False)
            return "full"
        return ""


class Outbox:
    """What is to be told. Takes any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._states: OrderedDict[str, bytes] = OrderedDict()
        self._unsent: dict[str, None] = {}
        self._questions: deque[tuple[str, bytes, object]] = deque(maxlen=MOST_BLOCKS)
        self._alerts: deque[bytes] = deque(maxlen=MOST_ALERTS)

    def state(self, topic: str, message: bytes) -> None:
        """In place of the one before."""
        with self._lock:
            self._states[topic] = message
            self._states.move_to_end(topic)
            self._unsent[topic] = None
            while len(self._states) > MOST_STATES:
                oldest, _ = self._states.popitem(last=False)
                self._unsent.pop(oldest, None)

    def question(self, topic: str, message: bytes, link: object) -> None:
        """For that connection only: on another one it will be asked again, as will the oldest of too many."""
        with self._lock:
            self._questions.append((topic, message, link))

    def alert(self, message: bytes) -> None:
        """The oldest of too many is lost."""
        with self._lock:
            self._alerts.append(message)

    def again(self) -> None:
        """All states are told anew: a broker may have forgotten them."""
        with self._lock:
            self._unsent = dict.fromkeys(self._states)

    def back(self, alerts: Iterable[bytes]) -> None:
        """Alerts that did not arrive, in order."""
        with self._lock:
            self._alerts.extendleft(list(alerts)[::-1][: MOST_ALERTS - len(self._alerts)])

    @property
    def idle(self) -> bool:
        """Whether all that is to be told has been taken."""
        with self._lock:
            return not (self._unsent or self._questions or self._alerts)

    def next_state(self) -> tuple[str, bytes] | None:
        """(topic, message); it counts as told."""
        with self._lock:
            topic = next(iter(self._unsent), None)
            if topic is None:
                return None
            del self._unsent[topic]
            return topic, self._states[topic]

    def next_question(self, link: object) -> tuple[str, bytes] | None:
        """(topic, message) of a connection; those of others are forgotten."""
        with self._lock:
            while self._questions:
                topic, message, of = self._questions.popleft()
                if of is link:
                    return topic, message
            return None

    def next_alert(self) -> bytes | None:
        """The oldest."""
        with self._lock:
            return self._alerts.popleft() if self._alerts else None
