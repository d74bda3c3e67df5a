"""ccache's remote storage for a container without network: a Unix socket that a small Redis answers on.

A socket's file crosses into a container like any other file, and no network does. Whoever is at its other end may ask
for cache entries by their hash, and (where this machine may write) add some; there is nothing else to be reached.
"""

from __future__ import annotations

import re
import socketserver
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from armlet.engine import Mount
from armlet.events import Note, Sink
from armlet.mounts import COMPILE_CACHE
from armlet.remote import resp
from armlet.remote.compiled import Backend, backend
from armlet.remote.objects import Unavailable
from armlet.remote.settings import Settings

OLDEST = (4, 7)
"""The first ccache that asks a Redis on a Unix socket."""
_SOCKET = "redis"
_KEY = re.compile(rb"ccache:[0-9a-z]{20,100}")
_FAILURES = 3
"""After so many the server is left alone until the build is over."""
_TIMEOUTS = "connect-timeout=2000|operation-timeout=60000"


T = TypeVar("T")


@dataclass(kw_only=True)
class Counts:
    hits: int = 0
    misses: int = 0
    sent: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What a container needs of it; nothing, where nothing is to be shared."""

    mounts: tuple[Mount, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def serving(settings: Settings, ccache: str, emit: Sink) -> Iterator[Served]:
    """Answers on a socket until the block ends, and tells then what came of it.

    ``ccache``: the version of Debian's package in the container.
    """
    if settings.compiled is None:
        yield Served()
        return
    if _version(ccache) < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        emit(Note(text=f"warning: ccache {ccache} of this toolchain shares nothing with others (it takes {wanted})"))
        yield Served()
        return
    answers = Answers(backend(settings.compiled), write=settings.write, where=str(settings.compiled), emit=emit)
    # Not below the cache: a socket's path has about 100 bytes of room.
    with tempfile.TemporaryDirectory(prefix="armlet-ccache-") as name, _server(Path(name) / _SOCKET, answers):
        storage = f"redis+unix:{COMPILE_CACHE}/{_SOCKET}|{_TIMEOUTS}"
        shared = {"CCACHE_RESHARE": "1"} if settings.write else {}
        read_only = "" if settings.write else "|read-only"
        yield Served(
            mounts=(Mount(source=Path(name), target=COMPILE_CACHE),),
            environment={"CCACHE_REMOTE_STORAGE": f"{storage}{read_only}", **shared},
        )
    emit(Note(text=answers.told()))


class Answers:
    """What is said to each command. Called from many threads."""

    def __init__(self, backend: Backend, *, write: bool, where: str, emit: Sink) -> None:
        self._backend = backend
        self._write = write
        self._where = where
        self._emit = emit
        self._lock = threading.Lock()
        self._failures = 0
        self.counts = Counts()

    def told(self) -> str:
        found = self.counts
        return (
            f"compile cache {self._where}: {found.hits} of {found.hits + found.misses} entries found, {found.sent} sent"
        )

    def answer(self, words: list[bytes]) -> bytes:
        name, *rest = words
        if name.upper() in (b"PING", b"SELECT", b"AUTH"):
            return resp.OK
        if not rest or not _KEY.fullmatch(rest[0]):
            return resp.failure("no such key here")
        key = rest[0].decode("ascii")
        match name.upper(), len(rest):
            case b"GET", 1:
                value = self._ask(lambda: self._backend.get(key), None)
                self._count(hits=int(value is not None), misses=int(value is None))
                return resp.NIL if value is None else resp.bulk(value)
            case b"EXISTS", 1:
                # To one that may not write, all is there: it has nothing to send.
                there = not self._write or self._ask(lambda: self._backend.has(key), True)
                return resp.number(int(there))
            case b"SET", 2:
                if self._write:
                    self._ask(lambda: self._put(key, rest[1]), None)
                return resp.OK
            case b"DEL", 1:
                # ccache does so with what it cannot read. Others may, so it stays: a good one takes its place.
                return resp.number(0)
        return resp.failure("no such command here")

    def _put(self, key: str, value: bytes) -> None:
        self._backend.put(key, value)
        self._count(sent=1)

    def _count(self, *, hits: int = 0, misses: int = 0, sent: int = 0) -> None:
        with self._lock:
            self.counts.hits += hits
            self.counts.misses += misses
            self.counts.sent += sent

    def _ask(self, ask: Callable[[], T], otherwise: T) -> T:
        if self._failures >= _FAILURES:
            return otherwise
        try:
            return ask()
        except Unavailable as failed:
            with self._lock:
                self._failures += 1
                last = self._failures == _FAILURES
            if last:
                self._emit(
                    Note(text=f"warning: the compile cache {self._where} cannot be used: {failed}; going on without it")
                )
            return otherwise


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    # Compilers start together.
    request_queue_size = 128

    def __init__(self, path: Path, answers: Answers) -> None:
        super().__init__(str(path), _Handler)
        self.answers = answers

    def handle_error(self, request: object, client_address: object) -> None:
        """A compiler that is killed hangs up."""


class _Handler(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        with suppress(resp.Malformed, OSError):
            while (words := resp.read_command(self.rfile)) is not None:
                self.wfile.write(self.server.answers.answer(words))


@contextmanager
def _server(path: Path, answers: Answers) -> Iterator[None]:
    with _Server(path, answers) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def _version(debian: str) -> tuple[int, ...]:
    """``4.8+really4.7.5-1`` is 4.7.5."""
    upstream = debian.rpartition("really")[2].rpartition("-")[0] or debian
    return tuple(map(int, re.findall(r"\d+", upstream)[:2]))
