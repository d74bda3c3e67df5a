"""What is found out about a machine."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from armlet.host import EngineState, engine_state, user_name


@pytest.fixture
def short_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sockets' paths are at most 107 bytes long: use relative ones."""
    monkeypatch.chdir(tmp_path)
    return Path()


@contextmanager
def server(reply: bytes) -> Iterator[None]:
    """Something that listens at d.sock and says ``reply`` to the first that asks."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("d.sock")
        listening.listen()

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(1024)
                connection.sendall(reply)

        thread = threading.Thread(target=answer)
        thread.start()
        yield
        thread.join()


def test_no_engine_at_a_place_of_ones_own(short_folder: Path) -> None:
    assert engine_state("unix://no.sock", installed=True) is EngineState.ELSEWHERE
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind("d.sock")
        assert engine_state("unix://d.sock", installed=True) is EngineState.ELSEWHERE


@pytest.mark.parametrize(
    ("reply", "state"),
    [
        (b"HTTP/1.0 200 OK\r\n\r\nOK", EngineState.REACHABLE),
        (b"", EngineState.ELSEWHERE),
        (b"?", EngineState.ELSEWHERE),
    ],
)
def test_an_engine_must_answer(short_folder: Path, reply: bytes, state: EngineState) -> None:
    with server(reply):
        assert engine_state("unix://d.sock", installed=True) is state


@pytest.mark.parametrize(("installed", "state"), [(True, EngineState.STOPPED), (False, EngineState.ABSENT)])
def test_no_default_socket(
    short_folder: Path, monkeypatch: pytest.MonkeyPatch, installed: bool, state: EngineState
) -> None:
    monkeypatch.setattr("armlet.host.ENGINE_SOCKET", "docker.sock")
    assert engine_state("", installed=installed) is state
    assert engine_state("unix://docker.sock", installed=installed) is state


def test_a_socket_of_others_is_no_permission(short_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Root passes every permission check, so the kernel's answer is given by hand.
    monkeypatch.setattr("socket.socket.connect_ex", lambda self, address: 13)
    assert engine_state("", installed=True) is EngineState.DENIED


def test_a_remote_engine_that_is_not_there() -> None:
    assert engine_state("tcp://127.0.0.1:9", installed=True) is EngineState.ELSEWHERE


@pytest.mark.parametrize("failure", [KeyError, OSError])
def test_a_user_without_a_name_is_a_number(failure: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> str:
        raise failure("getpwuid(): uid not found")

    monkeypatch.setattr("getpass.getuser", unknown)
    assert user_name() == str(os.getuid())
