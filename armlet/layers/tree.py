"""Writing a layer over an older one: what the user changed there is never lost.

``.armlet-layer.json`` at the layer's top has the hash of every file that was generated. A file whose content is none of
its hashes is the user's, and stays; what would have been written then lies beside it, as ``<file>.armlet-new``, once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal

from armlet import digest
from armlet.errors import ArmletError, Kind, host_error
from armlet.files import write_whole

MANIFEST = ".armlet-layer.json"
NEW = ".armlet-new"
Builder = Literal["yocto", "buildroot"]


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One file of a layer."""

    content: bytes | Path
    mode: int = 0o644

    @classmethod
    def text(cls, text: str, mode: int = 0o644) -> File:
        return cls(content=text.encode(), mode=mode)

    def read(self) -> bytes:
        return self.content if isinstance(self.content, bytes) else self.content.read_bytes()


@dataclass(slots=True, kw_only=True)
class Written:
    """What became of the files, by their paths in the layer, sorted."""

    written: list[str] = field(default_factory=list)
    """New, or other than before."""
    same: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    """The user's, so not touched."""
    offered: list[str] = field(default_factory=list)
    """Of those: what was generated lies beside them."""
    removed: list[str] = field(default_factory=list)
    """No longer generated, and nobody changed them."""


def write(out: Path, builder: Builder, files: Mapping[str, File]) -> Written:
    """Writes a layer; the same files give the same tree, and writing them again changes nothing.

    Args:
        files: path below ``out``, with slashes -> the file.

    Raises:
        ArmletError: (INPUT) ``out`` has the layer of another builder, or a list of hashes that cannot be read; (HOST)
            the disk is full or not writable.
    """
    known = _known(out, builder)
    told = Written()
    try:
        new = {path: file.read() for path, file in sorted(files.items())}
        hashes = {path: digest.of_bytes(data) for path, data in new.items()}
        # Where this is interrupted, both the old and the new content count as generated.
        _note(out, builder, {path: sorted({*known.get(path, ()), *_one(hashes, path)}) for path in {*known, *new}})
        for path, data in new.items():
            _put(out / path, path, data, files[path].mode, known.get(path, ()), told)
        for path in sorted(known.keys() - new.keys()):
            _take(out, path, known[path], told)
        _note(out, builder, {path: [sha256] for path, sha256 in hashes.items()})
    except OSError as error:
        raise host_error(error, out) from error
    return told


def _one(hashes: Mapping[str, str], path: str) -> list[str]:
    return [hashes[path]] if path in hashes else []


def _put(target: Path, path: str, data: bytes, mode: int, ours: tuple[str, ...], told: Written) -> None:
    beside = target.with_name(target.name + NEW)
    sha256 = digest.of_bytes(data)
    there = digest.of_file(target) if target.is_file() else None
    if there is None or there in ours or there == sha256:
        if there == sha256 and target.stat().st_mode & 0o777 == mode:
            told.same.append(path)
        else:
            write_whole(target, data)
            target.chmod(mode)
            told.written.append(path)
        beside.unlink(missing_ok=True)
        return
    told.kept.append(path)
    # Who has looked at it and removed it need not see the same again.
    if sha256 not in ours or beside.exists():
        write_whole(beside, data)
        told.offered.append(path)


def _take(out: Path, path: str, ours: tuple[str, ...], told: Written) -> None:
    target = out / path
    target.with_name(target.name + NEW).unlink(missing_ok=True)
    if not target.is_file():
        return
    if digest.of_file(target) not in ours:
        told.kept.append(path)
        return
    target.unlink()
    told.removed.append(path)
    for folder in target.parents:
        if folder == out or any(folder.iterdir()):
            break
        folder.rmdir()


def _note(out: Path, builder: Builder, hashes: Mapping[str, list[str]]) -> None:
    content = {"schema": 1, "builder": builder, "files": hashes}
    text = json.dumps(content, indent=1, sort_keys=True).encode() + b"\n"
    if not (out / MANIFEST).is_file() or (out / MANIFEST).read_bytes() != text:
        write_whole(out / MANIFEST, text)


def _known(out: Path, builder: Builder) -> dict[str, tuple[str, ...]]:
    place = out / MANIFEST
    if out.exists() and not out.is_dir():
        raise ArmletError("it is no folder", hint="name a folder: --out", kind=Kind.INPUT, where=str(out))
    if not place.exists():
        return {}
    try:
        found = json.loads(place.read_bytes())
        files = {str(path): tuple(map(str, hashes)) for path, hashes in found["files"].items()}
        if any(PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts for path in files):
            raise ValueError("a path leads out of the layer")
        other = found["builder"]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        hint = "take it from your version control again; without it, every file counts as changed by you"
        raise ArmletError(f"it cannot be read: {error}", hint=hint, kind=Kind.INPUT, where=str(place)) from error
    if other != builder:
        what, hint = f"a layer for {other} is there", "one folder for each: --out"
        raise ArmletError(what, hint=hint, kind=Kind.INPUT, where=str(out))
    return files
