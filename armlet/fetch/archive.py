"""Unpacking archives that we did not make: nothing lands outside the folder, and equal archives give equal trees."""

from __future__ import annotations

import io
import lzma
import os
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

import zstandard

from armlet.errors import ArmletError, Kind
from armlet.reproducible import EPOCH

_AR_MAGIC = b"!<arch>\n"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"

_DAMAGED = (
    *(tarfile.TarError, zipfile.BadZipFile, zstandard.ZstdError, lzma.LZMAError, zlib.error),
    *(EOFError, ValueError),
    # Entries that stand in each other's way, and hard links to what is not there.
    *(FileExistsError, FileNotFoundError, IsADirectoryError, NotADirectoryError, shutil.SameFileError),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """A file (``data``), a symbolic link (``link``), a hard link (``same_as``), or a folder (none of them)."""

    path: str
    data: IO[bytes] | None = None
    link: str | None = None
    same_as: str | None = None
    executable: bool = False


class _Unsafe(Exception):
    pass


def unpack(archive: Path, folder: Path, *, strip: int = 0, keep: Iterable[str] = ()) -> None:
    """Unpacks a tar file (plain, gz, bz2, xz, zst), a Debian package's files, or a zip file such as a wheel.

    ``strip`` leading path components are dropped; of what remains, only the paths in ``keep`` (and what is below them)
    are written, or all where it is empty. Modes become 644 or 755, all times ``EPOCH`` of :mod:`armlet.reproducible`.

    Raises:
        ArmletError: it is damaged, of another kind, reaches outside the folder, or lacks a path of ``keep``.
    """
    kept = tuple(keep)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _entries(archive) as entries:
            found = _write_all(entries, folder, strip, kept)
    except _Unsafe as unsafe:
        raise _refusal(archive, str(unsafe), "do not use this archive: it reaches outside its folder") from unsafe
    except _DAMAGED as error:
        raise _refusal(archive, f"cannot be unpacked: {error}", "fetch it again, or check its lock entry") from error
    missing = [path for path in kept if path not in found]
    if missing:
        raise _refusal(archive, f"has no {', '.join(missing)}", "mend keep: or strip: of its lock entry")
    normalise(folder)


def normalise(folder: Path) -> None:
    """Gives every file and folder below, and the folder itself, the same mode and time on every machine."""
    for place, folders, files in os.walk(folder, topdown=False):
        for name in (*files, *folders):
            _normalise_one(Path(place) / name)
    _normalise_one(folder)


def _normalise_one(path: Path) -> None:
    mode = path.lstat().st_mode
    if not stat.S_ISLNK(mode):
        path.chmod(0o755 if stat.S_ISDIR(mode) or mode & stat.S_IXUSR else 0o644)
    os.utime(path, (EPOCH, EPOCH), follow_symlinks=False)


def _write_all(entries: Iterable[_Entry], folder: Path, strip: int, keep: tuple[str, ...]) -> set[str]:
    """Writes the entries and returns which paths of ``keep`` were found."""
    found: set[str] = set()
    links: list[tuple[Path, str]] = []
    for entry in entries:
        inner = _inside(entry.path, strip)
        kept = next((path for path in keep if inner == path or inner.startswith(f"{path}/")), None)
        if not inner or (keep and kept is None):
            continue
        found.add(kept or "")
        target = folder / inner
        if entry.link is not None:
            links.append((target, entry.link))
            continue
        if entry.data is None and entry.same_as is None:
            target.mkdir(parents=True, exist_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if entry.same_as is not None:
            shutil.copy(folder / _inside(entry.same_as, strip), target)
        elif entry.data is not None:
            with target.open("wb") as stream:
                shutil.copyfileobj(entry.data, stream)
            target.chmod(0o755 if entry.executable else 0o644)
    _make_links(links, folder)
    return found


def _make_links(links: Iterable[tuple[Path, str]], folder: Path) -> None:
    # After all files: so no file is ever written through a link.
    made = []
    for target, link in links:
        # Before anything is made: an earlier link may be on the way.
        if not _is_below(target.parent, folder):
            raise _Unsafe(f"holds a path out of its folder: {target.relative_to(folder)}")
        target.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(target):
            raise _Unsafe(f"holds {target.relative_to(folder)} twice")
        target.symlink_to(link)
        made.append((target, link))
    for target, link in made:
        # All of them are there now: one link may lead through another.
        if not _is_below(target, folder):
            raise _Unsafe(f"holds a link out of its folder: {target.relative_to(folder)} -> {link}")


def _is_below(path: Path, folder: Path) -> bool:
    # Not Path.resolve(): on Python before 3.13 it fails where links go round in circles.
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _inside(path: str, strip: int) -> str:
    """The path below the folder; empty where stripping leaves nothing."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or "\0" in path:
        raise _Unsafe(f"holds a path out of its folder: {path}")
    return "/".join(pure.parts[strip:])


@contextmanager
def _entries(archive: Path) -> Iterator[Iterator[_Entry]]:
    with archive.open("rb") as stream:
        magic = stream.read(len(_AR_MAGIC))
        stream.seek(0)
        if magic == _AR_MAGIC:
            with _tar(io.BytesIO(_debian_data(stream))) as tar:
                yield _tar_entries(tar)
        elif magic.startswith(b"PK"):
            with zipfile.ZipFile(stream) as archive_file:
                yield _zip_entries(archive_file)
        else:
            with _tar(stream) as tar:
                yield _tar_entries(tar)


@contextmanager
def _tar(stream: IO[bytes]) -> Iterator[tarfile.TarFile]:
    magic = stream.read(len(_ZSTD_MAGIC))
    stream.seek(0)
    if magic != _ZSTD_MAGIC:
        with tarfile.open(fileobj=stream, mode="r|*") as tar:
            yield tar
        return
    with (
        zstandard.ZstdDecompressor().stream_reader(stream) as plain,
        tarfile.open(fileobj=plain, mode="r|") as tar,
    ):
        yield tar


def _debian_data(stream: IO[bytes]) -> bytes:
    """The tar file of a Debian package's files: one member of an ``ar`` archive, 60 bytes of header before each."""
    stream.seek(len(_AR_MAGIC))
    while header := stream.read(60):
        name, size = header[:16].decode("ascii").rstrip(" /"), int(header[48:58])
        if len(header) < 60 or header[58:] != b"`\n":
            raise ValueError("damaged ar header")
        if name.startswith("data.tar"):
            return stream.read(size)
        stream.seek(size + size % 2, io.SEEK_CUR)
    raise ValueError("no data.tar in it")


def _tar_entries(tar: tarfile.TarFile) -> Iterator[_Entry]:
    for member in tar:
        if member.isdir():
            yield _Entry(path=member.name)
        elif member.isreg():
            data = tar.extractfile(member)
            yield _Entry(path=member.name, data=data, executable=bool(member.mode & stat.S_IXUSR))
        elif member.issym():
            yield _Entry(path=member.name, link=member.linkname)
        elif member.islnk():
            yield _Entry(path=member.name, same_as=member.linkname)
        else:
            raise _Unsafe(f"holds a device or pipe: {member.name}")


def _zip_entries(archive: zipfile.ZipFile) -> Iterator[_Entry]:
    for info in archive.infolist():
        mode = info.external_attr >> 16
        if info.is_dir():
            yield _Entry(path=info.filename)
        elif stat.S_ISLNK(mode):
            yield _Entry(path=info.filename, link=archive.read(info).decode())
        else:
            with archive.open(info) as data:
                yield _Entry(path=info.filename, data=data, executable=bool(mode & stat.S_IXUSR))


def _refusal(archive: Path, what: str, hint: str) -> ArmletError:
    return ArmletError(what, hint=hint, kind=Kind.INPUT, where=archive.name)
