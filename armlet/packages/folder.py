"""The folder that packages are kept in: nothing in it is replaced, and each file's build is known."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from armlet import digest
from armlet.errors import ArmletError, Kind, host_error
from armlet.events import Sink
from armlet.files import alone, whole_file, write_whole
from armlet.gates import SUMS

_BUILDS = ".builds.json"
"""Name of a file -> id of the build that it was packed with. Hidden: it is nobody's but ours."""
_SHOWN = 5


def deliver(files: Sequence[Path], out: Path, *, build_id: str, emit: Sink) -> None:
    """Puts copies of files into ``out``, and ``SHA256SUMS`` over all that is there; one command at a time.

    Raises:
        ArmletError: (INPUT) something else is there under one of the names: nothing is changed then; (HOST) the disk
            is full or not writable.
    """
    try:
        # The folder itself is locked: no other file is left of it.
        with alone(out, emit, waiting=f"another command packs into {out}"):
            _demand_free(files, out)
            _remove_halves((*(file.name for file in files), SUMS, _BUILDS), out)
            _copy(files, out, build_id)
    except OSError as error:
        raise host_error(error, out) from error


def packed(folder: Path, build_id: str, *, again: str) -> dict[str, Path]:
    """The packages of a folder, ``SHA256SUMS`` first, by name; nothing where there is no folder.

    Args:
        again: the command that packs.

    Raises:
        ArmletError: (GATE) one is not as it was packed, or is of another build.
    """
    if not folder.is_dir():
        return {}
    there = {path.name: path for path in sorted(folder.iterdir()) if not path.name.startswith(".")}
    if not there:
        return {}
    sums = _sums(folder)
    wrong = sorted(
        name
        for name in {*there, *sums} - {SUMS}
        if not _is_plain(folder / name) or sums.get(name) != digest.of_file(folder / name)
    )
    if wrong or SUMS not in there:
        hint = f"move away what is not from there, and pack again: {again}"
        raise _refused(f"not as it was packed: {_some(wrong or [SUMS])}", folder, hint)
    builds = _recorded(folder)
    if others := sorted(name for name in sums if builds.get(name) != build_id):
        hint = f"move them away, and pack again: {again}"
        raise _refused(f"not of the build that is in dist: {_some(others)}", folder, hint)
    return {SUMS: there[SUMS], **{name: there[name] for name in sorted(sums)}}


def _demand_free(files: Iterable[Path], out: Path) -> None:
    for file in files:
        there = out / file.name
        if os.path.lexists(there) and (not _is_plain(there) or digest.of_file(there) != digest.of_file(file)):
            raise ArmletError(
                f"{file.name} is there already, with other content",
                hint="a package manager takes equal versions for the same: raise --revision (the service has its own "
                "version, in device/armlet_runtime), give the --maintainer of that time, or remove the file where "
                "nobody has it yet",
                kind=Kind.INPUT,
                where=str(there),
            )


def _remove_halves(names: Iterable[str], out: Path) -> None:
    """What a command that was killed left of these files."""
    for name in names:
        for part in out.glob(f".{name}-*.part"):
            part.unlink()


def _copy(files: Sequence[Path], out: Path, build_id: str) -> None:
    new = [file for file in files if not (out / file.name).exists()]
    builds = {name: one for name, one in _recorded(out).items() if (out / name).exists()}
    try:
        # First: a file that is there is known.
        write_whole(out / _BUILDS, digest.canonical_json({**builds, **{file.name: build_id for file in files}}))
        for file in new:
            with whole_file(out / file.name) as stream, file.open("rb") as content:
                shutil.copyfileobj(content, stream)
        write_whole(out / SUMS, "".join(f"{digest.of_file(path)}  {path.name}\n" for path in _listed(out)).encode())
    except BaseException:
        for file in new:
            (out / file.name).unlink(missing_ok=True)
        if not any(_listed(out)):
            (out / _BUILDS).unlink(missing_ok=True)
        raise


def _listed(out: Path) -> Iterator[Path]:
    return (path for path in sorted(out.iterdir()) if _is_plain(path) and path.name != SUMS and path.name[0] != ".")


def _sums(folder: Path) -> dict[str, str]:
    """Name -> sha256; nothing where the list cannot be read."""
    try:
        lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
        found = {name: sha256 for sha256, name in (line.split("  ", 1) for line in lines)}
    except (OSError, ValueError):
        return {}
    return found if all(Path(name).name == name for name in found) else {}


def _recorded(folder: Path) -> dict[str, str]:
    """Nothing where the record cannot be read: of no file is it known then."""
    try:
        found = json.loads((folder / _BUILDS).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def _refused(what: str, folder: Path, hint: str) -> ArmletError:
    return ArmletError(what, where=str(folder), hint=hint, kind=Kind.GATE)
