"""Keys that payloads are signed with: Ed25519, private in PKCS#8, public as SubjectPublicKeyInfo, both PEM."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from armlet_runtime.payload_folder import regular
from armlet_runtime.signature import Key, public_key

from armlet.errors import ArmletError, Kind, host_error
from armlet.events import Note, Sink, silent
from armlet.onnx.libraries import library
from armlet.spec.base import NAME

PRIVATE, PUBLIC = ".key", ".pub"
_LONGEST_NAME = 64
_LARGEST_FILE = 1 << 16
"""Bytes."""
_ED25519 = "cryptography.hazmat.primitives.asymmetric.ed25519"
_SERIALIZATION = "cryptography.hazmat.primitives.serialization"
_NEW = "make one: ./inv key.new --name release"

Passphrase = Callable[[], str]
"""Asked only where a key is encrypted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    private: Path
    public: Path
    fingerprint: str
    """sha256 (hex) of the raw public key, as the device tells it."""


@dataclass(frozen=True, slots=True)
class Signer:
    """A private key; ``public`` is its other half, named as its file."""

    public: Key
    sign: Callable[[bytes], bytes]
    """The signature (64 bytes) over a message."""


def new_key(name: str, folder: Path, *, passphrase: str = "") -> NewKey:
    """Writes ``<name>.key`` (for its owner's eyes alone) and ``<name>.pub``.

    Raises:
        ArmletError: (INPUT) the name is none for a file, or one of the files is there already; (HOST) they cannot be
            written.
    """
    # With match alone, a line end behind the name would pass.
    if not re.fullmatch(NAME, name) or len(name) > _LONGEST_NAME:
        raise ArmletError(f'"{name}" is no name for a key', hint="take small letters and digits", kind=Kind.INPUT)
    private, public = folder / f"{name}{PRIVATE}", folder / f"{name}{PUBLIC}"
    for path in (private, public):
        if os.path.lexists(path):
            hint = "choose another --name or --out; a key that is in use is lost with its file"
            raise ArmletError("is there already and is not overwritten", hint=hint, kind=Kind.INPUT, where=str(path))
    key = library(_ED25519).Ed25519PrivateKey.generate()
    forms = library(_SERIALIZATION)
    hidden = forms.BestAvailableEncryption(passphrase.encode()) if passphrase else forms.NoEncryption()
    pem = _public_pem(key)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_new(private, key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, hidden), 0o600)
        try:
            _write_new(public, pem, 0o644)
        except BaseException:
            # Half a pair would be in the way of the next try.
            private.unlink()
            raise
    except OSError as error:
        raise host_error(error, folder) from error
    return NewKey(private=private, public=public, fingerprint=public_key(name, pem).fingerprint)


def load_signer(path: Path, passphrase: Passphrase, emit: Sink = silent) -> Signer:
    """Reads a private key; tells where others may read it too.

    Raises:
        ArmletError: (INPUT) it is none, or the passphrase is wrong.
    """
    try:
        with regular(path) as stream:
            pem = stream.read(_LARGEST_FILE)
            shared = os.fstat(stream.fileno()).st_mode & 0o077
    except OSError as error:
        raise _wrong(path, f"cannot be read: {error.strerror}", _NEW) from error
    if b"PUBLIC KEY" in pem:
        raise _wrong(path, "is the public half of a key", f"give the private one, *{PRIVATE}")
    load = library(_SERIALIZATION).load_pem_private_key
    encrypted = b"ENCRYPTED" in pem
    try:
        key: Any = load(pem, passphrase().encode() if encrypted else None)
    except (ValueError, TypeError, library("cryptography.exceptions").UnsupportedAlgorithm) as error:
        if encrypted:
            raise _wrong(path, "cannot be decrypted: is this its passphrase?", "see --passphrase-env") from error
        raise _wrong(path, "is no private key in PEM", _NEW) from error
    if not isinstance(key, library(_ED25519).Ed25519PrivateKey):
        raise _wrong(path, "is no Ed25519 key", _NEW)
    if shared:
        emit(Note(text=f"{path} may be read by others than its owner: chmod 600 {path}"))
    return Signer(public=public_key(path.stem, _public_pem(key)), sign=key.sign)


def _public_pem(key: Any) -> bytes:
    forms = library(_SERIALIZATION)
    pem: bytes = key.public_key().public_bytes(forms.Encoding.PEM, forms.PublicFormat.SubjectPublicKeyInfo)
    return pem


def _write_new(path: Path, data: bytes, mode: int) -> None:
    # The mode from the start: there is no moment in which others could read it.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(descriptor)
    except BaseException:
        path.unlink()
        raise


def _wrong(path: Path, what: str, hint: str) -> ArmletError:
    return ArmletError(what, hint=hint, kind=Kind.INPUT, where=str(path))
