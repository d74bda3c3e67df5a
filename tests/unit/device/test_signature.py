"""Keys and signatures, through each library that the device may have."""

from __future__ import annotations

import builtins
import hashlib
from pathlib import Path
from typing import Any

import pytest
from armlet_runtime import refusal, signature
from armlet_runtime.refusal import PayloadError
from cryptography.hazmat.primitives.asymmetric import ec, x25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tests.fakes.payloads import KEY, OTHER_KEY, public_pem

LIBRARIES = ("nacl", "cryptography")


def without(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    real = builtins.__import__

    def importing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] in names:
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", importing)


@pytest.mark.parametrize("missing", [(), ("nacl",), ("cryptography",)], ids=["both", "no nacl", "no cryptography"])
def test_either_library_tells_right_from_wrong(missing: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, *missing)
    keys = [signature.public_key("other", public_pem(OTHER_KEY)), signature.public_key("release", public_pem())]
    right = KEY.sign(b"text")
    assert signature.signer(b"text", right, keys).name == "release"
    wrong = [bytes(64), right[:63], right + b"x", b"", right[:-1] + bytes([right[-1] ^ 1]), OTHER_KEY.sign(b"other")]
    for bad in wrong:
        with pytest.raises(PayloadError) as caught:
            signature.signer(b"text", bad, keys)
        assert caught.value.reason == refusal.SIGNATURE
        assert all(key.fingerprint[:16] in caught.value.what for key in keys)


def test_without_a_library_nothing_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, *LIBRARIES)
    with pytest.raises(PayloadError) as caught:
        signature.signer(b"text", KEY.sign(b"text"), [signature.public_key("release", public_pem())])
    assert caught.value.reason == refusal.LIBRARY


def test_a_key_is_its_raw_bytes() -> None:
    raw = KEY.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    key = signature.public_key("release", public_pem().replace(b"\n", b"\r\n"))
    assert (key.raw, key.fingerprint) == (raw, hashlib.sha256(raw).hexdigest())


def spki(key: Any) -> bytes:
    found: bytes = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return found


BAD = {
    "nothing": b"",
    "private": KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    "x25519": spki(x25519.X25519PrivateKey.generate()),
    "ecdsa": spki(ec.generate_private_key(ec.SECP256R1())),
    "openssh": KEY.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH),
    "raw": bytes(32),
    "cut": public_pem()[:-30],
    "no base64": public_pem().replace(b"M", b"="),
    "two": public_pem() * 2,
}


@pytest.mark.parametrize("pem", BAD.values(), ids=BAD)
def test_what_is_no_key(pem: bytes) -> None:
    with pytest.raises(PayloadError) as caught:
        signature.public_key("x", pem)
    assert caught.value.reason == refusal.KEY


def test_a_folder_of_keys(tmp_path: Path) -> None:
    (tmp_path / "b.pub").write_bytes(public_pem())
    (tmp_path / "a.pub").write_bytes(public_pem(OTHER_KEY))
    (tmp_path / "release.key").write_text("not looked at")
    assert [key.name for key in signature.trusted_keys(tmp_path)] == ["a", "b"]
    assert [key.name for key in signature.trusted_keys(tmp_path / "b.pub")] == ["b"]
    (tmp_path / "a.pub").unlink()
    assert [key.name for key in signature.trusted_keys(tmp_path)] == ["b"]
    (tmp_path / "c.pub").write_text("damaged")
    with pytest.raises(PayloadError):
        signature.trusted_keys(tmp_path)


@pytest.mark.parametrize("place", ["", "missing.pub"])
def test_no_keys_at_all(place: str, tmp_path: Path) -> None:
    with pytest.raises(PayloadError) as caught:
        signature.trusted_keys(tmp_path / place)
    assert caught.value.reason == refusal.KEY
