"""Brokers and senders that mean no good: nothing they do ends a thread, fills the memory or stops what comes next."""

from __future__ import annotations

import random
import threading
import time
import tracemalloc
from collections.abc import Iterable
from pathlib import Path

import pytest
from armlet_runtime.update import broker as connection
from armlet_runtime.update import post
from armlet_runtime.update.interface import Desired, Report

from tests.fakes.rude_broker import CONNECT, PUBLISH, SUBSCRIBE, RudeBroker, header, packet, polite, publish
from tests.integration.test_mqtt import DESIRED, SHA, wish
from tests.mosquitto import OPEN, PREFIX, Broker, Operator, Recorder, device, until

WISHES = f"{PREFIX}/models/m/desired".encode()
MESSAGES = 10_000
_AT_ONCE = 100
MOST_MEMORY = 8 << 20
"""Bytes that all of MQTT may take: wishes, blocks, a packet, and what Python needs to read one."""


class Slow(Recorder):
    """Takes its time, so that messages pile up."""

    def wish(self, model: str, desired: Desired | None) -> None:
        time.sleep(0.002)
        super().wish(model, desired)

    def refuse(self, model: str, category: object, reason: str) -> None:
        time.sleep(0.002)


def hostile(chance: random.Random, number: int) -> tuple[str, bytes]:
    topics = (
        f"{PREFIX}/models/m/desired",
        f"{PREFIX}/models/m{number}/desired",
        f"{PREFIX}/models/{'x' * 200}/desired",
        f"{PREFIX}/models/Ä {number}/desired",
        f"{PREFIX}/models/m/blocks/{SHA}/{number % 3}",
        f"{PREFIX}/models/m/blocks/{chance.randbytes(32).hex()}/0",
        f"{PREFIX}/models/m/blocks/..%2f/-1",
    )
    messages = (
        b"",
        b"{",
        b"[" * 10_000,
        chance.randbytes(chance.randrange(20_000)),
        wish(generation=number)[: chance.randrange(1, 200)],
        wish(generation=number, model="n"),
        b"x" * 40_000,
    )
    return chance.choice(topics), chance.choice(messages)


def test_ten_thousand_messages(tmp_path: Path) -> None:
    got, chance = Slow(), random.Random(6)
    flood = [hostile(chance, number) for number in range(MESSAGES)]
    limits = "max_queued_messages 0\nmax_queued_bytes 0\n"
    with Broker(tmp_path, OPEN + limits) as broker, Operator(broker.port, ("nothing",)) as operator:
        tracemalloc.start()
        try:
            with device(broker.port, got) as mqtt:
                until(lambda: mqtt.connected)
                mqtt.want(DESIRED, [0, 1, 2])
                threads = threading.active_count()
                before = tracemalloc.get_traced_memory()[0]
                tracemalloc.reset_peak()
                for start in range(0, MESSAGES, _AT_ONCE):
                    operator.say_many(flood[start : start + _AT_ONCE])
                operator.say(f"{PREFIX}/models/m/desired", wish(generation=99_999))
                last = Desired("m", "1.2.0", 99_999, SHA, 70_000, SHA, block_size=32768)
                until(lambda: ("m", last) in got.wishes, 60)
                now, most = tracemalloc.get_traced_memory()
                assert threading.active_count() == threads
        finally:
            tracemalloc.stop()
    # The sender's own messages are in the same process: it keeps those that are under way.
    assert most - before < MOST_MEMORY + _AT_ONCE * 40_000
    assert now - before < MOST_MEMORY
    assert len(got.blocks) <= 3
    assert {model for model, _ in got.wishes} <= {"m", "n", *(f"m{number}" for number in range(MESSAGES))}


def test_a_message_of_fifty_megabytes_takes_no_memory() -> None:
    size = 50 << 20
    body = len(WISHES) + 4 + size

    def reply(kind: int, body_: bytes) -> Iterable[bytes]:
        yield from polite(kind, body_)
        if kind == PUBLISH:
            return
        if kind == SUBSCRIBE and b"desired" in body_:
            yield header(0x32, body) + len(WISHES).to_bytes(2, "big") + WISHES + b"\0\1"
            piece = b"x" * (1 << 16)
            for _ in range(size >> 16):
                yield piece
            yield publish(WISHES.replace(b"/m/", b"/n/"), wish(model="n"), number=2)

    got = Recorder()
    tracemalloc.start()
    try:
        with RudeBroker(reply) as broker, device(broker.port, got):
            until(lambda: got.wishes, 60)
            most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [refusal[:2] for refusal in got.refusals] == [("m", "manifest")]
    assert [model for model, _ in got.wishes] == ["n"]
    assert most < MOST_MEMORY
    assert broker.connections == 1


NONSENSE = {
    "no packet": b"\xff" * 64,
    "a topic longer than the packet": packet(0x32, b"\xff\xffabc"),
    "an empty publication": packet(0x32, b""),
    "an acknowledgement without a number": packet(0x40, b""),
    "an answer to nothing": packet(0x90, b"\0\7\1"),
    "a second welcome": packet(0x20, b"\0\0"),
    "a length that never ends": b"\x30\xff\xff\xff\xff\xff",
    "another one's packet": packet(0x82, b"\0\1\0\1#\0"),
    "QoS 3": packet(0x36, b"\0\1a\0\1x"),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_packets_that_make_no_sense(name: str) -> None:
    rude = True

    def reply(kind: int, body: bytes) -> Iterable[bytes]:
        nonlocal rude
        yield from polite(kind, body)
        if kind == SUBSCRIBE and b"desired" in body:
            if rude:
                rude = False
                yield publish(b"\xff\xfe/no text", b"x")
                yield NONSENSE[name]
            yield publish(WISHES, wish(), number=3)

    got = Recorder()
    with RudeBroker(reply) as broker, device(broker.port, got) as mqtt:
        until(lambda: got.wishes or broker.connections > 1, what=name)
        until(lambda: got.wishes, 40, name)
        mqtt.report(Report("m", "IDLE"))
        until(lambda: mqtt._post.idle.is_set() and mqtt.connected)


def test_nobody_listens_where_the_broker_forbids_it(caplog: pytest.LogCaptureFixture) -> None:
    with RudeBroker(lambda kind, body: polite(kind, body, granted=0x80)) as broker, device(broker.port, Recorder()):
        until(lambda: f"does not let us listen to {PREFIX}/models/+/desired" in caplog.text)
    assert caplog.text.count("does not let us listen") == 2


def test_a_broker_that_says_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 0.5)
    with RudeBroker(lambda *_: []) as broker, device(broker.port, Recorder()):
        until(lambda: broker.connections >= 3)


def test_a_broker_that_acknowledges_nothing_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(post, "ANSWER_SECONDS", 1.0)

    def reply(kind: int, body: bytes) -> Iterable[bytes]:
        return [] if kind == PUBLISH else polite(kind, body)

    with RudeBroker(reply) as broker, device(broker.port, Recorder(), tmp_path / "telemetry") as mqtt:
        for number in range(8):
            mqtt.write({"n": float(number)}, 0)
        until(lambda: broker.connections >= 3)
        assert len(mqtt._post._sent) <= post.MOST_UNANSWERED
        # What was never acknowledged is kept.
        until(lambda: mqtt._post.spooled)


def test_half_messages_do_not_pile_up(caplog: pytest.LogCaptureFixture) -> None:
    def reply(kind: int, body: bytes) -> Iterable[bytes]:
        yield from polite(kind, body)
        if kind == SUBSCRIBE and b"desired" in body:
            for number in range(1, 2000):
                yield publish(WISHES, b"x" * 1000, qos=2, number=number)

    with RudeBroker(reply) as broker, device(broker.port, Recorder()):
        until(lambda: broker.connections >= 2)
    assert "QoS 2" in caplog.text


def test_a_caller_never_waits_for_the_network() -> None:
    def reply(kind: int, body: bytes) -> Iterable[bytes]:
        if kind == CONNECT:
            return polite(kind, body)
        time.sleep(1)
        return []

    with RudeBroker(reply) as broker, device(broker.port, Recorder()) as mqtt:
        until(lambda: mqtt.connected)
        began = time.monotonic()
        for number in range(2000):
            mqtt.report(Report(f"m{number % 300}", "IDLE", reason="x" * 500))
            mqtt.alert("m", "drift", "text")
            mqtt.write({"n": 1.0}, 0)
        assert time.monotonic() - began < 2
