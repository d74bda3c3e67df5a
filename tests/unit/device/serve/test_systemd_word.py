"""What systemd hears, over a real datagram socket."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from armlet_runtime.serve import systemd


@pytest.fixture
def heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(tmp_path / "notify"))
        sock.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        yield sock


def test_ready_and_stopping(heard: socket.socket) -> None:
    systemd.ready("2 models")
    assert heard.recv(100) == b"READY=1\nSTATUS=2 models"
    systemd.stopping("signal 15")
    assert heard.recv(100) == b"STOPPING=1\nSTATUS=signal 15"
    systemd.extend_start(1.5)
    assert heard.recv(100) == b"EXTEND_TIMEOUT_USEC=1500000"


def test_an_abstract_socket() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        name = f"armlet-test-{os.getpid()}"
        sock.bind(f"\0{name}")
        assert systemd.notify("READY=1", {"NOTIFY_SOCKET": f"@{name}"})
        assert sock.recv(100) == b"READY=1"


@pytest.mark.parametrize("where", ["", "relative", "/nowhere/at/all", "/" + "a" * 200])
def test_without_systemd_nothing_happens(where: str) -> None:
    assert not systemd.notify("READY=1", {"NOTIFY_SOCKET": where})


@pytest.mark.parametrize(
    ("environment", "seconds"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
    ],
)
def test_whether_a_watchdog_waits(environment: dict[str, str], seconds: float | None) -> None:
    assert systemd.watchdog_seconds(environment) == seconds


def test_children_do_not_feed_it() -> None:
    environment = {"WATCHDOG_USEC": "1", "WATCHDOG_PID": "1", "OTHER": "1"}
    systemd.forget(environment)
    assert environment == {"OTHER": "1"}


def test_only_progress_feeds_the_watchdog() -> None:
    now = 0.0
    said: list[str] = []
    parts = {"http": True, "engine": True}
    dog = systemd.Watchdog(
        {name: lambda name=name: parts[name] for name in parts},  # type: ignore[misc]
        30.0,
        send=said.append,
        clock=lambda: now,
    )
    dog.feed()
    dog.feed()
    assert said == ["WATCHDOG=1"]
    now = 10.0
    parts["engine"] = False
    dog.feed()
    dog.feed()
    assert said[1:] == ["STATUS=no progress: engine"]
    assert dog.stuck == ["engine"]
    parts["engine"] = True
    dog.feed()
    assert said[2:] == ["WATCHDOG=1"]


def test_without_a_watchdog_nobody_is_asked() -> None:
    systemd.Watchdog({"x": lambda: 1 / 0 > 0}, None).feed()
