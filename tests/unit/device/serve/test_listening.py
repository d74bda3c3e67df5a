"""Addresses that cannot be listened on say why, and what to do."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from armlet_runtime.serve.listening import (
    LONGEST_SOCKET_PATH,
    Address,
    ListenError,
    TcpAddress,
    UnixAddress,
    describe,
    forget,
    listen,
)


def refused(address: Address) -> ListenError:
    with pytest.raises(ListenError) as caught:
        listen(address, 1)
    assert caught.value.hint
    return caught.value


def test_a_port_in_use() -> None:
    with listen(TcpAddress(port=0), 1) as first:
        port = first.getsockname()[1]
        error = refused(TcpAddress(port=port))
        assert str(port) in error.message
        assert "choose another port" in error.hint


@pytest.mark.parametrize(
    "address",
    [
        TcpAddress("203.0.113.1", 0),
        TcpAddress("no.such.name.invalid", 0),
        TcpAddress("a" * 300, 0),
        TcpAddress(port=70000),
    ],
)
def test_no_such_address(address: TcpAddress) -> None:
    refused(address)


def test_version_6() -> None:
    with listen(TcpAddress("::1", 0), 1) as sock:
        assert describe(TcpAddress("::1", 0), sock).startswith("http://[::1]:")


def test_the_longest_path_and_one_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    longest = UnixAddress("s" * LONGEST_SOCKET_PATH)
    forget(longest, listen(longest, 1))
    error = refused(UnixAddress("s" * (LONGEST_SOCKET_PATH + 1)))
    assert str(LONGEST_SOCKET_PATH) in error.message


def test_what_took_the_sockets_place_stays(tmp_path: Path) -> None:
    address = UnixAddress(str(tmp_path / "s"))
    first = listen(address, 1)
    Path(address.path).unlink()
    with listen(address, 1) as second:
        forget(address, first)
        assert Path(address.path).is_socket()
        Path(address.path).unlink()
        Path(address.path).write_text("mine")
        forget(address, second)
    assert Path(address.path).read_text() == "mine"
    Path(address.path).unlink()
    forget(address, listen(address, 1))
    assert not Path(address.path).exists()


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert "RuntimeDirectory" in refused(UnixAddress(str(tmp_path / "no" / "s"))).hint


def test_the_socket_of_a_service_that_was_killed_is_replaced(tmp_path: Path) -> None:
    address = UnixAddress(str(tmp_path / "s"))
    listen(address, 1).close()
    assert Path(address.path).is_socket()
    with listen(address, 1):
        assert "in use" in refused(address).message
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(address.path)


def test_no_other_file_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_text("x")
    assert "no socket" in refused(UnixAddress(str(path))).message
    assert path.read_text() == "x"


def test_a_path_that_no_file_can_have() -> None:
    refused(UnixAddress("/tmp/\0"))
