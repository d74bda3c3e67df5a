"""Turns folders and tarballs into the facts that gates judge."""

from __future__ import annotations

import lzma
import re
import string
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from armlet import digest, elf
from armlet.errors import ArmletError, Kind
from armlet.gates.base import Artefact, Expected, FileFacts
from armlet.mounts import BUILD, SDKS, SOURCES

_SHOWN_LEAKS = 3
_BLOCK = 1 << 20
# What follows a folder's name: more of the path, or the end of the string, as a compiler's working directory has it.
_REST = re.compile(rb"/[\x21-\x7e\x80-\xff]{1,120}|/?(?=\0)")
_INSIDE_A_PATH = frozenset(string.ascii_letters.encode() + string.digits.encode() + b"_.-/")

# What sources and build tree are called inside the container; the prefix maps turn them into others.
CONTAINER_PREFIXES = (SOURCES, BUILD, SDKS)
# Places that every machine has: a project below them is no secret, and the maps point into /usr.
_COMMON = ("/", "/usr", "/usr/src", "/opt", "/home", "/var", "/tmp", "/srv", "/mnt", "/etc")


def forbidden_prefixes(*places: Path) -> tuple[str, ...]:
    """What no file may name: the container's folders and ``places`` (the project, the cache, the home)."""
    absolute = (str(place.absolute()).rstrip("/") or "/" for place in places)
    return tuple(dict.fromkeys((*CONTAINER_PREFIXES, *(place for place in absolute if place not in _COMMON))))


def leaks(data: bytes, forbidden: Iterable[str]) -> tuple[str, ...]:
    """The first few paths in ``data`` that start with one of the forbidden prefixes.

    A prefix counts at the start of a path only: ``/src`` is found in ``/src/a.cc``, not in ``/usr/src/a.cc``.
    """
    found: dict[str, None] = {}
    for prefix in forbidden:
        for text in _starting_with(prefix.encode(), data):
            found[text] = None
            if len(found) == _SHOWN_LEAKS:
                return tuple(found)
    return tuple(found)


def _starting_with(prefix: bytes, data: bytes) -> Iterator[str]:
    # Searching for the bare bytes first is ten times as fast as one pattern for all of it.
    at = data.find(prefix)
    while at >= 0:
        rest = _REST.match(data, at + len(prefix))
        if rest and (at == 0 or data[at - 1] not in _INSIDE_A_PATH):
            yield data[at : rest.end()].decode(errors="replace")
        at = data.find(prefix, at + 1)


def read_artefact(
    expected: Expected,
    files: Iterable[tuple[str, bytes | str]],
    debug: Iterable[tuple[str, bytes | str]],
    *,
    forbidden: Sequence[str],
) -> Artefact:
    """Parses every file; ``files`` and ``debug`` are (path, content or link target).

    Raises:
        ArmletError: an ELF file is damaged, or the main library is missing or no ELF file.
    """
    artefact = Artefact(expected=expected, files=_parse(files, forbidden), debug=_parse(debug, forbidden))
    library = artefact.files.get(expected.library)
    if library is None or library.elf is None:
        raise ArmletError(
            "the main library is missing" if library is None else "the main library is no ELF file",
            where=expected.library,
            hint="the output is incomplete: remove it and build again",
            kind=Kind.GATE,
        )
    return artefact


def _parse(files: Iterable[tuple[str, bytes | str]], forbidden: Sequence[str]) -> Mapping[str, FileFacts]:
    return {path: file_facts(path, content, forbidden=forbidden) for path, content in files}


def file_facts(path: str, content: bytes | str, *, forbidden: Sequence[str] = ()) -> FileFacts:
    """Facts of one file, given its bytes, or of one link, given its target.

    Raises:
        ArmletError: it begins like an ELF file and is none.
    """
    data = content.encode() if isinstance(content, str) else content
    is_link = isinstance(content, str)
    return FileFacts(
        path=path,
        size=len(data),
        sha256=digest.of_bytes(data),
        elf=elf.read(data, name=path) if not is_link and elf.is_elf(data) else None,
        link=content if isinstance(content, str) else None,
        # As a string in a file would stand: with an end.
        leaks=leaks(data + b"\0" if is_link else data, forbidden),
    )


def tree(folder: Path) -> Iterator[tuple[str, bytes | str]]:
    """Every file and link below ``folder``, in order of their paths."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            yield name, str(path.readlink())
        elif path.is_file():
            yield name, path.read_bytes()


def tarball(path: Path) -> Iterator[tuple[str, bytes | str]]:
    """Every file and link of a ``.tar.xz`` whose members share one top folder, which is dropped from the paths.

    Raises:
        ArmletError: it cannot be read.
    """
    try:
        with lzma.open(path) as packed, tarfile.open(fileobj=packed, mode="r|") as archive:
            for member in archive:
                name = "/".join(PurePosixPath(member.name).parts[1:])
                if member.issym():
                    yield name, member.linkname
                elif member.isfile():
                    stream = archive.extractfile(member)
                    assert stream is not None
                    yield name, stream.read()
            # Behind the archive's end is the checksum of all that was read.
            while packed.read(_BLOCK):
                pass
    except (tarfile.TarError, lzma.LZMAError, OSError, EOFError) as error:
        raise ArmletError(
            f"cannot read the tarball: {error}",
            where=str(path),
            hint="it is cut off or damaged: remove it and build again",
            kind=Kind.GATE,
        ) from error


def archive(path: Path) -> Iterator[tuple[str, bytes | str]]:
    """Every file of a zip archive, such as a wheel.

    Raises:
        ArmletError: it cannot be read.
    """
    try:
        with zipfile.ZipFile(path) as packed:
            for member in packed.infolist():
                if not member.is_dir():
                    yield member.filename, packed.read(member)
    except (zipfile.BadZipFile, OSError, EOFError) as error:
        raise ArmletError(
            f"cannot read the archive: {error}",
            where=str(path),
            hint="it is cut off or damaged: remove it and build again",
            kind=Kind.GATE,
        ) from error
