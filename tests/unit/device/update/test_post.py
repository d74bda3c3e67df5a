"""What goes out when, how much at a time, and what is kept."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from armlet_runtime.store.disk import Disk
from armlet_runtime.update.mailbox import Outbox
from armlet_runtime.update.post import ANSWER_SECONDS, BACKLOG_SECONDS, MOST_UNANSWERED, Post
from armlet_runtime.update.spool import Spool
from armlet_runtime.update.topics import Topics

TOPICS = Topics("d")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Link:
    """Takes messages until it ``breaks``."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, bytes, bool]] = []
        self.breaks = False

    def publish(self, topic: str, payload: bytes, retain: bool) -> int | None:
        if self.breaks:
            return None
        self.sent.append((topic.rpartition("/")[2], payload, retain))
        return len(self.sent)


class Place:
    """A post, and everything around it."""

    def __init__(self, folder: Path | None, most: int = 1 << 20) -> None:
        self.clock, self.outbox = Clock(), Outbox()
        self.spool = Spool(folder, Disk(), most, 1e9, self.clock) if folder is not None else None
        self.post = Post(self.outbox, TOPICS, self.spool, self.clock)

    def send(self, link: Any) -> list[bytes]:
        """What goes out now."""
        before = len(link.sent)
        self.post.send(link)
        return [payload for _, payload, _ in link.sent[before:]]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "telemetry")


def test_questions_before_states_before_alerts_before_telemetry(place: Place) -> None:
    link: Any = Link()
    place.post.snapshot(b"telemetry")
    place.outbox.alert(b"alert")
    place.outbox.state("t/state", b"state")
    place.outbox.question("t/wanted", b"question", link)
    assert place.send(link) == [b"question", b"state", b"alert", b"telemetry"]
    assert [retained for _, _, retained in link.sent] == [False, True, False, False]
    assert not place.post.idle.is_set()
    for number in range(1, 5):
        place.post.answered(number)
    place.post.send(link)
    assert place.post.idle.is_set()


def test_no_more_under_way_than_may_be(place: Place) -> None:
    link: Any = Link()
    for number in range(100):
        place.outbox.state(f"t/{number}", b"%d" % number)
    assert len(place.send(link)) == MOST_UNANSWERED
    assert place.send(link) == []
    place.post.answered(3)
    place.post.answered(3)
    assert place.send(link) == [b"16"]
    place.clock.now += ANSWER_SECONDS + 1
    assert place.post.overdue()


def test_what_is_old_goes_out_slowly_beside_what_is_new(place: Place) -> None:
    link: Any = Link()
    for number in range(20):
        place.post.snapshot(b"%d" % number)
        place.post.keep()
    place.clock.now += 1
    assert place.send(link) == [b"0"]
    assert place.send(link) == []
    assert place.post.pause(True) < BACKLOG_SECONDS * 1.01
    assert place.post.pause(False) == 1.0
    place.post.snapshot(b"new")
    place.clock.now += BACKLOG_SECONDS * 1.01
    assert place.send(link) == [b"new", b"1"]
    for number in range(1, 40):
        place.post.answered(number)
        place.clock.now += BACKLOG_SECONDS * 1.01
        place.post.send(link)
    assert [payload for _, payload, _ in link.sent] == [b"0", b"new", *(b"%d" % number for number in range(1, 20))]
    assert place.spool is not None
    assert len(place.spool) == 0


def test_what_did_not_arrive_is_sent_over_the_next_connection(place: Place) -> None:
    first: Any = Link()
    second: Any = Link()
    place.post.snapshot(b"old")
    place.post.keep()
    place.clock.now += 1
    place.post.snapshot(b"t1")
    place.post.snapshot(b"t2")
    place.outbox.alert(b"a")
    assert place.send(first) == [b"a", b"t1", b"t2", b"old"]
    place.post.answered(2)
    place.post.closed()
    for _ in range(10):
        place.clock.now += 1
        place.post.send(second)
    assert second.sent == [("telemetry", b"old", False), ("alerts", b"a", False), ("telemetry", b"t2", False)]


def test_a_connection_that_breaks_while_it_is_used(place: Place) -> None:
    link: Any = Link()
    link.breaks = True
    place.post.snapshot(b"t")
    place.outbox.alert(b"a")
    place.clock.now += 1
    place.post.send(link)
    place.post.keep()
    link.breaks = False
    for _ in range(3):
        place.clock.now += 1
        place.post.send(link)
    assert sorted(payload for _, payload, _ in link.sent) == [b"a", b"t"]


def test_without_a_disk_the_alerts_stay() -> None:
    place = Place(None)
    for number in range(30):
        place.post.snapshot(b"t%d" % number)
        place.outbox.alert(b"a%d" % number)
        place.post.keep()
    assert place.post.lost == 30
    link: Any = Link()
    assert place.send(link) == [b"a%d" % number for number in range(MOST_UNANSWERED)]
    place.post.closed()
    for number in range(100):
        place.post.answered(number)
        place.post.send(link)
    assert {payload for _, payload, _ in link.sent} == {b"a%d" % number for number in range(30)}


def test_days_without_connection(tmp_path: Path) -> None:
    place = Place(tmp_path / "telemetry", most=200_000)
    tracemalloc.start()
    try:
        memory = 0
        for minute in range(3 * 24 * 60):
            place.clock.now += 60
            place.outbox.state("t/state", b"%d" % minute)
            place.outbox.alert(b"%d" % minute)
            place.post.snapshot(b"%09d" % minute * 100)
            place.post.keep()
            if minute == 24 * 60:
                memory = tracemalloc.get_traced_memory()[0]
        assert tracemalloc.get_traced_memory()[0] - memory < 50_000
    finally:
        tracemalloc.stop()
    assert sum(file.stat().st_size for file in (tmp_path / "telemetry").iterdir()) <= 200_000
    assert place.post.lost > 8_000
