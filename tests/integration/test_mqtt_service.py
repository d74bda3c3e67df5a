"""The whole way: an operator wishes for a model, a real service gets it over a real broker, and tells so."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import pytest

from armlet.payload.pack import pack
from armlet.payload.wish import Delivery
from armlet.updates import broker as brokers
from armlet.updates import wish as wishing
from armlet.updates.routes import Routes
from armlet.updates.send import Sender
from tests.conftest import ROOT
from tests.integration.test_service_payloads import DENSE, dense, runtime
from tests.mosquitto import DEVICE, PREFIX, Broker, Operator, until
from tests.served import HOST_ENVIRONMENT, ON_HOST, Device, host_library

STATE = f"{PREFIX}/models/dense/state"
BLOCK = 4096


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    passwords = tmp_path / "passwords"
    passwords.touch(0o600)
    for user in (DEVICE, "operator"):
        subprocess.run(["mosquitto_passwd", "-b", str(passwords), user, f"secret of {user}"], check=True)
        (tmp_path / f"{user}.secret").write_text(f"secret of {user}\n")
    acl = ROOT / "device" / "mqtt" / "armlet.acl"
    with Broker(tmp_path, f"password_file {passwords}\nacl_file {acl}\n") as running:
        yield running


def enter(client: paho.Client) -> None:
    client.username_pw_set("operator", "secret of operator")


def told(operator: Operator) -> dict[str, Any]:
    """The last state."""
    found = operator.of(STATE)
    return dict(json.loads(found[-1])) if found else {"state": "", "active": None}


@pytest.mark.slow
def test_a_model_by_blocks(tmp_path: Path, broker: Broker) -> None:
    text = f"""
[updates]
store = {tmp_path}/store
probation_seconds = 0

[mqtt]
host = 127.0.0.1
port = {broker.port}
device = {DEVICE}
username = {DEVICE}
password_file = {tmp_path}/{DEVICE}.secret
telemetry_seconds = 1
"""
    device = Device.make(tmp_path, library=host_library(), runtime=runtime(**DENSE), text=text)
    model, wish = dense(tmp_path)
    device.add(model, wish)
    newer = dataclasses.replace(wish, version="1.3.0", generation=4)
    archive = Path(pack(model, newer, signer=device.signer, delivery=Delivery(out=tmp_path / "new")).files["payload"])
    desired = wishing.wish(archive, key=tmp_path / "keys", block_size=BLOCK)
    access = brokers.Broker(host="127.0.0.1", port=broker.port, username="operator", password="secret of operator")
    ended = threading.Event()
    with (
        Operator(broker.port, ("armlet/#",), enter) as operator,
        device.serving(ON_HOST, HOST_ENVIRONMENT) as process,
        brokers.connected(access) as connection,
    ):
        sender = Sender(connection, Routes(), [wishing.archive(archive)], lambda _: None)
        thread = threading.Thread(target=sender.run, args=(ended.is_set,))
        thread.start()
        try:
            until(lambda: operator.of(f"{PREFIX}/availability") == [b"online"])
            connection.publish(f"{PREFIX}/models/dense/desired", wishing.message(desired), retain=True)
            until(lambda: told(operator)["state"] == "UPDATED", 60, json.dumps(told(operator)))
        finally:
            ended.set()
            thread.join()
        active = told(operator)["active"]
        assert (active["version"], active["payload"], active["source"]) == ("1.3.0", desired.payload, "store")
        states = list(dict.fromkeys(json.loads(message)["state"] for message in operator.of(STATE)))
        assert states[-4:] == ["DOWNLOADED", "VERIFIED", "TRIAL", "UPDATED"]
        blocks = -(-desired.archive_size // BLOCK)
        topic = f"{PREFIX}/models/dense/blocks/{desired.archive_sha256}/"
        assert blocks > 4
        assert {name for name, _, _ in operator.seen if name.startswith(topic)} == {
            f"{topic}{n}" for n in range(blocks)
        }
        assert device.json("/v2/models/dense")["versions"] == ["1.3.0"]
        until(lambda: operator.of(f"{PREFIX}/telemetry"))
        metrics = json.loads(operator.of(f"{PREFIX}/telemetry")[-1])["metrics"]
        assert metrics["armlet_ready"] == 1
        assert b"armlet_mqtt_connected 1" in device.ask("/metrics")[2]
        process.terminate()
        process.wait(30)
        until(lambda: operator.of(f"{PREFIX}/availability")[-1] == b"offline")
    assert list((tmp_path / "store" / "telemetry").glob("*")) == []
    # After a restart it serves what it was told, and says so without being asked.
    with Operator(broker.port, ("armlet/#",), enter) as operator, device.serving(ON_HOST, HOST_ENVIRONMENT):
        until(lambda: any(not retained for topic, _, retained in operator.seen if topic == STATE))
        until(lambda: told(operator)["active"] == active)
