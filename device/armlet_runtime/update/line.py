"""A TLS connection of which every wait is bounded, and can be called off within a moment."""

from __future__ import annotations

import errno
import io
import os
import queue
import select
import socket
import ssl
import threading
import time
from typing import Any, Callable, Union

from armlet_runtime.update.interface import FetchError

_GLANCE = 0.25
"""Seconds between two looks at whether it is called off."""
_CONNECT_SECONDS = 15.0
"""For one of a host's addresses: where the first leads nowhere, the next one is still tried."""
_PIECE = 16 << 10
Address = Union["tuple[str, int]", "tuple[str, int, int, int]"]


def tls_context(ca: str = "", certificate: str = "", key: str = "") -> ssl.SSLContext:
    """What checks a server's certificate, and shows a client's.

    Args:
        ca: a PEM file of those who may have signed the server's certificate; empty: the system's.
        certificate: a PEM file; empty: a client shows none.
        key: its private half; empty: it is in the same file.

    Raises:
        OSError: a file cannot be read, or is none of that kind (``ssl.SSLError``).
    """
    context = ssl.create_default_context(cafile=ca or None)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if certificate:
        # An empty passphrase: without it, an encrypted key would have the terminal asked.
        context.load_cert_chain(certificate, key or None, password="")
    return context


class Patience:
    """How long somebody is waited for: ``seconds`` without any progress; and until it is called off."""

    def __init__(self, seconds: float, cancelled: Callable[[], bool]) -> None:
        self.seconds = seconds
        self._cancelled = cancelled
        self.renewed()

    def renewed(self) -> None:
        self._until = time.monotonic() + self.seconds

    def look(self) -> None:
        """Raises:
        FetchError: it is called off.
        """
        if self._cancelled():
            raise FetchError("download", "it was called off")

    def glance(self, what: str) -> float:
        """Seconds to wait before this is called again.

        Raises:
            FetchError: it is called off, or nothing has come for too long: ``what`` says of what.
        """
        self.look()
        left = self._until - time.monotonic()
        if left <= 0:
            raise FetchError("download", f"{what} for {self.seconds:g} s")
        return min(_GLANCE, left)

    def pause(self, seconds: float) -> None:
        """Raises:
        FetchError: it is called off.
        """
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.look()
            time.sleep(min(_GLANCE, left))


class Line(io.RawIOBase):
    """What ``http.client`` takes for a socket.

    ``allowance`` is how many bytes may still come: headers without end are no progress. While ``lenient``, each byte
    renews the patience.
    """

    def __init__(self, host: str, port: int, context: ssl.SSLContext, patience: Patience) -> None:
        """Raises FetchError, OSError."""
        super().__init__()
        self._patience = patience
        self.allowance = 0
        self.lenient = False
        patience.renewed()
        self._socket = _secured(_connected(_resolved(host, port, patience), patience), host, context, patience)

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        # Even while bytes come without a break.
        self._patience.look()
        while True:
            try:
                count = self._socket.recv_into(into)
                break
            except (ssl.SSLWantReadError, BlockingIOError):
                _wait(self._socket, select.POLLIN, self._patience, "the server has sent nothing")
            except ssl.SSLWantWriteError:
                _wait(self._socket, select.POLLOUT, self._patience, "the server has taken nothing")
        self.allowance -= count
        if self.allowance < 0:
            raise FetchError("download", "the server sends much more than was asked for")
        if self.lenient and count:
            self._patience.renewed()
        return count

    def sendall(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            try:
                left = left[self._socket.send(left) :]
            except (ssl.SSLWantWriteError, BlockingIOError):
                _wait(self._socket, select.POLLOUT, self._patience, "the server has taken nothing")
            except ssl.SSLWantReadError:
                _wait(self._socket, select.POLLIN, self._patience, "the server has sent nothing")

    def makefile(self, *_mode: Any, **_how: Any) -> io.BufferedReader:
        return io.BufferedReader(self, _PIECE)

    def close(self) -> None:
        """Nothing: ``http.client`` closes what it still reads from. :meth:`hang_up` does it."""

    def hang_up(self) -> None:
        self._socket.close()
        super().close()


def _resolved(host: str, port: int, patience: Patience) -> list[tuple[int, Address]]:
    """(family, address) of a host. The resolver cannot be called off, so it is left alone in a thread."""
    answer: queue.SimpleQueue[list[tuple[int, Address]] | OSError] = queue.SimpleQueue()

    def ask() -> None:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            answer.put([(int(family), address) for family, _, _, _, address in found])  # type: ignore[misc]
        except UnicodeError:
            answer.put(OSError(errno.EINVAL, "it is no name of a host"))
        except OSError as error:
            answer.put(error)

    threading.Thread(target=ask, name="armlet-resolve", daemon=True).start()
    while True:
        try:
            found = answer.get(timeout=patience.glance("the name of the server has not been resolved"))
        except queue.Empty:
            continue
        if isinstance(found, OSError):
            raise found
        return found


def _connected(addresses: list[tuple[int, Address]], patience: Patience) -> socket.socket:
    """Raises the last address's error."""
    failed: Exception = OSError(errno.EHOSTUNREACH, "it has no address")
    for family, address in addresses:
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            code = sock.connect_ex(address)
            if code == errno.EINPROGRESS:
                own = Patience(min(patience.seconds, _CONNECT_SECONDS), patience._cancelled)
                _wait(sock, select.POLLOUT, own, "the server has not answered")
                code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code == 0:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return sock
            failed = OSError(code, os.strerror(code))
        except (OSError, FetchError) as error:
            failed = error
        sock.close()
        patience.look()
    raise failed


def _secured(sock: socket.socket, host: str, context: ssl.SSLContext, patience: Patience) -> ssl.SSLSocket:
    try:
        secured = context.wrap_socket(sock, server_hostname=host, do_handshake_on_connect=False)
    except BaseException:
        sock.close()
        raise
    try:
        while True:
            try:
                secured.do_handshake()
                return secured
            except ssl.SSLWantReadError:
                _wait(secured, select.POLLIN, patience, "the server has not finished its TLS greeting")
            except ssl.SSLWantWriteError:
                _wait(secured, select.POLLOUT, patience, "the server has not finished its TLS greeting")
    except BaseException:
        secured.close()
        raise


def _wait(sock: socket.socket, event: int, patience: Patience, what: str) -> None:
    poll = select.poll()
    poll.register(sock, event)
    while not poll.poll(patience.glance(what) * 1000):
        pass
