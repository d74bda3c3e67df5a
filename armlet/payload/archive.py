"""Writing payloads: whole or not at all, the same bytes for the same content, and read back before they count."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from armlet_runtime import payload, ustar
from armlet_runtime.payload_manifest import MANIFEST, SIGNATURE, created_at
from armlet_runtime.signature import Key

from armlet.errors import host_error
from armlet.payload.refused import told

Content = Mapping[str, bytes | Path]
"""Path in the payload -> its bytes, or the file that has them; in the order of the manifest."""
_PIECE = 1 << 20


def write_archive(
    target: Path,
    manifest: bytes,
    signature: bytes | None,
    content: Content,
    *,
    created: str,
    key: Key | None,
    limit: int,
) -> payload.Payload:
    """Writes a payload's archive, and reads it as a device that trusts ``key`` will.

    Raises:
        ArmletError: (GATE) no device will take it: it is too large, holds a name that is not safe, or a file changed
            meanwhile; (HOST) the disk is full or not writable.
    """
    signed = {} if signature is None else {SIGNATURE: signature}
    with whole_file(target) as stream:
        for name, source in {MANIFEST: manifest, **signed, **content}.items():
            _add(stream, name, source, created_at(created))
        stream.write(ustar.END)
        stream.flush()
        stream.seek(0)
        with told(target):
            return payload.verify_archive(stream, None if key is None else (key,), limit=limit)


def unpack(archive: Path, folder: Path, *, key: Key | None, limit: int) -> None:
    """Makes ``folder`` with a payload's files in it, in place of one that is there.

    Raises:
        ArmletError: as ``write_archive``.
    """
    with told(archive), fresh_folder(folder) as fresh, archive.open("rb") as stream:
        payload.verify_archive(stream, None if key is None else (key,), limit=limit, into=fresh)


@contextmanager
def whole_file(target: Path) -> Iterator[BinaryIO]:
    """Yields a file to write and read, that takes the place of ``target`` when the block ends without an exception.

    Raises:
        ArmletError: (HOST) the disk is full or not writable.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-", suffix=".part")
        part = Path(name)
        try:
            with os.fdopen(descriptor, "w+b") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            part.chmod(0o644)
            part.replace(target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise host_error(error, target) from error


@contextmanager
def fresh_folder(target: Path) -> Iterator[Path]:
    """Yields an empty folder that takes the place of ``target`` when the block ends without an exception.

    Raises:
        ArmletError: (HOST) the disk is full or not writable.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-", suffix=".part") as made:
            fresh = Path(made, "new")
            fresh.mkdir()
            yield fresh
            if target.is_dir():
                target.rename(Path(made, "old"))
            fresh.rename(target)
    except OSError as error:
        raise host_error(error, target) from error


def _add(stream: BinaryIO, name: str, source: bytes | Path, mtime: int) -> None:
    size = len(source) if isinstance(source, bytes) else source.stat().st_size
    try:
        stream.write(ustar.header(name, size, mtime))
    except ValueError:
        # What reads it back has the words for it.
        stream.write(bytes(ustar.BLOCK))
        return
    if isinstance(source, bytes):
        stream.write(source)
    else:
        with source.open("rb") as content:
            shutil.copyfileobj(content, stream, _PIECE)
    stream.write(bytes(ustar.padding(size)))
