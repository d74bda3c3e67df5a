"""Publishing: whole for readers, gone on with after an interruption, and never a change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from armlet import digest
from armlet.errors import ArmletError, Kind
from armlet.events import silent
from armlet.fetch.transport import Patience
from armlet.remote.objects import Objects
from armlet.remote.publish import SUMS, Published, publish
from armlet.remote.settings import address
from tests.fakes.object_server import ObjectServer

FOLDER = "demo/0123"
IMPATIENT = Patience(connect=1.0, silence=1.0, attempts=1)


@pytest.fixture
def server() -> Iterator[ObjectServer]:
    with ObjectServer().serving() as running:
        yield running


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    made = {}
    for name in ("a.tar.xz", "b+1~2 x.deb", "packages/c.ipk", "empty"):
        made[name] = tmp_path / name.replace("/", "-")
        made[name].write_bytes(b"" if name == "empty" else (name * 1000).encode())
    return made


def published(server: ObjectServer, files: dict[str, Path]) -> Published:
    return publish(files, FOLDER, Objects(address("--to", f"{server.url}/rel"), patience=IMPATIENT), silent)


def test_all_is_there_and_the_sums_come_last(server: ObjectServer, files: dict[str, Path]) -> None:
    made = published(server, files)
    assert made.url == f"{server.url}/rel/{FOLDER}"
    assert server.done("PUT")[-1] == f"rel/{FOLDER}/{SUMS}"
    lines = server.objects[f"rel/{FOLDER}/{SUMS}"].decode().splitlines()
    told = {name: sha256 for sha256, name in (line.split("  ", 1) for line in lines)}
    assert told == {name: digest.of_file(path) for name, path in files.items()}
    for name, sha256 in told.items():
        assert digest.of_bytes(server.objects[f"rel/{FOLDER}/{name}"]) == sha256


def test_again_sends_nothing(server: ObjectServer, files: dict[str, Path]) -> None:
    published(server, files)
    server.seen.clear()
    assert published(server, files).sent == ()
    assert server.done("PUT") == []


@pytest.mark.parametrize("taken", range(5))
def test_an_interruption_is_gone_on_with(taken: int, server: ObjectServer, files: dict[str, Path]) -> None:
    server.uploads = taken
    with pytest.raises(ArmletError) as caught:
        published(server, files)
    assert caught.value.kind is Kind.HOST
    assert f"rel/{FOLDER}/{SUMS}" not in server.objects
    server.uploads = None
    server.seen.clear()
    assert len(published(server, files).sent) == len(files) - taken
    assert len(server.done("PUT")) == len(files) - taken + 1
    assert len(server.objects) == len(files) + 1


def test_a_file_that_was_cut_short_is_sent_again(server: ObjectServer, files: dict[str, Path]) -> None:
    server.keeps = 100
    with pytest.raises(ArmletError):
        published(server, files)
    server.keeps = None
    assert len(server.objects) == 1
    assert len(published(server, files).sent) == len(files)


@pytest.mark.parametrize("change", [b"other", b"x" * 100_000])
def test_another_content_under_the_same_name_is_refused_and_stays(
    change: bytes, server: ObjectServer, files: dict[str, Path]
) -> None:
    name = f"rel/{FOLDER}/packages/c.ipk"
    server.objects[name] = change
    with pytest.raises(ArmletError) as caught:
        published(server, files)
    assert caught.value.kind is Kind.INPUT
    assert "packages/c.ipk" in caught.value.what
    assert server.objects == {name: change}


@pytest.mark.parametrize("sums", [b"", b"0" * 64 + b"  a.tar.xz\n", b"x" * (2 << 20)])
def test_what_is_published_is_never_changed(sums: bytes, server: ObjectServer, files: dict[str, Path]) -> None:
    server.objects[f"rel/{FOLDER}/{SUMS}"] = sums
    with pytest.raises(ArmletError) as caught:
        published(server, files)
    assert caught.value.kind is Kind.INPUT
    assert server.done("PUT") == []


def test_a_server_that_keeps_something_else_gets_no_sums(
    server: ObjectServer, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Objects.write

    def spoilt(self: Objects, name: str, source: object, size: int) -> None:
        write(self, name, source, size)  # type: ignore[arg-type]
        server.objects[f"rel/{name}"] = b"?" * size

    monkeypatch.setattr(Objects, "write", spoilt)
    with pytest.raises(ArmletError) as caught:
        published(server, files)
    assert caught.value.kind is Kind.HOST
    assert f"rel/{FOLDER}/{SUMS}" not in server.objects


@pytest.mark.parametrize("status", [401, 403, 405, 500])
def test_a_server_that_takes_nothing(status: int, server: ObjectServer, files: dict[str, Path]) -> None:
    server.status["PUT"] = status
    with pytest.raises(ArmletError, match=str(status)) as caught:
        published(server, files)
    assert caught.value.kind is Kind.HOST


def test_what_differs_is_named(server: ObjectServer, files: dict[str, Path]) -> None:
    published(server, files)
    files["a.tar.xz"].write_bytes(b"changed")
    files["new"] = files["a.tar.xz"]
    with pytest.raises(ArmletError, match=r"as a\.tar\.xz, new already"):
        published(server, files)


def test_what_another_publishes_meanwhile_stays(
    server: ObjectServer, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Objects.write

    def overtaken(self: Objects, name: str, source: object, size: int) -> None:
        write(self, name, source, size)  # type: ignore[arg-type]
        server.objects.setdefault(f"rel/{FOLDER}/{SUMS}", b"0  other\n")

    monkeypatch.setattr(Objects, "write", overtaken)
    with pytest.raises(ArmletError, match="other") as caught:
        published(server, files)
    assert caught.value.kind is Kind.INPUT
    assert server.objects[f"rel/{FOLDER}/{SUMS}"] == b"0  other\n"


def test_a_file_that_goes_meanwhile_is_told(
    server: ObjectServer, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Objects.write
    last = max(files)

    def gone(self: Objects, name: str, source: object, size: int) -> None:
        write(self, name, source, size)  # type: ignore[arg-type]
        files[last].unlink(missing_ok=True)

    monkeypatch.setattr(Objects, "write", gone)
    with pytest.raises(ArmletError) as caught:
        published(server, files)
    assert (caught.value.kind, caught.value.where) == (Kind.HOST, str(files[last]))
    assert f"rel/{FOLDER}/{SUMS}" not in server.objects
