"""A step's output as one archive: a tar below a folder that is named by the step's id, compressed with zstd."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

import zstandard

from armlet.errors import ArmletError, Kind
from armlet.fetch import unpack
from armlet.remote.objects import Wrong
from armlet.reproducible import EPOCH

_LEVEL = 6


def pack(folder: Path, name: str, target: Path) -> None:
    """Packs what is in ``folder`` below ``name``. The bytes depend on names, contents and modes alone."""
    with (
        target.open("wb") as stream,
        zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).stream_writer(stream, closefd=False) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path in _each(folder):
            _add(archive, path, f"{name}/{path.relative_to(folder).as_posix()}".removesuffix("/."))


def unpacked(archive: Path, name: str, folder: Path) -> Path:
    """Unpacks into ``folder`` and returns the only thing in it: the folder ``name``.

    Raises:
        Wrong: it is no such archive.
        ArmletError: (HOST) the disk is full or not writable.
    """
    try:
        unpack(archive, folder)
    except ArmletError as error:
        if error.kind is Kind.INPUT:
            raise Wrong(f"the archive {error.what}") from error
        raise
    found = [path.name for path in folder.iterdir()]
    if found != [name] or not (folder / name).is_dir():
        raise Wrong(f"the archive is of something else: {', '.join(sorted(found)[:3])[:200] or 'nothing'}")
    return folder / name


def _each(folder: Path) -> Iterator[Path]:
    yield folder
    yield from sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).as_posix())


def _add(archive: tarfile.TarFile, path: Path, name: str) -> None:
    # Else the second of two links to one file would be no file.
    archive.inodes = {}  # type: ignore[attr-defined]
    entry = archive.gettarinfo(path, name)
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mtime = EPOCH
    entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
    if entry.isreg():
        with path.open("rb") as content:
            archive.addfile(entry, content)
    else:
        archive.addfile(entry)
