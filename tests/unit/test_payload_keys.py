"""Keys on the host: written once, for their owner's eyes, and read with clear refusals."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from armlet_runtime.signature import signer, trusted_keys
from cryptography.hazmat.primitives.asymmetric import ed448, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from armlet.errors import ArmletError, Kind
from armlet.events import Event
from armlet.payload.keys import load_signer, new_key


def never() -> str:
    raise AssertionError("no passphrase is needed")


def test_what_a_new_key_signs_the_device_takes(tmp_path: Path) -> None:
    made = new_key("release", tmp_path / "keys")
    assert stat.S_IMODE(made.private.stat().st_mode) == 0o600
    told: list[Event] = []
    loaded = load_signer(made.private, never, told.append)
    assert told == []
    (trusted,) = trusted_keys(made.public.parent)
    assert trusted == loaded.public
    assert trusted.fingerprint == made.fingerprint
    assert signer(b"text", loaded.sign(b"text"), [trusted]) == trusted


def test_two_keys_are_two(tmp_path: Path) -> None:
    assert new_key("a", tmp_path).fingerprint != new_key("b", tmp_path).fingerprint


@pytest.mark.parametrize("there", ["release.key", "release.pub"])
def test_nothing_is_overwritten(there: str, tmp_path: Path) -> None:
    (tmp_path / there).write_text("precious")
    with pytest.raises(ArmletError) as caught:
        new_key("release", tmp_path)
    assert caught.value.kind is Kind.INPUT
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {there: "precious"}


def test_a_pair_is_there_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def full(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ArmletError) as caught:
        new_key("release", tmp_path)
    assert caught.value.kind is Kind.HOST
    assert [*tmp_path.iterdir()] == []
    monkeypatch.undo()
    new_key("release", tmp_path)


@pytest.mark.parametrize("name", ["", "../x", "a/b", "Release", "a b", "a\n", "a\nb", "a" * 65])
def test_names_that_are_none(name: str, tmp_path: Path) -> None:
    with pytest.raises(ArmletError):
        new_key(name, tmp_path)
    assert [*tmp_path.iterdir()] == []


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ArmletError) as caught:
        new_key("release", tmp_path / "file" / "keys")
    assert caught.value.kind is Kind.HOST


def test_a_passphrase(tmp_path: Path) -> None:
    made = new_key("release", tmp_path, passphrase="wörds")
    assert b"ENCRYPTED" in made.private.read_bytes()
    assert load_signer(made.private, lambda: "wörds").public.fingerprint == made.fingerprint
    for wrong in ("words", ""):
        with pytest.raises(ArmletError, match="decrypted"):
            load_signer(made.private, lambda wrong=wrong: wrong)  # type: ignore[misc]


def test_a_key_that_others_may_read_is_told_of(tmp_path: Path) -> None:
    made = new_key("release", tmp_path)
    made.private.chmod(0o644)
    told: list[Event] = []
    load_signer(made.private, never, told.append)
    assert len(told) == 1


def test_what_is_no_private_key(tmp_path: Path) -> None:
    made = new_key("release", tmp_path)
    forms = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    wrong = {
        "public.key": made.public.read_bytes(),
        "nothing.key": b"",
        "cut.key": made.private.read_bytes()[:60],
        "rsa.key": rsa.generate_private_key(65537, 2048).private_bytes(*forms),
        "ed448.key": ed448.Ed448PrivateKey.generate().private_bytes(*forms),
    }
    for name, content in wrong.items():
        (tmp_path / name).write_bytes(content)
    os.mkfifo(tmp_path / "pipe.key")
    for name in (*wrong, "missing.key", "pipe.key"):
        with pytest.raises(ArmletError) as caught:
            load_signer(tmp_path / name, never)
        assert (caught.value.kind, caught.value.where) == (Kind.INPUT, str(tmp_path / name))
