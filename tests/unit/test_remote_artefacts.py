"""The store that machines share: what it gives, and what becomes of one that is down, slow or lies."""

from __future__ import annotations

import base64
import errno
import io
import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard

from armlet import digest
from armlet.errors import ArmletError, Kind
from armlet.events import Event, Note
from armlet.fetch.transport import Patience
from armlet.remote.artefacts import Artefacts
from armlet.remote.objects import Objects, Unavailable
from armlet.remote.packing import pack
from armlet.remote.settings import Settings, address
from armlet.store import Store
from tests.fakes.object_server import ObjectServer

ID, OTHER = "a" * 64, "b" * 64
IMPATIENT = Patience(connect=1.0, silence=1.0, attempts=2)


@pytest.fixture
def server() -> Iterator[ObjectServer]:
    with ObjectServer().serving() as running:
        yield running


def artefacts(url: str, *, write: bool = True, told: list[Event] | None = None) -> Artefacts:
    emit = told.append if told is not None else lambda _event: None
    return Artefacts(Objects(address("ARMLET_STORE", url), patience=IMPATIENT), write=write, emit=emit)


def output(folder: Path) -> Path:
    """A step's output with all that there may be in one."""
    (folder / "lib" / "empty").mkdir(parents=True)
    (folder / "lib" / "libx.so.1").write_bytes(os.urandom(3000))
    (folder / "lib" / "libx.so").symlink_to("libx.so.1")
    (folder / "tool").write_text("#!/bin/sh\n")
    (folder / "tool").chmod(0o755)
    os.link(folder / "tool", folder / "twin")
    (folder / ("lang" * 60)).write_text("a name that older tars have no room for\n")
    return folder


def tree(folder: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = str(path.readlink())
        elif path.is_dir():
            found[name] = None
        else:
            found[name] = (path.read_bytes(), path.stat().st_mode & 0o777)
    return found


def notes(told: list[Event]) -> list[str]:
    return [event.text for event in told if isinstance(event, Note) and event.text.startswith("warning")]


def test_what_one_machine_made_another_gets(server: ObjectServer, tmp_path: Path) -> None:
    made = output(tmp_path / "made")
    artefacts(server.url).offer("compile", ID, made)
    other = Store(tmp_path / "store")
    there = artefacts(server.url, write=False)
    assert there.has(ID)
    assert not there.has(OTHER)
    assert there.bring("compile", ID, other)
    found = other.find(ID)
    assert found is not None
    assert tree(found) == tree(made)
    assert [path.name for path in (tmp_path / "store").iterdir() if path.name.startswith(".staging")] == []


def test_what_is_there_is_not_sent_again(server: ObjectServer, tmp_path: Path) -> None:
    made = output(tmp_path / "made")
    artefacts(server.url).offer("compile", ID, made)
    artefacts(server.url).offer("compile", ID, made)
    assert len(server.done("PUT")) == 2
    # An equal output of another step is the same object.
    assert sorted(path.partition("/")[0] for path in server.objects) == ["objects", "steps"]


def test_a_reader_sends_nothing(server: ObjectServer, tmp_path: Path) -> None:
    artefacts(server.url, write=False).offer("compile", ID, output(tmp_path / "made"))
    assert server.seen == []


def test_an_archive_depends_on_names_contents_and_modes_alone(tmp_path: Path) -> None:
    made = output(tmp_path / "made")
    pack(made, ID, tmp_path / "one")
    for path in made.rglob("*"):
        os.utime(path, (1, 1), follow_symlinks=False)
    pack(made, ID, tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_many_publishers_of_one_id_do_no_harm(server: ObjectServer, tmp_path: Path) -> None:
    folders = [output(tmp_path / f"made-{number}") for number in range(6)]
    workers = [threading.Thread(target=artefacts(server.url).offer, args=("compile", ID, folder)) for folder in folders]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    store = Store(tmp_path / "store")
    assert artefacts(server.url).bring("compile", ID, store)
    assert tree(store[ID]) in [tree(folder) for folder in folders]


def _flipped(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


def _record(server: ObjectServer, change: Callable[[dict], object]) -> None:
    name = f"steps/{ID}.json"
    record = json.loads(server.objects[name])
    change(record)
    server.objects[name] = json.dumps(record).encode()


def _object(server: ObjectServer, data: bytes) -> None:
    """Puts another object in the place of the right one, and the record agrees with it."""
    server.objects[f"objects/{digest.of_bytes(data)}"] = data
    _record(server, lambda record: record.update(object={"sha256": digest.of_bytes(data), "size": len(data)}))


def _each_object(server: ObjectServer, change: Callable[[bytes], bytes]) -> None:
    for name in [name for name in server.objects if name.startswith("objects/")]:
        server.objects[name] = change(server.objects[name])


def _of_another_id(server: ObjectServer, tmp_path: Path) -> None:
    pack(output(tmp_path / "other"), OTHER, tmp_path / "archive")
    _object(server, (tmp_path / "archive").read_bytes())


def _outside(server: ObjectServer, tmp_path: Path) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "link").symlink_to("/etc/passwd")
    pack(tmp_path / "bad", ID, tmp_path / "archive")
    _object(server, (tmp_path / "archive").read_bytes())


LIES: dict[str, Callable[[ObjectServer, Path], object]] = {
    "wrong bytes": lambda server, _: _each_object(server, _flipped),
    "longer": lambda server, _: _each_object(server, lambda data: data + b"x"),
    "shorter": lambda server, _: _each_object(server, lambda data: data[:-1]),
    "empty": lambda server, _: _each_object(server, lambda _data: b""),
    "no object": lambda server, _: [server.objects.pop(name) for name in [*server.objects] if "objects/" in name],
    "a record of another id": lambda server, _: _record(server, lambda record: record.update(id=OTHER)),
    "a record of tomorrow": lambda server, _: _record(server, lambda record: record.update(schema=2)),
    "a record without an object": lambda server, _: _record(server, lambda record: record.pop("object")),
    "a hash that is a path": lambda server, _: _record(server, lambda record: record["object"].update(sha256="../x")),
    "a size that is none": lambda server, _: _record(server, lambda record: record["object"].update(size=True)),
    "no record but a page": lambda server, _: server.objects.update({f"steps/{ID}.json": b"<html>sign in</html>"}),
    "an endless record": lambda server, _: server.objects.update({f"steps/{ID}.json": b"[" * 100_000}),
    "an archive of another id": _of_another_id,
    "an archive that reaches outside": _outside,
    "no archive": lambda server, _: _object(server, b"hello"),
    "an archive cut short": lambda server, _: _object(server, zstandard.compress(b"x" * 10_000)[:-4]),
}


@pytest.mark.parametrize("lie", LIES)
def test_one_that_lies_is_refused_and_leaves_nothing(lie: str, server: ObjectServer, tmp_path: Path) -> None:
    artefacts(server.url).offer("compile", ID, output(tmp_path / "made"))
    LIES[lie](server, tmp_path)
    told: list[Event] = []
    store = Store(tmp_path / "store")
    there = artefacts(server.url, told=told)
    assert not there.bring("compile", ID, store)
    assert store.find(ID) is None
    assert [path.name for path in (tmp_path / "store").glob("*") if not path.name.endswith(".lock")] == []
    (warning,) = notes(told)
    assert "compile" in warning
    # One lie is no reason not to ask for the others, and who makes it then mends it for all.
    assert there.has(ID)
    there.offer("compile", ID, tmp_path / "made")
    assert artefacts(server.url, write=False).bring("compile", ID, store)
    assert tree(store[ID]) == tree(tmp_path / "made")


@pytest.mark.parametrize("method", ["HEAD", "GET"])
@pytest.mark.parametrize("status", [403, 500])
def test_one_that_refuses_is_told_of_once(method: str, status: int, server: ObjectServer, tmp_path: Path) -> None:
    artefacts(server.url).offer("compile", ID, output(tmp_path / "made"))
    server.status[method] = status
    told: list[Event] = []
    there = artefacts(server.url, told=told)
    store = Store(tmp_path / "store")
    for _ in range(3):
        there.has(ID)
        assert not there.bring("compile", ID, store)
        there.offer("compile", OTHER, tmp_path / "made")
    assert len(notes(told)) == 1
    assert store.find(ID) is None


def test_one_that_is_cut_off_is_down(server: ObjectServer, tmp_path: Path) -> None:
    artefacts(server.url).offer("compile", ID, output(tmp_path / "made"))
    server.cut = 20
    told: list[Event] = []
    assert not artefacts(server.url, told=told).bring("compile", ID, Store(tmp_path / "store"))
    assert len(notes(told)) == 1


def test_one_that_takes_half_an_upload_gets_no_record(server: ObjectServer, tmp_path: Path) -> None:
    server.keeps = 100
    told: list[Event] = []
    artefacts(server.url, told=told).offer("compile", ID, output(tmp_path / "made"))
    assert len(notes(told)) == 1
    assert not any(name.startswith("steps/") for name in server.objects)
    # And the next one mends it.
    server.keeps = None
    artefacts(server.url).offer("compile", ID, tmp_path / "made")
    assert artefacts(server.url).bring("compile", ID, Store(tmp_path / "store"))


def test_nobody_there(tmp_path: Path) -> None:
    told: list[Event] = []
    with ObjectServer().serving() as gone:
        url = gone.url
    assert not artefacts(url, told=told).bring("compile", ID, Store(tmp_path / "store"))
    assert len(notes(told)) == 1


def test_credentials_go_to_the_server_and_nowhere_else(server: ObjectServer, tmp_path: Path) -> None:
    server.status["HEAD"] = 401
    told: list[Event] = []
    url = server.url.replace("//", "//us%20er:p%40ss@")
    artefacts(f"{url}/x", told=told).has(ID)
    assert server.authorisations == {"Basic " + base64.b64encode(b"us er:p@ss").decode()}
    assert notes(told)
    assert "p%40ss" not in repr(told) + repr(address("X", url))
    assert "p@ss" not in repr(address("X", url))


def test_a_token_is_sent_as_one(server: ObjectServer, capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings.of({"ARMLET_STORE": server.url, "ARMLET_STORE_TOKEN": "t0ken"})
    assert settings.store is not None
    assert Objects(settings.store).size("x") is None
    assert server.authorisations == {"Bearer t0ken"}
    assert "t0ken" not in repr(settings)


@pytest.mark.parametrize(
    "text",
    [
        "ftp://host/x",
        "host/x",
        "https://",
        "https://host/x?signature=secret",
        "https://host:99999/x",
        "https://user:secret@host/x y",
        "https://user:secret@host/x/../y",
        "https://user:secret@host/x/%2e%2e/y",
        "https://user:secret@host/./y",
        "s3://",
        "s3://Secret_Bucket/x",
    ],
)
def test_what_is_no_address_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(ArmletError) as caught:
        Settings.of({"ARMLET_STORE": text})
    assert caught.value.kind is Kind.INPUT
    assert "secret" not in str(caught.value).lower()


def test_a_switch_is_0_or_1() -> None:
    assert not Settings.of({}).write
    assert Settings.of({"ARMLET_SHARE": "1"}).write
    with pytest.raises(ArmletError):
        Settings.of({"ARMLET_SHARE": "yes"})


def test_an_empty_object_is_one(server: ObjectServer) -> None:
    objects = Objects(address("X", server.url))
    objects.write("a/empty", io.BytesIO(), 0)
    assert objects.size("a/empty") == 0


def test_a_redirected_upload_is_no_upload(server: ObjectServer) -> None:
    server.status["PUT"] = 307
    with pytest.raises(Unavailable):
        Objects(address("X", server.url)).write("a", io.BytesIO(b"x"), 1)


def test_no_room_to_pack_is_no_failure_of_the_build(
    server: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_words: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("armlet.remote.artefacts.pack", full)
    told: list[Event] = []
    artefacts(server.url, told=told).offer("compile", ID, output(tmp_path / "made"))
    (warning,) = notes(told)
    assert "No space left" in warning
    assert server.objects == {}
