"""The socket behind which compiled objects are shared, as ccache's client speaks to it."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from armlet.errors import ArmletError, Kind
from armlet.events import Event, Note
from armlet.mounts import COMPILE_CACHE
from armlet.remote import resp
from armlet.remote.compiled import backend
from armlet.remote.proxy import Answers, Served, serving
from armlet.remote.settings import Settings
from tests.fakes.object_server import ObjectServer

KEY = b"ccache:0123456789abcdefghijklmnopqrstuv"
PATH = "cc/01/23456789abcdefghijklmnopqrstuv"


@pytest.fixture
def server() -> Iterator[ObjectServer]:
    with ObjectServer().serving() as running:
        yield running


def settings(server: ObjectServer, *, write: bool = True) -> Settings:
    return Settings.of({"ARMLET_COMPILE_CACHE": f"{server.url}/cc", "ARMLET_SHARE": str(int(write))})


def command(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


class Client:
    def __init__(self, served: Served) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(20)
        self._socket.connect(str(served.mounts[0].source / "redis"))
        self._stream = self._socket.makefile("rb")

    def say(self, data: bytes) -> bytes:
        """The first line of the answer, or what it holds."""
        self._socket.sendall(data)
        line = self._stream.readline()
        if line.startswith(b"$") and line != b"$-1\r\n":
            return self._stream.read(int(line[1:]) + 2)[:-2]
        return line

    def close(self) -> None:
        self._stream.close()
        self._socket.close()


@contextmanager
def client(settings: Settings, told: list[Event] | None = None) -> Iterator[Client]:
    with serving(settings, "4.8+really4.7.5-1", (told if told is not None else []).append) as served:
        made = Client(served)
        try:
            yield made
        finally:
            made.close()


def test_what_one_sets_another_gets(server: ObjectServer) -> None:
    value = bytes(range(256)) * 50 + b"\r\n"
    with client(settings(server)) as first:
        assert first.say(command(b"EXISTS", KEY)) == b":0\r\n"
        assert first.say(command(b"GET", KEY)) == b"$-1\r\n"
        assert first.say(command(b"SET", KEY, value)) == b"+OK\r\n"
        assert first.say(command(b"EXISTS", KEY)) == b":1\r\n"
    # Where a ccache without us would look for it.
    assert server.objects == {PATH: value}
    told: list[Event] = []
    with client(settings(server, write=False), told) as second:
        assert second.say(command(b"GET", KEY)) == value
    assert [event.text.rpartition(": ")[2] for event in told if isinstance(event, Note)] == [
        "1 of 1 entries found, 0 sent"
    ]


def test_a_reader_changes_nothing(server: ObjectServer) -> None:
    with client(settings(server, write=False)) as reader:
        assert reader.say(command(b"SET", KEY, b"poison")) == b"+OK\r\n"
        assert reader.say(command(b"DEL", KEY)) == b":0\r\n"
    assert server.done("PUT") == []


@pytest.mark.parametrize(
    "words",
    [
        (b"GET", b"secrets"),
        (b"GET", b"ccache:../../../../../../etc/passwd"),
        (b"GET", KEY + b"\r\n"),
        (b"KEYS", b"*"),
        (b"FLUSHALL",),
        (b"CONFIG", b"GET", b"requirepass"),
        (b"EVAL", KEY, b"0"),
    ],
)
def test_there_is_nothing_else_to_be_reached(words: tuple[bytes, ...], server: ObjectServer) -> None:
    with client(settings(server)) as curious:
        assert curious.say(command(*words)).startswith(b"-ERR")
        assert curious.say(command(b"PING")) == b"+OK\r\n"
    assert server.seen == []


@pytest.mark.parametrize(
    "data", [b"GET x\r\n", b"*9999999\r\n", b"*1\r\n$99999999999\r\n", b"*1\r\n$-1\r\n", b"\0" * 99]
)
def test_what_is_no_command_ends_the_conversation(data: bytes, server: ObjectServer) -> None:
    with client(settings(server)) as broken:
        assert broken.say(data) == b""


def test_one_that_is_down_is_asked_three_times_and_told_of_once(server: ObjectServer) -> None:
    server.status.update(GET=403, HEAD=403)
    told: list[Event] = []
    with client(settings(server), told) as asking:
        for _ in range(20):
            assert asking.say(command(b"GET", KEY)) == b"$-1\r\n"
            # Not there, and nothing to be sent either.
            assert asking.say(command(b"EXISTS", KEY)) == b":1\r\n"
    assert len(server.seen) == 3
    assert len([event for event in told if isinstance(event, Note) and event.text.startswith("warning")]) == 1


def test_many_compilers_at_once(server: ObjectServer) -> None:
    with serving(settings(server), "4.11.2-1", lambda _event: None) as served:
        failures = []

        def compiler(number: int) -> None:
            one = Client(served)
            key = b"ccache:%032d" % number
            one.say(command(b"SET", key, b"%d" % number * 1000))
            if one.say(command(b"GET", key)) != b"%d" % number * 1000:
                failures.append(number)
            one.close()

        workers = [threading.Thread(target=compiler, args=(number,)) for number in range(32)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert failures == []
    assert len(server.objects) == 32


@pytest.mark.parametrize(("version", "shares"), [("4.2-1", False), ("4.8+really4.7.5-1", True), ("4.11.2-1", True)])
def test_an_old_ccache_shares_nothing_and_says_so(version: str, shares: bool, server: ObjectServer) -> None:
    told: list[Event] = []
    with serving(settings(server), version, told.append) as served:
        assert bool(served.mounts) is shares
        if shares:
            assert served.environment["CCACHE_REMOTE_STORAGE"].startswith(f"redis+unix:{COMPILE_CACHE}/")
    assert len(told) == 1


def test_nothing_is_shared_where_nothing_is_named() -> None:
    with serving(Settings(), "4.7.5-1", lambda _event: None) as served:
        assert served == Served()


def test_the_socket_is_gone_with_the_build(server: ObjectServer) -> None:
    with serving(settings(server), "4.7.5-1", lambda _event: None) as served:
        folder: Path = served.mounts[0].source
        assert folder.stat().st_mode & 0o077 == 0
    assert not folder.exists()


@pytest.mark.parametrize(
    "reply", [b"$abc\r\n", b":abc\r\n", b"*2\r\n:1\r\n:2\r\n", b"*1\r\n" * 100_000, b"hello\r\n", b""]
)
def test_what_is_no_redis_is_told_and_left_alone(reply: bytes) -> None:
    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                if self.request.recv(65536):
                    self.request.sendall(reply)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        url, told = f"redis://127.0.0.1:{server.server_address[1]}/0", list[Event]()
        settings = Settings.of({"ARMLET_COMPILE_CACHE": url})
        assert settings.compiled is not None
        asked = Answers(backend(settings.compiled), write=False, where=url, emit=told.append)
        assert [asked.answer([b"GET", b"ccache:" + b"a" * 40]) for _ in range(4)] == [resp.NIL] * 4
        server.shutdown()
        thread.join()
    assert len(told) == 1


@pytest.mark.parametrize("database", ["abc", "0/1", "-1", "1.5"])
def test_a_database_is_a_number(database: str) -> None:
    with pytest.raises(ArmletError) as caught:
        Settings.of({"ARMLET_COMPILE_CACHE": f"redis://:secret@host/{database}"})
    assert (caught.value.kind, "secret" in str(caught.value)) == (Kind.INPUT, False)
