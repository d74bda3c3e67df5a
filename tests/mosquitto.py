"""A real mosquitto on loopback, somebody at the other end of it, and a device between."""

from __future__ import annotations

import contextlib
import random
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
from armlet_runtime.serve.backoff import Backoff
from armlet_runtime.store.disk import Disk
from armlet_runtime.update.access import Access
from armlet_runtime.update.interface import Category, Desired
from armlet_runtime.update.mqtt import Mqtt
from armlet_runtime.update.spool import Spool
from armlet_runtime.update.topics import Topics

OPEN = "allow_anonymous true\n"
DEVICE = "dev-1"
PREFIX = f"armlet/v1/{DEVICE}"
SECONDS = 20.0


def until(true: Callable[[], Any], seconds: float = SECONDS, what: str = "") -> None:
    """Waits for it."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not within {seconds:g} s: {what}"
        time.sleep(0.02)


def program() -> str:
    """Debian has it where an ordinary user's PATH does not lead."""
    found = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")
    assert found, "mosquitto is missing: ./inv doctor names the package"
    return found


def lasting_port() -> int:
    """One that nobody has, below those that the system gives away: it is still free when the broker comes back."""
    while True:
        port = random.randrange(20_000, 32_000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


class Broker:
    """``text`` is what its file says beside the listener's port."""

    def __init__(self, folder: Path, text: str = OPEN, listener: str = "", address: str = "127.0.0.1") -> None:
        self.port = lasting_port()
        self._address = address
        self._conf = folder / "mosquitto.conf"
        # Over root's own files it would become another user, who cannot read them.
        self._conf.write_text(f"user root\nlistener {self.port} {address}\n{listener}{text}")
        self._log = folder / "mosquitto.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Broker:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen([program(), "-c", str(self._conf)], stdout=log, stderr=log)
        until(self._listens, what=self._log.read_text())
        return self

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def __enter__(self) -> Broker:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _listens(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self._log.read_text()
        with contextlib.suppress(OSError), socket.create_connection((self._address, self.port), 1):
            return True
        return False


@dataclass
class Operator:
    """A client that sees all that it may."""

    port: int
    filters: Sequence[str] = ("#",)
    prepare: Callable[[paho.Client], None] = lambda _: None
    seen: list[tuple[str, bytes, bool]] = field(default_factory=list)
    """(topic, message, retained)."""

    def __enter__(self) -> Operator:
        self._here = threading.Event()
        # Tests run over paho-mqtt 1.6 as well, which has no versions of callbacks.
        versions: Any = getattr(paho, "CallbackAPIVersion", None)
        make: Any = paho.Client
        client_id = f"operator-{id(self)}"
        self._client = make(client_id) if versions is None else make(versions.VERSION2, client_id)
        self._client.on_message = lambda _c, _u, m: self.seen.append((m.topic, bytes(m.payload), bool(m.retain)))
        self._client.on_subscribe = lambda *_: self._here.set()
        self._client.on_connect = lambda client, *_: client.subscribe([(one, 1) for one in self.filters])
        self._client.max_inflight_messages_set(1000)
        self.prepare(self._client)
        self._client.connect("127.0.0.1", self.port)
        self._client.loop_start()
        assert self._here.wait(SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def say(self, topic: str, message: bytes, retain: bool = False) -> None:
        """The broker has it once this returns."""
        self._client.publish(topic, message, 1, retain).wait_for_publish(SECONDS)

    def say_many(self, messages: Sequence[tuple[str, bytes]]) -> None:
        sent = [self._client.publish(topic, message, 1) for topic, message in messages]
        sent[-1].wait_for_publish(2 * SECONDS)

    def of(self, topic: str) -> list[bytes]:
        """What was said there, oldest first."""
        return [message for name, message, _ in list(self.seen) if name == topic]


@dataclass
class Recorder:
    """Takes wishes and blocks."""

    wishes: list[tuple[str, Desired | None]] = field(default_factory=list)
    refusals: list[tuple[str, str, str]] = field(default_factory=list)
    blocks: list[tuple[str, int, bytes]] = field(default_factory=list)
    connections: int = 0
    threads: set[str] = field(default_factory=set)

    def wish(self, model: str, desired: Desired | None) -> None:
        self.threads.add(threading.current_thread().name)
        self.wishes.append((model, desired))

    def refuse(self, model: str, category: Category, reason: str) -> None:
        self.refusals.append((model, category, reason))

    def deliver(self, archive: str, number: int, data: bytes) -> None:
        self.threads.add(threading.current_thread().name)
        self.blocks.append((archive, number, data))

    def again(self) -> None:
        self.connections += 1


@contextlib.contextmanager
def device(
    port: int, got: Recorder, folder: Path | None = None, topics: Topics | None = None, **access: Any
) -> Iterator[Mqtt]:
    """Connected, or trying to."""
    known = {"client_id": DEVICE, **access}
    spool = Spool(folder, Disk(), 1 << 20, 3600.0) if folder is not None else None
    backoff = Backoff(first=0.1, longest=0.5, healthy=0.5)
    mqtt = Mqtt(Access("127.0.0.1", port, **known), topics or Topics(DEVICE), spool, backoff=backoff)
    mqtt.start(got, got)
    try:
        yield mqtt
    finally:
        mqtt.stop()
