"""The operator's connection to a broker, by paho-mqtt: one that is there, or an error that says why not."""

from __future__ import annotations

import queue
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from paho.mqtt import client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from armlet.errors import ArmletError, Kind

SECONDS = 15.0
"""For TCP and TLS, then for the broker's answer, and for that to each message."""
_MOST_WAITING = 1000
"""Messages that came and were not read; later ones are lost, and asked for again by who needs an answer."""
_REFUSED = 0x80
_WHO = {"Bad user name or password", "Not authorized", "Bad authentication method", "Client identifier not valid"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """Where it is, and who asks."""

    host: str
    port: int
    tls: bool = False
    ca: Path | None = None
    """None: the system's."""
    cert: Path | None = None
    key: Path | None = None
    username: str = ""
    password: str = ""

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Message(NamedTuple):
    topic: str
    payload: bytes
    retained: bool


class Connection:
    """Made by :func:`connected`; comes back by itself when it is lost, with its subscriptions."""

    def __init__(self, broker: Broker) -> None:
        self.messages: queue.Queue[Message] = queue.Queue(_MOST_WAITING)
        self._broker = broker
        self._changed = threading.Condition()
        self._filters: list[str] = []
        self._answers: dict[int, int] = {}
        """Number of a message or subscription -> reason code."""
        self._entered = ""
        self._lost = ""
        client = mqtt.Client(CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
        client.connect_timeout = SECONDS
        client.on_connect = self._on_connect
        client.on_disconnect = self._on_disconnect
        client.on_message = self._on_message
        client.on_publish = lambda _client, _data, number, code, _properties: self._answered(number, [code])
        client.on_subscribe = lambda _client, _data, number, codes, _properties: self._answered(number, codes)
        if broker.username:
            client.username_pw_set(broker.username, broker.password or None)
        if broker.tls:
            client.tls_set_context(_context(broker))
        self._client = client

    def open(self) -> None:
        """Raises:
        ArmletError: (HOST) nobody is there; (INPUT) the broker is not who it should be, or refuses us.
        """
        where = str(self._broker)
        try:
            self._client.connect(self._broker.host, self._broker.port, keepalive=30)
        except ssl.SSLCertVerificationError as error:
            what = f"the broker's certificate is refused: {error.verify_message}"
            hint = "--ca names who signed it; the host has to be called as the certificate calls it"
            raise ArmletError(what, hint=hint, kind=Kind.INPUT, where=where) from error
        except (ssl.SSLError, TimeoutError, ConnectionResetError) as error:
            told = getattr(error, "reason", None) or getattr(error, "strerror", None) or "nobody answers"
            hint = "is it TLS there? With --ca or --tls it is spoken, without it is not"
            raise ArmletError(f"no connection: {told}", hint=hint, kind=Kind.HOST, where=where) from error
        except (OSError, ValueError) as error:
            hint = "is the broker running, and this its address? --broker host:port"
            told = getattr(error, "strerror", None) or str(error)
            raise ArmletError(f"no connection: {told}", hint=hint, kind=Kind.HOST, where=where) from error
        self._client.loop_start()
        self._await(lambda: bool(self._entered or self._lost), "the broker does not greet")
        if self._entered == "Success":
            return
        if self._entered in _WHO:
            hint = "--username with --password-file or --password-env; or --cert and --key-file"
            raise ArmletError(f"the broker refuses us: {self._entered}", hint=hint, kind=Kind.INPUT, where=where)
        told = self._entered or self._lost
        hint = "it must speak MQTT 5; if it wants TLS: --ca or --tls, and --cert where it asks for one"
        raise ArmletError(f"the broker ends the connection: {told}", hint=hint, kind=Kind.HOST, where=where)

    def publish(self, topic: str, payload: bytes, *, retain: bool = False) -> None:
        """At least once; returns when the broker has it.

        Raises:
            ArmletError: (INPUT) we may not write there; (HOST) the broker does not take it.
        """
        self._demand([self.post(topic, payload, retain=retain)], f"publish on {topic}")

    def post(self, topic: str, payload: bytes, *, retain: bool = False) -> int:
        """Sends and does not wait; the number is for :meth:`answer`."""
        return self._client.publish(topic, payload, qos=1, retain=retain).mid

    def answer(self, number: int) -> int | None:
        """The broker's reason code for what was posted, once; None: not yet."""
        with self._changed:
            return self._answers.pop(number, None)

    def wait(self, seconds: float) -> None:
        """Until something is answered, at most that long."""
        with self._changed:
            self._changed.wait(seconds)

    def subscribe(self, filters: Sequence[str]) -> None:
        """Raises ArmletError as ``publish``."""
        self._filters += filters
        for topic in filters:
            _, number = self._client.subscribe(topic, qos=1)
            self._demand([number or 0], f"listen to {topic}")

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _demand(self, numbers: list[int], what: str) -> None:
        self._await(lambda: all(number in self._answers for number in numbers), f"no answer to: {what}")
        codes = [self._answers.pop(number) for number in numbers]
        if max(codes) >= _REFUSED:
            hint = "let this user do so, in the broker's ACL"
            raise ArmletError(f"the broker does not let us {what}", hint=hint, kind=Kind.INPUT, where=str(self._broker))

    def _await(self, there: Callable[[], bool], otherwise: str) -> None:
        until = time.monotonic() + SECONDS
        with self._changed:
            # In slices: a wait without an end would not let Ctrl-C through.
            while not there() and time.monotonic() < until:
                self._changed.wait(0.2)
            if there():
                return
        hint = "is that a broker, and is it well? --broker host:port"
        raise ArmletError(otherwise, hint=hint, kind=Kind.HOST, where=str(self._broker))

    # In paho's thread.

    def _on_connect(self, _client: Any, _data: Any, _flags: Any, code: Any, _properties: Any) -> None:
        with self._changed:
            self._entered = str(code)
            self._changed.notify_all()
        if code.is_failure:
            # It would be refused over and over.
            self._client.disconnect()
            return
        for topic in self._filters:
            self._client.subscribe(topic, qos=1)

    def _on_disconnect(self, _client: Any, _data: Any, _flags: Any, code: Any, _properties: Any) -> None:
        with self._changed:
            self._lost = str(code)
            self._changed.notify_all()

    def _on_message(self, _client: Any, _data: Any, message: mqtt.MQTTMessage) -> None:
        try:
            topic = message.topic
        except UnicodeDecodeError:
            return
        try:
            self.messages.put_nowait(Message(topic, bytes(message.payload), message.retain))
        except queue.Full:
            return

    def _answered(self, number: int, codes: Sequence[Any]) -> None:
        with self._changed:
            self._answers[number] = max(code.value for code in codes)
            self._changed.notify_all()


@contextmanager
def connected(broker: Broker) -> Iterator[Connection]:
    """Raises ArmletError as :meth:`Connection.open`."""
    connection = Connection(broker)
    try:
        connection.open()
        yield connection
    finally:
        connection.close()


def _context(broker: Broker) -> ssl.SSLContext:
    for file in (broker.ca, broker.cert, broker.key):
        if file is not None and not file.is_file():
            hint = "--ca, --cert and --key-file name PEM files"
            raise ArmletError("there is no such file", hint=hint, kind=Kind.INPUT, where=str(file))
    try:
        context = ssl.create_default_context(cafile=broker.ca)
        if broker.cert is not None:
            # Without a passphrase, an encrypted key would have the terminal asked, in the middle of the output.
            context.load_cert_chain(broker.cert, broker.key, password="")
    except OSError as error:
        files = ", ".join(str(file) for file in (broker.ca, broker.cert, broker.key) if file)
        told = getattr(error, "reason", None) or error.strerror
        hint = "--ca, --cert and --key-file name PEM files; the key is the certificate's, and not encrypted"
        raise ArmletError(f"no certificates or key: {told}", hint=hint, kind=Kind.INPUT, where=files) from error
    return context
