"""One connection to a broker by the library paho-mqtt, 1.6 or 2: what is different in the two, and bounds on both.

A connection is made once and thrown away: paho's own repetition would send, after hours, a state that has changed.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Callable, Protocol, Sequence

from armlet_runtime.update.access import LACKING, Access, BrokerError, password
from armlet_runtime.update.tls import tls_context, words

CONNECT_SECONDS = 15.0
"""For TCP, and then for the broker's answer."""
LARGEST_PACKET = 300 << 10
"""Bytes that are kept of a message; what is behind them is read and forgotten."""
_PIECE = 64 << 10
_MOST_HALF = 64
"""Messages of QoS 2 that were begun and not ended; nobody sends those who means well."""
_LOOP_SECONDS = 1.0


class Events(Protocol):
    """What happens on a connection, told by its thread. None of them raises or takes long."""

    def opened(self) -> None:
        """The broker has let us in."""

    def refused(self, topic: str) -> None:
        """The broker does not let us listen there."""

    def came(self, topic: str, payload: bytes) -> None:
        """A message; one whose topic is no text does not come."""

    def arrived(self, link: Link, number: int, refusal: str) -> None:
        """The broker has a message that was sent; ``refusal``: why it does not want it."""


class Link:
    """One connection: :meth:`run` is its whole life, the other methods take any thread."""

    def __init__(self, access: Access, events: Events, filters: Sequence[str], will: tuple[str, bytes]) -> None:
        """Raises BrokerError where the library or a file of the access is missing."""
        self._access = access
        self._events = events
        self._filters = tuple(filters)
        self._asked: dict[int, str] = {}
        self._ending = threading.Event()
        self._refusal = ""
        self.ready = threading.Event()
        """Set while messages may be sent."""
        self.since = 0.0
        """When the broker let us in; 0: it has not."""
        self._client = self._make(will)

    def run(self) -> str:
        """Connects, and returns why the connection ended."""
        try:
            return self._run()
        except Exception as error:
            # Also what paho raises over packets that make no sense.
            return words(error)
        finally:
            self.ready.clear()
            self._shut()

    def publish(self, topic: str, payload: bytes, retain: bool) -> int | None:
        """The message's number; None: it was not taken."""
        if not self.ready.is_set():
            return None
        try:
            info = self._client.publish(topic, payload, 1, retain)
        except Exception:
            # The loop may close the connection at any moment, and paho then stumbles in many ways.
            return None
        return int(info.mid) if info.rc == 0 else None

    def end(self, tell: bool = False) -> None:
        """Have :meth:`run` return soon; ``tell``: the broker, which then forgets the last will."""
        if tell and self.ready.is_set():
            try:
                self._client.disconnect()
            except Exception:
                # As above.
                self.ready.clear()
        self._ending.set()

    def _make(self, will: tuple[str, bytes]) -> Any:
        try:
            from paho.mqtt import client as paho
        except ImportError as error:
            raise BrokerError(LACKING) from error
        access = self._access

        class Client(paho.Client):  # type: ignore[misc,unused-ignore]
            def _sock_recv(self, bufsize: int) -> bytes:
                packet = self._in_packet["packet"]
                if len(packet) > LARGEST_PACKET and isinstance(packet, bytearray):
                    del packet[LARGEST_PACKET:]
                return bytes(super()._sock_recv(min(bufsize, _PIECE)))

        known: dict[str, Any] = {"client_id": access.client_id, "reconnect_on_failure": False}
        known["protocol"] = paho.MQTTv5 if access.version5 else paho.MQTTv311
        if not access.version5:
            known["clean_session"] = False
        versions = getattr(paho, "CallbackAPIVersion", None)
        client: Any = Client(**known) if versions is None else Client(versions.VERSION2, **known)
        client._connect_timeout = CONNECT_SECONDS
        client.will_set(will[0], will[1], qos=1, retain=True)
        if access.username:
            client.username_pw_set(access.username, password(access))
        if access.tls:
            client.tls_set_context(tls_context(access))
        # With somebody who looks after writing, publish() leaves it to the loop: two threads would mix packets up.
        client.on_socket_register_write = lambda *_: None
        client.on_connect = self._on_connect
        client.on_subscribe = self._on_subscribe
        client.on_message = self._on_message
        client.on_publish = self._on_publish
        return client

    def _run(self) -> str:
        access, client = self._access, self._client
        arguments: dict[str, Any] = {"clean_start": False} if access.version5 else {}
        if access.version5:
            arguments["properties"] = _connect_properties(access)
        client.connect(access.host, access.port, access.keepalive, **arguments)
        until = time.monotonic() + CONNECT_SECONDS
        while True:
            code = client.loop(_LOOP_SECONDS)
            if self._refusal:
                return self._refusal
            if code != 0:
                return _error_string(code)
            if self._ending.is_set():
                return "it was ended"
            if not self.ready.is_set() and time.monotonic() >= until:
                return f"the broker did not answer within {CONNECT_SECONDS:g} s"
            if len(getattr(client, "_in_messages", ())) > _MOST_HALF:
                return "the broker begins messages of QoS 2 and does not end them"

    def _shut(self) -> None:
        for name in ("_sock_close", "_reset_sockets"):
            close: Callable[[], None] | None = getattr(self._client, name, None)
            try:
                if close is not None:
                    close()
            except Exception:
                # It is thrown away in any case; the garbage collector closes what is open still.
                continue

    # By paho, with other arguments in each of its versions; none may raise.

    def _on_connect(self, client: Any, _userdata: Any, _flags: Any, reason: Any, *_rest: Any) -> None:
        if _number(reason) != 0:
            self._refusal = f"the broker refuses: {_connack(reason)}"
            return
        for topic in self._filters:
            number = client.subscribe(topic, 1)[1]
            if number is not None:
                self._asked[number] = topic
        self.since = time.monotonic()
        self.ready.set()
        self._events.opened()

    def _on_subscribe(self, _client: Any, _userdata: Any, number: int, reasons: Any, *_rest: Any) -> None:
        topic = self._asked.pop(number, "")
        if topic and any(_number(reason) >= 0x80 for reason in reasons):
            self._events.refused(topic)

    def _on_message(self, _client: Any, _userdata: Any, message: Any) -> None:
        try:
            topic = str(message.topic)
        except UnicodeDecodeError:
            return
        self._events.came(topic, bytes(message.payload))

    def _on_publish(self, _client: Any, _userdata: Any, number: int, *rest: Any) -> None:
        reason = rest[0] if rest else 0
        self._events.arrived(self, number, str(reason) if _number(reason) >= 0x80 else "")


def _connect_properties(access: Access) -> Any:
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    make: Any = Properties
    properties = make(PacketTypes.CONNECT)
    properties.SessionExpiryInterval = access.session_seconds
    properties.MaximumPacketSize = LARGEST_PACKET
    return properties


def _number(reason: Any) -> int:
    return int(getattr(reason, "value", reason))


def _connack(reason: Any) -> str:
    from paho.mqtt import client as paho

    return str(paho.connack_string(reason) if isinstance(reason, int) else reason)


def _error_string(code: Any) -> str:
    from paho.mqtt import client as paho

    return str(paho.error_string(code)).rstrip(".")
