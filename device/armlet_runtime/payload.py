"""Taking in payloads that somebody else may have made: who signed it is checked first, and then every byte.

A payload is a folder, or an archive (``*.payload``, a plain tar) with these members in this order: ``payload.json``,
``payload.json.sig``, and the files that ``payload.json`` lists, as it lists them. Nothing of ``payload.json`` is
interpreted before its signature is known to be a trusted key's. An archive is read once, front to back, in blocks, so
it may come from a socket; its form is fixed to the byte (:mod:`armlet_runtime.ustar` says why).
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any, BinaryIO, Iterator, NamedTuple, Sequence

from armlet_runtime import ustar
from armlet_runtime.payload_folder import demand_no_more, opened, read_to_the_end, regular, written
from armlet_runtime.payload_manifest import LARGEST_MANIFEST, MANIFEST, SIGNATURE, Entry, Manifest, read_manifest
from armlet_runtime.refusal import DAMAGED, FORM, LIMIT, PayloadError
from armlet_runtime.refusal import SIGNATURE as BY_NOBODY
from armlet_runtime.signature import SIGNATURE_SIZE, Key, Verifier, signer
from armlet_runtime.store.disk import Disk

LIMIT_BYTES = 512 << 20
"""Of all files of a payload together, unless the caller says otherwise."""
SUFFIX = ".payload"
_PIECE = 1 << 16
_AGAIN = "get it again from who made it"
_SIGN = "sign it: inv model.pack --key"

Trusted = Sequence[Key]


class Payload(NamedTuple):
    """A payload whose bytes are what was signed; ``key`` is None where it is not signed and need not be."""

    manifest: dict[str, Any]
    """``payload.json`` as parsed."""
    sha256: str
    """Of ``payload.json``, and so of everything."""
    files: tuple[Entry, ...]
    key: Key | None


def verify(
    path: Path,
    keys: Trusted | None,
    *,
    limit: int = LIMIT_BYTES,
    into: Path | None = None,
    verifier: Verifier | None = None,
) -> Payload:
    """Checks a payload's folder or archive; arguments and errors as in :func:`verify_archive`.

    Raises:
        ValueError: a folder, and ``into``: it is unpacked already.
    """
    if not path.is_dir():
        with regular(path) as stream:
            return verify_archive(stream, keys, limit=limit, into=into, verifier=verifier)
    if into is not None:
        raise ValueError(f"{path} is unpacked already")
    return verify_folder(path, keys, limit=limit, verifier=verifier)


def verify_archive(
    stream: BinaryIO,
    keys: Trusted | None,
    *,
    limit: int = LIMIT_BYTES,
    into: Path | None = None,
    verifier: Verifier | None = None,
    disk: Disk | None = None,
) -> Payload:
    """Reads an archive to its end.

    Args:
        stream: what ``read(n)`` gives at most n bytes of, and none at the end.
        keys: the trusted ones; None: it need not be signed, and by whom it is counts for nothing.
        limit: bytes that its files may have together.
        into: an empty folder that its files are written to, all of them synced. What it holds counts only once this
            function has returned: rename it into its place then. Nothing stays in it where anything fails.
        verifier: by default that of the library that is there.
        disk: what writes below ``into``; by default the real one.

    Raises:
        PayloadError: it is refused.
        OSError: the stream cannot be read, or the folder not written.
    """
    source = _Source(stream)
    block = source.read(ustar.BLOCK)
    ustar.demand_plain(block)
    found = ustar.numbers(block)
    if found is None or block != ustar.header(MANIFEST, *found):
        raise ustar.other(block, MANIFEST)
    size, mtime = found
    if size > LARGEST_MANIFEST:
        raise PayloadError(LIMIT, f"its {MANIFEST} has {size} bytes, more than {LARGEST_MANIFEST}", _AGAIN)
    data = source.whole(MANIFEST, size)
    block = source.read(ustar.BLOCK)
    signature = None
    if block == ustar.header(SIGNATURE, SIGNATURE_SIZE, mtime):
        signature = source.whole(SIGNATURE, SIGNATURE_SIZE)
        block = source.read(ustar.BLOCK)
    elif keys is not None:
        raise _unsigned(block)
    key = _signer(data, signature, keys, verifier)
    manifest = read_manifest(data, limit=limit)
    if manifest.created != mtime:
        raise PayloadError(FORM, "its members have another time than the one when it was made", _AGAIN)
    with written(into, disk or Disk()) as write:
        for path, content in ((MANIFEST, data), (SIGNATURE, signature)):
            if content is not None:
                write(path, iter([content]))
        for entry in manifest.files:
            if block != ustar.header(entry.path, entry.size, mtime):
                raise ustar.other(block, entry.path, entry.size)
            write(entry.path, _checked(source.pieces(entry.path, entry.size), entry))
            block = source.read(ustar.BLOCK)
        _demand_end(block + source.read(len(ustar.END)))
    return _payload(manifest, data, key)


def verify_folder(
    folder: Path, keys: Trusted | None, *, limit: int = LIMIT_BYTES, verifier: Verifier | None = None
) -> Payload:
    """Checks a payload that is unpacked; arguments as in :func:`verify_archive`. The folder itself may be a link.

    Raises:
        PayloadError: it is refused.
        OSError: something cannot be read.
    """
    with opened(folder, MANIFEST) as stream:
        data = _Source(stream).read(LARGEST_MANIFEST + 1)
    if len(data) > LARGEST_MANIFEST:
        raise PayloadError(LIMIT, f"its {MANIFEST} has more than {LARGEST_MANIFEST} bytes", _AGAIN)
    signature = None
    if os.path.lexists(folder / SIGNATURE):
        with opened(folder, SIGNATURE) as stream:
            signature = _Source(stream).read(SIGNATURE_SIZE + 1)
    key = _signer(data, signature, keys, verifier)
    manifest = read_manifest(data, limit=limit)
    demand_no_more(folder, {MANIFEST, SIGNATURE, *(entry.path for entry in manifest.files)})
    for entry in manifest.files:
        with opened(folder, entry.path) as stream:
            size = os.fstat(stream.fileno()).st_size
            if size != entry.size:
                raise PayloadError(DAMAGED, f"{entry.path} has {size} bytes, and {entry.size} were signed", _AGAIN)
            read_to_the_end(entry.path, _checked(_Source(stream).pieces(entry.path, size, padded=False), entry))
    return _payload(manifest, data, key)


class _Source:
    """A stream whose ``read`` may give less than was asked for."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def read(self, size: int) -> bytes:
        """``size`` bytes, fewer only at the end."""
        pieces = []
        while size and (piece := self._stream.read(size)):
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def pieces(self, name: str, size: int, *, padded: bool = True) -> Iterator[bytes]:
        """A member's content; the zeros behind it are read with the last piece of it."""
        left = size
        while left:
            piece = self.read(min(left, _PIECE))
            if not piece:
                raise PayloadError(DAMAGED, f"it ends within {name}", _AGAIN)
            left -= len(piece)
            yield piece
        zeros = ustar.padding(size) if padded else 0
        behind = self.read(zeros)
        if len(behind) < zeros:
            raise PayloadError(DAMAGED, f"it ends within {name}", _AGAIN)
        if any(behind):
            raise PayloadError(FORM, f"there is something hidden behind {name}", _AGAIN)

    def whole(self, name: str, size: int) -> bytes:
        return b"".join(self.pieces(name, size))


def _checked(pieces: Iterator[bytes], entry: Entry) -> Iterator[bytes]:
    hasher = hashlib.sha256()
    for piece in pieces:
        hasher.update(piece)
        yield piece
    if hasher.hexdigest() != entry.sha256:
        raise PayloadError(DAMAGED, f"{entry.path} is not what was signed: its sha256 differs", _AGAIN)


def _signer(data: bytes, signature: bytes | None, keys: Trusted | None, verifier: Verifier | None) -> Key | None:
    if keys is None:
        return None
    if signature is None:
        raise PayloadError(BY_NOBODY, "it is not signed", _SIGN)
    return signer(data, signature, keys, verifier)


def _unsigned(block: bytes) -> PayloadError:
    """The second member is no signature of ours."""
    refused = ustar.other(block, SIGNATURE, SIGNATURE_SIZE)
    return PayloadError(BY_NOBODY, f"it is not signed: {refused.what}", _SIGN) if refused.reason == FORM else refused


def _demand_end(rest: bytes) -> None:
    if rest == ustar.END:
        return
    if len(rest) < len(ustar.END) and not any(rest):
        raise PayloadError(DAMAGED, "its end is cut off", _AGAIN)
    raise PayloadError(FORM, "there is more in it than its manifest lists", _AGAIN)


def _payload(manifest: Manifest, data: bytes, key: Key | None) -> Payload:
    return Payload(manifest.fields, hashlib.sha256(data).hexdigest(), manifest.files, key)
