"""The socket that clients connect to: TCP or a Unix socket."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Union

# Linux has 108 bytes for the path and its final NUL.
LONGEST_SOCKET_PATH = 107


class ListenError(Exception):
    """Nobody can connect; ``hint`` is the remedy."""

    def __init__(self, message: str, hint: str, *, in_use: bool = False, made_at_start: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.in_use = in_use
        """Another program has the address, or this service itself."""
        self.made_at_start = made_at_start
        """What starts the service makes what is missing."""


@dataclass(frozen=True)
class TcpAddress:
    """``port`` 0: any that is free."""

    host: str = "127.0.0.1"
    port: int = 8080


@dataclass(frozen=True)
class UnixAddress:
    """``mode``: who may connect, as the file's permission bits."""

    path: str
    mode: int = 0o660


Address = Union[TcpAddress, UnixAddress]

_TCP_REMEDIES = {
    errno.EADDRINUSE: "another program listens there; end it or choose another port",
    errno.EADDRNOTAVAIL: "no interface of this machine has the address",
    errno.EACCES: "ports below 1024 take a capability; choose a higher one",
}
RUN = "/run/armlet"
"""The folder that the systemd unit and the init script make."""
_UNIX_REMEDIES = {
    errno.EACCES: "the folder belongs to another user",
    errno.EROFS: "put the socket below /run",
}


class _UnixSocket(socket.socket):
    """``file``: which one ``bind`` made, as device and inode."""

    file: tuple[int, int] | None = None


def listen(address: Address, backlog: int) -> socket.socket:
    """A listening, non-blocking socket. Raises :class:`ListenError`."""
    sock = _tcp(address) if isinstance(address, TcpAddress) else _unix(address)
    sock.listen(backlog)
    sock.setblocking(False)
    return sock


def obstacle(address: Address) -> ListenError | None:
    """What would keep :func:`listen` from it, found without listening and without changing a file."""
    try:
        if isinstance(address, UnixAddress):
            _demand_place(address.path)
            _stale(address.path)
        else:
            _tcp(address).close()
    except ListenError as error:
        return error
    return None


def forget(address: Address, sock: socket.socket) -> None:
    """Close, and remove a Unix socket's file, unless another one has taken its place."""
    sock.close()
    if isinstance(address, UnixAddress) and isinstance(sock, _UnixSocket):
        with contextlib.suppress(OSError):
            if _file(address.path) == sock.file:
                Path(address.path).unlink()


def _file(path: str) -> tuple[int, int]:
    found = os.lstat(path)
    return found.st_dev, found.st_ino


def describe(address: Address, sock: socket.socket) -> str:
    """For a log: ``http://127.0.0.1:8080`` or ``unix:/run/armlet/serve.sock``."""
    if isinstance(address, UnixAddress):
        return f"unix:{address.path}"
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _tcp(address: TcpAddress) -> socket.socket:
    if not 0 <= address.port <= 65535:
        raise ListenError(f"there is no port {address.port}", "choose one from 1024 to 65535")
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise ListenError(f'"{address.host}" is no address: {error}', "use 127.0.0.1 or ::1") from error
    family, kind, protocol, _, place = found[0]
    try:
        sock = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ListenError(
            f"no socket for {address.host}: {error.strerror}", "use 127.0.0.1 or a Unix socket"
        ) from error
    try:
        # Else a restart fails for as long as connections of the last run are remembered.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(place)
    except OSError as error:
        sock.close()
        hint = _TCP_REMEDIES.get(error.errno or 0, "choose another address or port")
        message = f"cannot listen on {address.host} port {address.port}: {error.strerror}"
        raise ListenError(message, hint, in_use=error.errno == errno.EADDRINUSE) from error
    return sock


def _unix(address: UnixAddress) -> socket.socket:
    _demand_place(address.path)
    if _stale(address.path):
        with contextlib.suppress(OSError):
            Path(address.path).unlink()
    sock = _UnixSocket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.bind(address.path)
        sock.file = _file(address.path)
        # Nobody can connect before listen().
        os.chmod(address.path, address.mode)  # noqa: PTH101 (bytes and surrogates alike)
    except (OSError, ValueError) as error:
        sock.close()
        number = error.errno if isinstance(error, OSError) else None
        hint = _UNIX_REMEDIES.get(number or 0, "choose another path")
        raise ListenError(f"cannot listen on {address.path}: {error}", hint) from error
    return sock


def _demand_place(path: str) -> None:
    """Raises :class:`ListenError` where no socket can be made."""
    size = len(os.fsencode(path))
    if size > LONGEST_SOCKET_PATH:
        raise ListenError(
            f"the socket's path has {size} bytes, Linux takes {LONGEST_SOCKET_PATH}: {path}",
            f"choose a shorter one, such as {RUN}/serve.sock",
        )
    folder = Path(path).parent
    try:
        is_folder = stat.S_ISDIR(folder.stat().st_mode)
    except (OSError, ValueError) as error:
        hint = "make the folder (systemd: RuntimeDirectory=)"
        if str(folder) == RUN:
            hint = "the systemd unit and the init script make it when they start the service"
        why = error.strerror if isinstance(error, OSError) else error
        message = f"cannot listen on {path}: {folder}: {why}"
        raise ListenError(message, hint, made_at_start=str(folder) == RUN) from error
    if not is_folder:
        raise ListenError(f"cannot listen on {path}: {folder} is no folder", "choose another path")
    if not os.access(folder, os.W_OK | os.X_OK):
        hint = "give it to the service's user, or put the socket below /run"
        raise ListenError(f"cannot listen on {path}: nothing can be made in {folder}", hint)


def _stale(path: str) -> bool:
    """Whether a socket is there whose owner was killed; raises :class:`ListenError` where something else is."""
    try:
        kind = os.lstat(path).st_mode
    except (OSError, ValueError):
        return False
    if not stat.S_ISSOCK(kind):
        raise ListenError(f"{path} exists and is no socket", "choose another path, or remove it")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            return True
        except OSError:
            pass
    hint = "another program listens there; end it or choose another path"
    raise ListenError(f"{path} is in use", hint, in_use=True)
