"""A broker that does what none should: it answers as it is told to, byte by byte. MQTT 3.1.1."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterable

CONNECT, CONNACK, PUBLISH, SUBSCRIBE, SUBACK, PINGREQ = 1, 2, 3, 8, 9, 12
Reply = Callable[[int, bytes], Iterable[bytes]]
"""(kind of the packet that came, what is behind its header) -> what is sent."""


def packet(first: int, body: bytes) -> bytes:
    """``first``: the whole first byte."""
    return header(first, len(body)) + body


def header(first: int, length: int) -> bytes:
    """Of a packet of ``length`` bytes."""
    made = bytearray([first])
    while True:
        length, digit = divmod(length, 128)
        made.append(digit | (128 if length else 0))
        if not length:
            return bytes(made)


def publish(topic: bytes, message: bytes, qos: int = 1, number: int = 1) -> bytes:
    return packet(0x30 | qos << 1, struct.pack(">H", len(topic)) + topic + struct.pack(">H", number) + message)


def polite(kind: int, body: bytes, granted: int = 1) -> list[bytes]:
    """What any broker answers; messages are acknowledged too."""
    if kind == CONNECT:
        return [packet(CONNACK << 4, b"\0\0")]
    if kind == SUBSCRIBE:
        return [packet(SUBACK << 4, body[:2] + bytes([granted]))]
    if kind == PUBLISH:
        (length,) = struct.unpack_from(">H", body)
        return [packet(0x40, body[2 + length : 4 + length])]
    return [packet(0xD0, b"")] if kind == PINGREQ else []


class RudeBroker:
    """Each connection is answered by ``reply``."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self.connections = 0
        self._open: list[socket.socket] = []

    def __enter__(self) -> RudeBroker:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()
        for one in self._open:
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client = self._listening.accept()[0]
                self.connections += 1
                self._open.append(client)
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError), client.makefile("rb") as stream:
            while first := stream.read(1):
                length = shift = 0
                while True:
                    digit = stream.read(1)[0]
                    length |= (digit & 127) << shift
                    shift += 7
                    if digit < 128:
                        break
                for answer in self._reply(first[0] >> 4, stream.read(length)):
                    client.sendall(answer)
