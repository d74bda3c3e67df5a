"""Tarballs whose bytes depend on names and contents alone."""

from __future__ import annotations

import lzma
import tarfile
from pathlib import Path

from armlet.reproducible import EPOCH


def write_tarball(folder: Path, target: Path, *, preset: int = 6) -> None:
    """Packs ``folder`` under its own name into an xz-compressed tarball.

    Sorted by path, owned by root, dated to the fixed epoch, in the ustar form, which has no room for anything else.
    Of a file's mode only "may be executed" is kept. ``preset`` is xz's: more is smaller and slower.
    """
    with (
        lzma.open(target, "wb", preset=preset) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for path in (folder, *sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).as_posix())):
            _add(archive, path, f"{folder.name}/{path.relative_to(folder).as_posix()}".removesuffix("/."))


def _add(archive: tarfile.TarFile, path: Path, name: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.mtime = EPOCH
    entry.uname = entry.gname = "root"
    if path.is_symlink():
        entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, str(path.readlink()), 0o777
        archive.addfile(entry)
    elif path.is_dir():
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(entry)
    else:
        status = path.stat()
        entry.size, entry.mode = status.st_size, 0o755 if status.st_mode & 0o100 else 0o644
        with path.open("rb") as content:
            archive.addfile(entry, content)
