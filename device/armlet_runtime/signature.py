"""Who signed a payload: detached Ed25519 signatures (RFC 8032), checked by PyNaCl or ``cryptography``.

A public key is a PEM file (SubjectPublicKeyInfo, RFC 8410); the trusted ones are those in a folder as ``*.pub``. A key
that is no longer trusted is taken out of the folder. Nothing here computes with keys itself.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from pathlib import Path
from typing import NamedTuple, Protocol, Sequence

from armlet_runtime.payload_folder import regular
from armlet_runtime.refusal import KEY, LIBRARY, SIGNATURE, PayloadError

SIGNATURE_SIZE = 64
"""Bytes."""
KEYS = "*.pub"
_LARGEST_KEY_FILE = 4096
# RFC 8410: of an Ed25519 key, SubjectPublicKeyInfo is these bytes and then the key.
_SPKI = bytes.fromhex("302a300506032b6570032100")
_KEY_SIZE = 32
_PEM = re.compile(rb"\s*-----BEGIN PUBLIC KEY-----\s([A-Za-z0-9+/=\s]+)-----END PUBLIC KEY-----\s*")


class Key(NamedTuple):
    """A public key: ``name`` is its file's without the extension, ``raw`` has 32 bytes."""

    name: str
    raw: bytes

    @property
    def fingerprint(self) -> str:
        """sha256 (hex) of the 32 bytes."""
        return hashlib.sha256(self.raw).hexdigest()

    def __str__(self) -> str:
        return f"{self.name} ({self.fingerprint[:16]})"


class Verifier(Protocol):
    """Whether ``signature`` (64 bytes) over ``message`` was made with the private half of ``key`` (32 bytes)."""

    def __call__(self, key: bytes, message: bytes, signature: bytes) -> bool: ...


def public_key(name: str, pem: bytes) -> Key:
    """Raises:
    PayloadError: (KEY) this is no PEM of an Ed25519 public key.
    """
    if b"PRIVATE KEY" in pem:
        hint = "give the public half, *.pub; the private one belongs on no device"
        raise PayloadError(KEY, f"the key {name} is a private key", hint)
    found = _PEM.fullmatch(pem)
    try:
        der = base64.b64decode(b"".join(found[1].split()), validate=True) if found else b""
    except binascii.Error:
        der = b""
    if len(der) != len(_SPKI) + _KEY_SIZE or not der.startswith(_SPKI):
        raise PayloadError(KEY, f"the key {name} is no Ed25519 public key in PEM", "make one with: inv key.new")
    return Key(name, der[len(_SPKI) :])


def trusted_keys(place: Path) -> tuple[Key, ...]:
    """The keys in a folder's ``*.pub`` files, by name, or the one in a single file.

    Raises:
        PayloadError: (KEY) there is none, or a file is no key: a trusted key that is silently left out would look like
            one that was revoked.
    """
    try:
        if not place.exists():
            raise PayloadError(KEY, f"no key is trusted: there is no {place}", f"make that folder, with keys as {KEYS}")
        files = sorted(place.glob(KEYS)) if place.is_dir() else [place]
        if not files:
            raise PayloadError(KEY, f"no key is trusted: {place} has no {KEYS}", "put the public keys there")
        return tuple(public_key(file.stem, _read(file)) for file in files)
    except OSError as error:
        what = f"the key {error.filename or place} cannot be read: {error.strerror}"
        raise PayloadError(KEY, what, "check the path and its permissions") from error


def _read(file: Path) -> bytes:
    with regular(file) as stream:
        return stream.read(_LARGEST_KEY_FILE)


def signer(message: bytes, signature: bytes, keys: Sequence[Key], verify: Verifier | None = None) -> Key:
    """The trusted key that made the signature.

    Raises:
        PayloadError: (SIGNATURE) none did; (LIBRARY) no library checks signatures here.
    """
    check = verify or verifier()
    if len(signature) == SIGNATURE_SIZE:
        for key in keys:
            if check(key.raw, message, signature):
                return key
    trusted = ", ".join(map(str, keys)) or "none"
    raise PayloadError(
        SIGNATURE,
        f"it was changed, or signed by none of the trusted keys: {trusted}",
        "get it again from who made it; if that is somebody new, trust their public key first",
    )


def verifier() -> Verifier:
    """The verifier of the library that is there, PyNaCl first: it is the smaller one.

    Raises:
        PayloadError: (LIBRARY) neither is.
    """
    for make in (_pynacl, _cryptography):
        try:
            return make()
        except ImportError:
            continue
    raise PayloadError(
        LIBRARY,
        "no library here checks Ed25519 signatures",
        "install PyNaCl (Debian: python3-nacl) or cryptography (python3-cryptography)",
    )


def _pynacl() -> Verifier:
    from nacl.exceptions import BadSignatureError
    from nacl.signing import VerifyKey

    def check(key: bytes, message: bytes, signature: bytes) -> bool:
        try:
            VerifyKey(key).verify(message, signature)
        except BadSignatureError:
            return False
        return True

    return check


def _cryptography() -> Verifier:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    def check(key: bytes, message: bytes, signature: bytes) -> bool:
        try:
            Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
        except InvalidSignature:
            return False
        return True

    return check
