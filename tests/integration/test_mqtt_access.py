"""Who gets in at a real broker, and who may say what there: TLS, certificates, passwords, the ACL that we ship."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import pytest
from armlet_runtime.update.interface import Report

from tests.certificates import Authority, Pair
from tests.conftest import ROOT
from tests.integration.test_mqtt import wish
from tests.mosquitto import OPEN, PREFIX, Broker, Operator, Recorder, device, until

ACL = ROOT / "device" / "mqtt" / "armlet.acl"
EXAMPLE = ROOT / "device" / "mqtt" / "mosquitto.conf"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"), "authority")


@pytest.fixture(scope="module")
def server(authority: Authority) -> Pair:
    return authority.vouch("broker")


def over_tls(folder: Path, authority: Authority, server: Pair, text: str = OPEN) -> Broker:
    return Broker(folder, text, f"cafile {authority.ca}\ncertfile {server.cert}\nkeyfile {server.key}\n")


def with_certificate(authority: Authority, name: str) -> Callable[[paho.Client], None]:
    pair = authority.vouch(name)
    return lambda client: client.tls_set(str(authority.ca), str(pair.cert), str(pair.key))


def with_password(user: str) -> Callable[[paho.Client], None]:
    return lambda client: client.username_pw_set(user, f"secret of {user}")


def said(caplog: pytest.LogCaptureFixture, words: str) -> None:
    until(lambda: words in caplog.text, what=words)


@pytest.mark.parametrize("version5", [False, True], ids=["3.1.1", "5"])
def test_tls_with_an_authority_of_ones_own(tmp_path: Path, authority: Authority, server: Pair, version5: bool) -> None:
    got = Recorder()
    access: dict[str, Any] = {"tls": True, "ca": authority.ca, "version5": version5}
    with over_tls(tmp_path, authority, server) as broker, device(broker.port, got, **access) as mqtt:
        until(lambda: mqtt.connected)
        mqtt.report(Report("m", "IDLE"))
        with Operator(broker.port, prepare=lambda client: client.tls_set(str(authority.ca))) as operator:
            until(lambda: operator.of(f"{PREFIX}/models/m/state"))


def test_another_authority_is_not_believed(
    tmp_path: Path, authority: Authority, server: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    other = Authority(tmp_path, "other")
    with over_tls(tmp_path, authority, server) as broker:
        foreign: list[dict[str, Any]] = [{"ca": other.ca}, {}]
        for access in foreign:
            caplog.clear()
            with device(broker.port, Recorder(), tls=True, **access) as mqtt:
                said(caplog, "the broker's certificate is not accepted")
                assert not mqtt.connected


def test_a_broker_that_wants_a_certificate(
    tmp_path: Path, authority: Authority, server: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    pair = authority.vouch("dev-1")
    stranger = Authority(tmp_path, "stranger").vouch("stranger-1")
    with over_tls(tmp_path, authority, server, f"{OPEN}require_certificate true\n") as broker:
        with device(broker.port, Recorder(), tls=True, ca=authority.ca, cert=pair.cert, key=pair.key) as mqtt:
            until(lambda: mqtt.connected)
        foreign: list[dict[str, Any]] = [{}, {"cert": stranger.cert, "key": stranger.key}]
        for access in foreign:
            caplog.clear()
            with device(broker.port, Recorder(), tls=True, ca=authority.ca, **access) as mqtt:
                said(caplog, "it is tried again")
                assert not mqtt.connected


@pytest.mark.parametrize("version5", [False, True], ids=["3.1.1", "5"])
def test_a_password_from_a_file(tmp_path: Path, caplog: pytest.LogCaptureFixture, version5: bool) -> None:
    passwords, secret = tmp_path / "passwords", tmp_path / "secret"
    subprocess.run(["mosquitto_passwd", "-b", "-c", str(passwords), "dev-1", "a word"], check=True)
    passwords.chmod(0o600)
    access: dict[str, Any] = {"username": "dev-1", "password_file": secret, "version5": version5}
    text = f"allow_anonymous false\npassword_file {passwords}\n"
    with Broker(tmp_path, text) as broker, device(broker.port, Recorder(), **access) as mqtt:
        said(caplog, "secret: No such file or directory")
        secret.write_text("another word\n")
        said(caplog, "refuses")
        assert "uthori" in caplog.text
        assert not mqtt.connected
        # The next attempt reads the file again.
        secret.write_text("a word\n")
        until(lambda: mqtt.connected)
    assert "a word" not in caplog.text


@pytest.fixture(params=["password", "certificate"])
def fleet(
    request: pytest.FixtureRequest, tmp_path: Path, authority: Authority, server: Pair
) -> tuple[Broker, Callable[[str], Callable[[paho.Client], None]], Callable[[str], dict[str, Any]]]:
    """A broker with the ACL that is shipped, how a plain client gets in there by a name, and how a device does."""
    if request.param == "certificate":

        def of_device(name: str) -> dict[str, Any]:
            pair = authority.vouch(name)
            return {"tls": True, "ca": authority.ca, "cert": pair.cert, "key": pair.key}

        # As in the example, but for its places and port.
        kept = ("require", "use_", "allow", "max_packet", "max_queued")
        lines = [line for line in EXAMPLE.read_text().splitlines() if line.startswith(kept)]
        text = "\n".join([*lines, f"acl_file {ACL}", ""])
        return over_tls(tmp_path, authority, server, text), lambda name: with_certificate(authority, name), of_device
    passwords = tmp_path / "passwords"
    passwords.touch(0o600)
    for user in ("dev-1", "dev-2", "operator"):
        subprocess.run(["mosquitto_passwd", "-b", str(passwords), user, f"secret of {user}"], check=True)

    def with_file(name: str) -> dict[str, Any]:
        secret = tmp_path / f"{name}.secret"
        secret.write_text(f"secret of {name}")
        return {"username": name, "password_file": secret}

    return Broker(tmp_path, f"password_file {passwords}\nacl_file {ACL}\n"), with_password, with_file


def test_the_acl_keeps_devices_apart(fleet: Any) -> None:
    broker, enter, of_device = fleet
    got = Recorder()
    with (
        broker,
        Operator(broker.port, ("armlet/#",), enter("operator")) as operator,
        device(broker.port, got, **of_device("dev-1")) as mqtt,
    ):
        # All that a device is for.
        until(lambda: operator.of(f"{PREFIX}/availability") == [b"online"])
        mqtt.report(Report("m", "FAILED", category="trial"))
        mqtt.write({"n": 1.0}, 0)
        until(lambda: operator.of(f"{PREFIX}/models/m/state"))
        until(lambda: operator.of(f"{PREFIX}/telemetry"))
        until(lambda: operator.of(f"{PREFIX}/alerts"))
        operator.say(f"{PREFIX}/models/m/desired", wish(), retain=True)
        until(lambda: got.wishes)
        desired = got.wishes[0][1]
        assert desired is not None
        mqtt.want(desired, [0])
        until(lambda: operator.of(f"{PREFIX}/models/m/blocks/wanted"))
        operator.say(f"{PREFIX}/models/m/blocks/{desired.archive_sha256}/0", b"block")
        until(lambda: got.blocks)
        # And what it is not for, by somebody who took the keys of another.
        others = [
            f"{PREFIX}/models/m/desired",
            f"{PREFIX}/models/m/state",
            f"{PREFIX}/availability",
            f"{PREFIX}/models/m/blocks/{desired.archive_sha256}/0",
            "armlet/v1/dev-2/models/m/desired",
            f"armlet/v1/dev-2/models/m/blocks/{desired.archive_sha256}/0",
            "armlet/v1/operator/models/m/desired",
        ]
        before = len(operator.seen)
        with Operator(broker.port, ("#", f"{PREFIX}/#"), enter("dev-2")) as thief:
            for topic in others:
                thief.say(topic, b"stolen")
            thief.say("armlet/v1/dev-2/alerts", b"the end")
            until(lambda: operator.of("armlet/v1/dev-2/alerts"))
            mqtt.write({"n": 2.0}, 0)
            until(lambda: len(operator.of(f"{PREFIX}/telemetry")) == 2)
            assert thief.seen == []
        assert not [topic for topic, message, _ in operator.seen[before:] if message == b"stolen"]
        assert len(got.wishes) == len(got.blocks) == 1
        assert got.refusals == []
