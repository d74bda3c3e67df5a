"""A line that breaks: forwards TCP, and cuts each connection after a random time."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time


class CuttingProxy:
    """In front of a port on loopback; seconds are drawn from ``least`` to ``most``."""

    def __init__(self, target: int, chance: random.Random, least: float, most: float) -> None:
        self._target, self._chance, self._between = target, chance, (least, most)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self.cut = 0
        self._held = threading.Event()
        self._ended = threading.Event()

    def hold(self) -> None:
        """From now on nothing is cut, but what is under way already."""
        self._held.set()

    def __enter__(self) -> CuttingProxy:
        threading.Thread(target=self._accept, daemon=True, name="proxy").start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._listening.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(
                    target=self._serve, args=(self._listening.accept()[0],), daemon=True, name="proxy"
                ).start()

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._target)) as server:
            ends = time.monotonic() + self._chance.uniform(*self._between)
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=_copy, args=(one, other), daemon=True, name="proxy").start()
            while not self._ended.is_set() and (self._held.is_set() or time.monotonic() < ends):
                time.sleep(0.02)
                if client.fileno() < 0:
                    return
            for one in (client, server):
                one.shutdown(socket.SHUT_RDWR)
            self.cut += 1


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
