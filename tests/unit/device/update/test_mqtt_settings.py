"""Section [mqtt]: what it means, and everything that is wrong with it at once."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from armlet_runtime.serve import config
from armlet_runtime.serve.exposition import Family, gauge
from armlet_runtime.serve.sinks import FileSink
from armlet_runtime.update import connect, messages
from armlet_runtime.update.access import LACKING, Access
from armlet_runtime.update.mqtt_settings import FIELDS, READERS, TOPIC
from armlet_runtime.update.topics import TEMPLATES
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

from tests.certificates import Authority
from tests.conftest import ROOT


def parsed(text: str) -> config.DeviceConfig:
    return config.parse(text, "f")


def told(text: str) -> list[str]:
    with pytest.raises(config.ConfigError) as caught:
        parsed(text)
    return caught.value.problems


def test_no_section_no_mqtt() -> None:
    assert parsed("").mqtt is None
    assert connect.make(parsed("")) is None
    assert connect.problems(parsed(""), "f") == []


def test_a_host_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "gateway-7")
    found = parsed("[mqtt]\nhost = broker.example\n").mqtt
    assert found is not None
    assert found.access() == Access("broker.example", 1883, "armlet-gateway-7")
    assert found.topics().of("state", "m") == "armlet/v1/gateway-7/models/m/state"


def test_every_key(tmp_path: Path) -> None:
    values = {
        "host": "[::1]",
        "protocol": "5",
        "device": "d1",
        "client_id": "c 1",
        "prefix": "fleet/{device}",
        "keepalive": "30",
        "username": "u",
        "password_file": "/p",
        "tls": "yes",
        "ca": "/ca",
        "cert": "/cert",
        "key": "/key",
        "telemetry_seconds": "0",
        "spool_mb": "2.5",
        "spool_days": "3",
        "disk_low_mb": "0",
        "topic_desired": "devices/{device}/model/update",
    }
    found = parsed("[mqtt]\n" + "".join(f"{key} = {value}\n" for key, value in values.items())).mqtt
    assert found is not None
    assert found.access() == Access(
        "::1", 8883, "c 1", 30, "u", Path("/p"), True, Path("/ca"), Path("/cert"), Path("/key"), True
    )
    assert found.topics().filters == ("devices/d1/model/update", "fleet/d1/models/+/blocks/+/+")
    assert (found.telemetry_seconds, found.spool_mb, found.spool_days, found.disk_low_mb) == (0, 2.5, 3, 0)


def test_each_field_has_a_key() -> None:
    assert {*FIELDS, *(TOPIC + kind for kind in TEMPLATES)} == set(READERS)


def test_everything_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "a host")
    found = told(
        "[mqtt]\nkey = /k\nca = /c\npassword_file = /p\nprefix = a/+/b\n"
        "topic_state = {prefix}/models/{model}/desired\nprot = 1\nport = 0\ntopic_block = a/b\n"
    )
    assert [line.split(" ")[0] for line in found] == [f"f:{n}:" for n in (1, 1, 2, 2, 3, 4, 5, 7, 8, 9)]
    assert "did you mean port?" in found[7] or "did you mean protocol?" in found[7]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("host", "a b"),
        ("host", "https://broker"),
        ("protocol", "3.1"),
        ("device", "a/b"),
        ("device", "+"),
        ("client_id", ""),
        ("keepalive", "1"),
        ("spool_mb", "nan"),
        ("topic_alerts", "{prefix}/telemetry"),
    ],
)
def test_a_value_that_is_none(key: str, value: str) -> None:
    host = "" if key == "host" else "host = h\n"
    found = told(f"[mqtt]\n{host}device = d\n{key} = {value}\n".replace("device = d\ndevice", "device"))
    assert any(key in line for line in found)


def test_a_library_that_is_missing_is_said_and_the_service_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "paho.mqtt.client", None)
    monkeypatch.setitem(sys.modules, "paho.mqtt", None)
    found = parsed("\n[mqtt]\nhost = h\ndevice = d\n")
    assert connect.problems(found, "f") == [f"f:2: [mqtt] {LACKING}"]
    assert connect.make(found) is None
    assert LACKING in caplog.text


def test_files_are_looked_at_before_anybody_connects(tmp_path: Path) -> None:
    (tmp_path / "no.pem").write_text("nothing")
    text = (
        f"[mqtt]\nhost = h\ndevice = d\ntls = yes\nca = {tmp_path}/no.pem\nusername = u\n"
        f"password_file = {tmp_path}/gone\n"
    )
    found = connect.problems(parsed(text), "f")
    assert [str(tmp_path / "gone") in found[0], str(tmp_path / "no.pem") in found[1]] == [True, True]
    assert len(found) == 2


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for key in ("ca", "cert"):
        text = f"[mqtt]\nhost = h\ndevice = d\ntls = yes\n{key} = {tmp_path}/pipe\n"
        assert connect.problems(parsed(text), "f") == [f"f:1: [mqtt] {tmp_path}/pipe is no file"]


def test_telemetry_is_what_a_file_has(tmp_path: Path) -> None:
    numbers = {'b{x="1"}': 2.0, "a": 0.1}
    FileSink(tmp_path / "f").write(numbers, 1e9)
    assert json.loads(messages.telemetry(numbers, 1e9)) == json.loads((tmp_path / "f").read_text())


class Mqtt:
    def __init__(self) -> None:
        self.written: list[dict[str, float]] = []
        self.alerts: list[tuple[str, str, str]] = []

    def write(self, numbers: dict[str, float], when: float) -> None:
        self.written.append(numbers)

    def alert(self, *alert: str) -> None:
        self.alerts.append((alert[0], alert[1], alert[2]))


@pytest.mark.parametrize(("period", "snapshots"), [(60, 2), (0, 0)])
def test_the_pulse(period: int, snapshots: int) -> None:
    asked, now = 0, 0.0

    def families() -> list[Family]:
        nonlocal asked
        asked += 1
        labels = (("model", "m"), ("input", "x"), ("of", "values"))
        return [gauge("armlet_input_drift_band", "", {labels: 1.0})]

    mqtt: Any = Mqtt()
    pulse = connect.Pulse(
        parsed(f"[mqtt]\nhost = h\ndevice = d\ntelemetry_seconds = {period}\n"), mqtt, clock=lambda: now
    )
    for second in range(125):
        now = float(second)
        pulse(families, lambda: ())
    assert len(mqtt.written) == snapshots
    assert [kind for _, kind, _ in mqtt.alerts] == ["drift"]
    assert asked <= 14


AT_A_TERMINAL = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from armlet_runtime.serve import config
from armlet_runtime.update import connect
print(connect.problems(config.parse(sys.argv[1], "f"), "f"))
"""


def test_nobody_is_asked_for_the_password_of_a_key(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
    pair = Authority(tmp_path, "ca").vouch("d")
    pair.key.write_bytes(locked)
    text = f"[mqtt]\nhost = h\ndevice = d\ntls = yes\ncert = {pair.cert}\nkey = {pair.key}\n"
    ours, theirs = os.openpty()
    command = [sys.executable, "-c", AT_A_TERMINAL, text]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "device")}
    try:
        run = subprocess.run(
            command, stdin=theirs, capture_output=True, env=environment, start_new_session=True, timeout=30, check=True
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert str(pair.key).encode() in run.stdout
