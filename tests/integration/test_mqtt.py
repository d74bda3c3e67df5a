"""A device over a real broker: what is said when, and what survives which loss."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from armlet_runtime.update.interface import Active, Desired, Report
from armlet_runtime.update.topics import Topics

from tests.conftest import ROOT
from tests.fakes.cutting_proxy import CuttingProxy
from tests.mosquitto import OPEN, PREFIX, Broker, Operator, Recorder, device, until

SHA = "ab" * 32
WISH = {
    "schema": 1,
    "model": "m",
    "version": "1.2.0",
    "generation": 7,
    "payload": SHA,
    "archive": {"size": 70_000, "sha256": SHA},
    "blocks": {"size": 32768},
}
DESIRED = Desired("m", "1.2.0", 7, SHA, 70_000, SHA, block_size=32768)
VERSIONS = pytest.mark.parametrize("version5", [False, True], ids=["3.1.1", "5"])


def wish(**changes: object) -> bytes:
    return json.dumps({**WISH, **changes}).encode()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path) as running:
        yield running


@VERSIONS
def test_what_was_wished_for_before_the_device_is_there(broker: Broker, version5: bool) -> None:
    got = Recorder()
    with Operator(broker.port) as operator:
        operator.say(f"{PREFIX}/models/m/desired", wish(), retain=True)
        operator.say(f"{PREFIX}/models/n/desired", wish(), retain=True)
        with device(broker.port, got, version5=version5) as mqtt:
            until(lambda: got.wishes and got.refusals)
            assert got.wishes == [("m", DESIRED)]
            assert got.refusals[0][:2] == ("n", "manifest")
            mqtt.report(Report("m", "TRIAL", Active("1.1.0", 6, "cd" * 32, "store"), DESIRED, "probation"))
            until(lambda: operator.of(f"{PREFIX}/models/m/state"))
            operator.say(f"{PREFIX}/models/m/desired", b"", retain=True)
            until(lambda: ("m", None) in got.wishes)
        assert got.threads == {"mqtt-post"}
    with Operator(broker.port) as later:
        until(lambda: len(later.seen) >= 3)
        told = {topic: message for topic, message, retained in later.seen if retained}
    assert told[f"{PREFIX}/availability"] == b"offline"
    state = json.loads(told[f"{PREFIX}/models/m/state"])
    assert state.pop("at").endswith("Z")
    assert state == {
        "schema": 1,
        "model": "m",
        "state": "TRIAL",
        "active": {"version": "1.1.0", "generation": 6, "payload": "cd" * 32, "source": "store"},
        "desired": {"version": "1.2.0", "generation": 7, "payload": SHA},
        "phase": "probation",
        "category": "",
        "reason": "",
        "progress": None,
        "retry_seconds": None,
    }


@VERSIONS
def test_blocks_come_that_were_asked_for(broker: Broker, version5: bool) -> None:
    got = Recorder()
    with Operator(broker.port) as operator, device(broker.port, got, version5=version5) as mqtt:
        until(lambda: mqtt.connected)
        assert mqtt.want(DESIRED, [0, 2])
        until(lambda: operator.of(f"{PREFIX}/models/m/blocks/wanted"))
        asked = json.loads(operator.of(f"{PREFIX}/models/m/blocks/wanted")[0])
        assert (asked["archive"], asked["size"], asked["blocks"]) == (SHA, 32768, [0, 2])
        for number in (2, 1, 0, 2):
            operator.say(f"{PREFIX}/models/m/blocks/{SHA}/{number}", bytes([number]) * 100)
        until(lambda: len(got.blocks) == 2)
        assert got.blocks == [(SHA, 2, b"\2" * 100), (SHA, 0, b"\0" * 100)]


@VERSIONS
def test_what_was_said_while_the_device_was_away(broker: Broker, version5: bool) -> None:
    got = Recorder()
    with device(broker.port, got, version5=version5) as mqtt:
        until(lambda: mqtt._post.idle.is_set())
    with Operator(broker.port) as operator:
        operator.say(f"{PREFIX}/models/m/desired", wish())
        with device(broker.port, got, version5=version5):
            until(lambda: got.wishes == [("m", DESIRED)])


def test_the_broker_says_who_was_killed(broker: Broker) -> None:
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from tests.mosquitto import Recorder, device\n"
        "with device(int(sys.argv[1]), Recorder()):\n"
        "    time.sleep(600)\n"
    )
    environment = {**os.environ, "PYTHONPATH": f"{os.environ.get('PYTHONPATH', '')}:{ROOT}:{ROOT / 'device'}"}
    with Operator(broker.port, (f"{PREFIX}/availability",)) as operator:
        process = subprocess.Popen([sys.executable, "-c", program, str(broker.port)], env=environment)
        try:
            until(lambda: operator.of(f"{PREFIX}/availability") == [b"online"], 60)
        finally:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        until(lambda: operator.of(f"{PREFIX}/availability") == [b"online", b"offline"])


@VERSIONS
def test_a_broker_that_forgot_everything_is_told_again(broker: Broker, version5: bool) -> None:
    got = Recorder()
    with device(broker.port, got, version5=version5) as mqtt:
        for number in range(3):
            mqtt.report(Report(f"m{number}", "IDLE"))
        until(lambda: mqtt.connected)
        broker.kill()
        until(lambda: not mqtt.connected)
        mqtt.report(Report("m1", "FAILED", reason="of late", category="download"))
        broker.start()
        with Operator(broker.port) as operator:
            until(lambda: operator.of(f"{PREFIX}/models/m2/state"))
            until(lambda: operator.of(f"{PREFIX}/alerts"))
            assert json.loads(operator.of(f"{PREFIX}/models/m1/state")[-1])["reason"] == "of late"
            assert operator.of(f"{PREFIX}/availability")[-1] == b"online"
            operator.say(f"{PREFIX}/models/m/desired", wish())
            until(lambda: got.wishes)
        assert got.connections == 2


def test_telemetry_of_a_time_without_connection_comes_later_and_in_order(broker: Broker, tmp_path: Path) -> None:
    spool, spooled = tmp_path / "telemetry", [0]
    broker.kill()
    with device(broker.port, Recorder(), spool) as mqtt:
        for number in range(6):
            mqtt.write({"n": float(number)}, 1e9 + number)
            if number == 3:
                mqtt.alert("m", "drift", "text")
            spooled.append(mqtt._post.spooled)
            until(lambda: mqtt._post.spooled > spooled[-1])
    # As after a restart.
    with device(broker.port, Recorder(), spool) as mqtt:
        mqtt.write({"n": 6.0}, 1e9)
        until(lambda: mqtt._post.spooled > spooled[-1] + 1)
        broker.start()
        with Operator(broker.port) as operator:
            until(lambda: len(operator.of(f"{PREFIX}/telemetry")) == 7)
            found = [json.loads(message)["metrics"]["n"] for message in operator.of(f"{PREFIX}/telemetry")]
            assert found == [float(number) for number in range(7)]
            assert [json.loads(message)["kind"] for message in operator.of(f"{PREFIX}/alerts")] == ["drift"]
            until(lambda: not mqtt._post.spooled)
            mqtt.write({"n": 7.0}, 1e9)
            until(lambda: len(operator.of(f"{PREFIX}/telemetry")) == 8)
    assert list(spool.iterdir()) == []


def ours() -> int:
    """Threads but the proxy's, of which there are as many as connections that it has not seen end."""
    return sum(thread.name != "proxy" for thread in threading.enumerate())


def test_a_line_that_is_cut_again_and_again(broker: Broker) -> None:
    got, chance = Recorder(), random.Random(6)
    with CuttingProxy(broker.port, chance, least=0.05, most=0.6) as proxy, Operator(broker.port) as operator:
        with device(proxy.port, got) as mqtt:
            threads = ours()
            end = time.monotonic() + 6
            number = 0
            while time.monotonic() < end:
                number += 1
                mqtt.report(Report("m", "IDLE", reason=str(number)))
                mqtt.write({"n": float(number)}, 0)
                operator.say(f"{PREFIX}/models/m/desired", wish(generation=number), retain=True)
                time.sleep(0.02)
            assert proxy.cut > 5
            assert ours() <= threads + 2
            proxy.hold()
            until(lambda: got.wishes and got.wishes[-1][1] and got.wishes[-1][1].generation == number)
            until(lambda: mqtt.connected)
            states = f"{PREFIX}/models/m/state"
            until(lambda: json.loads(operator.of(states)[-1])["reason"] == str(number))
            assert operator.of(f"{PREFIX}/availability")[-1] == b"online"
        generations = [desired.generation for _, desired in got.wishes if desired]
        assert generations[-1] == max(generations)


def test_topics_of_another_fleet(broker: Broker) -> None:
    topics = Topics(
        "dev-1",
        templates={"desired": "devices/{device}/model/update", "state": "devices/{device}/model/{model}/status"},
    )
    got = Recorder()
    with device(broker.port, got, topics=topics) as mqtt, Operator(broker.port) as operator:
        until(lambda: mqtt.connected)
        operator.say("devices/dev-1/model/update", wish())
        operator.say("devices/dev-1/model/update", wish(model="n"))
        operator.say("devices/dev-1/model/update", b"")
        operator.say("devices/dev-2/model/update", wish(model="o"))
        mqtt.report(Report("m", "IDLE"))
        until(lambda: operator.of("devices/dev-1/model/m/status"))
        until(lambda: [model for model, _ in got.wishes] == ["m", "n"])


def test_a_session_of_somebody_else_is_not_asked_for_blocks(tmp_path: Path) -> None:
    got = Recorder()
    with Broker(tmp_path, OPEN) as broker, device(broker.port, got) as mqtt:
        until(lambda: mqtt.connected)
        broker.kill()
        until(lambda: not mqtt.connected)
        assert not mqtt.want(DESIRED, [0])
