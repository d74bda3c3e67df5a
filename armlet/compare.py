"""What differs between two folders, down to the file in an archive and the section of an ELF file."""

from __future__ import annotations

import io
import itertools
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from armlet import digest
from armlet.elf import is_elf

_LONGEST_LINE = 160
_AR = b"!<arch>\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    path: str
    """Relative to the folders; what is inside an archive follows after an arrow: ``a.tar.xz > lib/b.so > .text``."""
    what: str

    def __str__(self) -> str:
        return f"{self.path}: {self.what}"


def folders(one: Path, two: Path) -> tuple[Difference, ...]:
    """All that differs in names, kinds, links and bytes; nothing where the folders are equal."""
    return tuple(_listed("", _entries(one), _entries(two)))


def data(path: str, one: bytes, two: bytes) -> Iterator[Difference]:
    """What differs between two versions of one file; nothing where they are equal."""
    if one == two:
        return
    found: list[Difference] = []
    if is_elf(one) and is_elf(two):
        found = list(_listed(path, _sections(one), _sections(two)))
    else:
        for opened in _OPENERS:
            try:
                found = list(_listed(path, opened(one), opened(two)))
                break
            except (tarfile.TarError, zipfile.BadZipFile, ValueError, EOFError, OSError):
                continue
        else:
            found = [Difference(path=path, what=_first(one, two))]
    # Two archives of equal contents, packed in two ways.
    yield from found or [Difference(path=path, what=f"the same contents in other bytes; {_offset(one, two)}")]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    about: Mapping[str, object]
    """Whatever else an archive or a folder says of it."""
    read: Callable[[], bytes] = bytes


def _listed(path: str, one: Mapping[str, _Entry], two: Mapping[str, _Entry]) -> Iterator[Difference]:
    inner = f"{path} > " if path else ""
    for name in sorted({*one, *two}):
        if name not in one or name not in two:
            yield Difference(path=inner + name, what=f"only in the {'second' if name in two else 'first'}")
            continue
        mine, other = one[name], two[name]
        if (kinds := (mine.about.get("kind"), other.about.get("kind")))[0] != kinds[1]:
            yield Difference(path=inner + name, what=f"kind: {kinds[0]!r} and {kinds[1]!r}")
            continue
        for key in sorted({*mine.about, *other.about}):
            if mine.about.get(key) != other.about.get(key):
                what = f"{key}: {mine.about.get(key)!r} and {other.about.get(key)!r}"
                yield Difference(path=inner + name, what=what)
        yield from data(inner + name, mine.read(), other.read())
    if list(one) != list(two) and set(one) == set(two):
        yield Difference(path=path, what="the same members in another order")


def _entries(root: Path) -> dict[str, _Entry]:
    return {path.relative_to(root).as_posix(): _on_disk(path) for path in sorted(root.rglob("*"))}


def _on_disk(path: Path) -> _Entry:
    if path.is_symlink():
        return _Entry(about={"kind": "link", "target": str(path.readlink())})
    if path.is_dir():
        return _Entry(about={"kind": "folder"})
    # Who may read it is this machine's matter; what may be run is not.
    return _Entry(about={"kind": "file", "runs": bool(path.stat().st_mode & stat.S_IXUSR)}, read=path.read_bytes)


def _sections(raw: bytes) -> dict[str, _Entry]:
    try:
        elf = ELFFile(io.BytesIO(raw))
        header = {key: elf.header[key] for key in ("e_type", "e_machine", "e_flags", "e_entry")}
        found = {
            section.name or "(unnamed)": _Entry(about={"size": section["sh_size"]}, read=_once(section.data()))
            for section in elf.iter_sections()
            if section["sh_type"] != "SHT_NOBITS"
        }
    except (ELFError, KeyError, TypeError) as error:
        raise ValueError(str(error)) from error
    return {"header": _Entry(about=header), **found}


def _tar(raw: bytes) -> dict[str, _Entry]:
    found: dict[str, _Entry] = {}
    with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
        for member in archive:
            about = {
                **{"kind": member.type, "mode": oct(member.mode), "time": member.mtime, "target": member.linkname},
                "owner": f"{member.uid}:{member.gid} {member.uname}:{member.gname}",
            }
            content = archive.extractfile(member) if member.isfile() else None
            found[member.name] = _Entry(about=about, read=_once(content.read() if content else b""))
    return found


def _zip(raw: bytes) -> dict[str, _Entry]:
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        return {
            member.filename: _Entry(
                about={
                    "mode": oct(member.external_attr >> 16),
                    "time": member.date_time,
                    "packed": member.compress_type,
                },
                read=_once(archive.read(member)),
            )
            for member in archive.infolist()
        }


def _ar(raw: bytes) -> dict[str, _Entry]:
    """The members of a Debian package."""
    if not raw.startswith(_AR):
        raise ValueError("no ar archive")
    found: dict[str, _Entry] = {}
    place = len(_AR)
    while place + 60 <= len(raw):
        head = raw[place : place + 60]
        size = int(head[48:58])
        name = head[:16].decode("latin-1").strip().rstrip("/")
        about = {"time": head[16:28].strip(), "owner": head[28:40].strip(), "mode": head[40:48].strip()}
        found[name] = _Entry(about=about, read=_once(raw[place + 60 : place + 60 + size]))
        place += 60 + size + size % 2
    return found


_OPENERS: Sequence[Callable[[bytes], dict[str, _Entry]]] = (_ar, _zip, _tar)


def _once(content: bytes) -> Callable[[], bytes]:
    return lambda: content


def _first(one: bytes, two: bytes) -> str:
    """The first lines that differ of two texts, or the first byte."""
    try:
        lines = [raw.decode("utf-8").splitlines() for raw in (one, two)]
    except UnicodeDecodeError:
        return _offset(one, two)
    if any("\0" in line for text in lines for line in text[:1]):
        return _offset(one, two)
    for number, (mine, other) in enumerate(itertools.zip_longest(*lines, fillvalue=""), start=1):
        if mine != other:
            return f"line {number}: {_around(mine, other)!r} and {_around(other, mine)!r}"
    return _offset(one, two)


def _around(line: str, other: str) -> str:
    """A line, or the part of a long one where it begins to differ."""
    if len(line) <= _LONGEST_LINE:
        return line
    same = next((at for at, pair in enumerate(zip(line, other, strict=False)) if pair[0] != pair[1]), len(other))
    start = max(0, same - _LONGEST_LINE // 4)
    return line[start : start + _LONGEST_LINE]


def _offset(one: bytes, two: bytes) -> str:
    shorter = min(len(one), len(two))
    place = next((at for at in range(0, shorter, 4096) if one[at : at + 4096] != two[at : at + 4096]), shorter)
    while place < shorter and one[place] == two[place]:
        place += 1
    sizes = f"{len(one)} bytes" if len(one) == len(two) else f"{len(one)} and {len(two)} bytes"
    mine, other = (text_at(raw, place) for raw in (one, two))
    said = f" ({mine!r} and {other!r})" if mine and other and mine != other else ""
    return f"{sizes}, first at {place:#x}{said}"


def text_at(raw: bytes, place: int) -> str:
    """The printable text of at most 80 characters around a byte; empty where there is none worth showing."""
    start = place
    while start > max(0, place - 40) and 32 <= raw[start - 1] < 127:
        start -= 1
    end = place
    while end < min(len(raw), place + 40) and 32 <= raw[end] < 127:
        end += 1
    text = raw[start:end].decode("ascii")
    return text if len(text) >= 4 else ""


def content(folder: Path) -> str:
    """sha256 (hex) over the names and contents of all files in a folder."""
    return digest.of_files((path for path in folder.rglob("*") if path.is_file()), root=folder)
