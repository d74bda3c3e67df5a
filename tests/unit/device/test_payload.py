"""Payloads that are right are taken; whatever is cut short, changed or by somebody else is not."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from armlet_runtime import payload, refusal, ustar
from armlet_runtime.refusal import PayloadError
from armlet_runtime.signature import Key, public_key
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes import payloads

TRUSTED = (public_key("release", payloads.public_pem()),)
OTHER = public_key("other", payloads.public_pem(payloads.OTHER_KEY))
GOOD = payloads.archive()


def taken(data: bytes, keys: tuple[Key, ...] | None = TRUSTED, **how: Any) -> payload.Payload:
    return payload.verify_archive(io.BytesIO(data), keys, **how)


def refused(data: bytes, keys: tuple[Key, ...] | None = TRUSTED, **how: Any) -> PayloadError:
    with pytest.raises(PayloadError) as caught:
        taken(data, keys, **how)
    assert caught.value.what
    assert caught.value.hint
    return caught.value


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_archive_is_taken(tmp_path: Path) -> None:
    got = taken(GOOD, into=tmp_path)
    text = payloads.manifest()
    assert got.manifest["files"][0]["path"] == "model.ort"
    assert got.sha256 == hashlib.sha256(text).hexdigest()
    assert [entry.path for entry in got.files] == list(payloads.FILES)
    assert got.key == TRUSTED[0]
    signature = payloads.KEY.sign(text)
    assert tree(tmp_path) == {**payloads.FILES, "payload.json": text, "payload.json.sig": signature}
    assert payload.verify(tmp_path, TRUSTED) == got


def test_reading_without_writing_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.payload"
    path.write_bytes(GOOD)
    assert payload.verify(path, TRUSTED) == taken(GOOD)
    assert [*tmp_path.iterdir()] == [path]


def test_our_headers_are_tars_own() -> None:
    info, _ = payloads.member("golden/0/input-0.bin", b"12345")
    assert ustar.header(info.name, 5, payloads.MTIME) == info.tobuf(tarfile.USTAR_FORMAT)
    with tarfile.open(fileobj=io.BytesIO(GOOD), mode="r:") as archive:
        assert archive.getnames() == ["payload.json", "payload.json.sig", *payloads.FILES]


@pytest.mark.parametrize(("name", "size", "mtime"), [("a" * 101, 0, 0), ("a", 8**11, 0), ("a", 0, -1), ("ä", 0, 0)])
def test_no_header_is_made_of_what_does_not_fit(name: str, size: int, mtime: int) -> None:
    with pytest.raises(ValueError, match=r"."):
        ustar.header(name, size, mtime)


class Dribble(io.RawIOBase):
    """A socket that gives a few bytes at a time."""

    def __init__(self, data: bytes) -> None:
        self.rest = data

    def read(self, size: int = -1) -> bytes:
        piece, self.rest = self.rest[: min(size, 7)], self.rest[min(size, 7) :]
        return piece


def test_it_may_come_in_small_pieces() -> None:
    stream: Any = Dribble(GOOD)
    assert payload.verify_archive(stream, TRUSTED) == taken(GOOD)


def test_any_of_several_trusted_keys_will_do() -> None:
    assert taken(GOOD, (OTHER, *TRUSTED)).key == TRUSTED[0]


@pytest.mark.parametrize("keys", [(), (OTHER,)], ids=["none", "another"])
def test_nobody_else_may_sign(keys: tuple[Key, ...], tmp_path: Path) -> None:
    error = refused(GOOD, keys, into=tmp_path)
    assert error.reason == refusal.SIGNATURE
    assert all(key.name in error.what for key in keys)
    assert [*tmp_path.iterdir()] == []


def test_unsigned_is_taken_only_where_that_is_said() -> None:
    data = payloads.archive(key=None)
    assert refused(data).reason == refusal.SIGNATURE
    assert taken(data, None).key is None
    assert taken(GOOD, None).key is None


def test_nothing_is_parsed_before_the_signature() -> None:
    data = payloads.archive(text=b"[" * 1000, key=payloads.OTHER_KEY)
    assert refused(data).reason == refusal.SIGNATURE
    assert refused(payloads.archive(text=b"[" * 1000)).reason == refusal.FORM


def test_cut_short_anywhere_is_refused(tmp_path: Path) -> None:
    ends = {*range(0, len(GOOD), 512), *range(1, len(GOOD), 211), len(GOOD) - 1}
    for end in sorted(ends):
        assert refused(GOOD[:end], into=tmp_path).reason in (refusal.DAMAGED, refusal.SIGNATURE), end
        assert [*tmp_path.iterdir()] == []


def test_a_bit_flipped_anywhere_is_refused() -> None:
    for place in range(0, len(GOOD), 3):
        changed = bytearray(GOOD)
        changed[place] ^= 1 << (place % 8)
        refused(bytes(changed))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_no_mutation_gets_in_or_crashes(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    changed = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(changed)))
        end = data.draw(st.integers(start, min(len(changed), start + 600)))
        piece = data.draw(st.one_of(st.binary(max_size=64), st.sampled_from([bytes(512), GOOD[:512], GOOD[512:1024]])))
        changed[start:end] = piece
    place = tmp_path_factory.mktemp("fuzz")
    (place / "in").mkdir()
    if bytes(changed) == GOOD:
        return
    refused(bytes(changed), into=place / "in")
    assert [*place.rglob("*")] == [place / "in"]


@settings(max_examples=200, deadline=None)
@given(text=st.one_of(st.binary(max_size=200), st.text(max_size=100).map(str.encode)))
def test_signed_nonsense_is_refused(text: bytes) -> None:
    refused(payloads.archive(text=text))


def test_memory_stays_bounded(tmp_path: Path) -> None:
    data = payloads.archive({"model.ort": os.urandom(1 << 20) * 48})
    path = tmp_path / "large.payload"
    path.write_bytes(data)
    (tmp_path / "into").mkdir()
    tracemalloc.start()
    try:
        payload.verify(path, TRUSTED, into=tmp_path / "into")
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_failure_to_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def full(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 4:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        taken(GOOD, into=tmp_path)
    assert [*tmp_path.iterdir()] == []


def test_every_file_and_folder_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: set[str] = set()
    monkeypatch.setattr(os, "fsync", lambda number: synced.add(str(Path(f"/proc/self/fd/{number}").readlink())))
    taken(GOOD, into=tmp_path)
    assert synced == {str(path) for path in (tmp_path, *tmp_path.rglob("*"))}


def test_only_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    with pytest.raises(FileExistsError):
        taken(GOOD, into=tmp_path)
    assert tree(tmp_path) == {"mine": b"kept"}
