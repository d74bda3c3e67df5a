"""One file from one place: resumed where possible, tried again where that helps, verified always."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

import requests

from armlet import digest
from armlet.errors import ArmletError, Kind
from armlet.events import Progress, Sink
from armlet.fetch.transport import PATIENT, Again, Patience, PlaceFailed, Reply, opened
from armlet.fetch.wanted import Wanted

_TELL_EVERY = 0.1
_STEADY = 1 << 20
"""An attempt that brought this many bytes was no failure of the place: the count of attempts starts again."""


def download(
    wanted: Wanted,
    url: str,
    part: Path,
    session: requests.Session,
    emit: Sink,
    patience: Patience = PATIENT,
) -> None:
    """Leaves the wanted bytes in ``part``, going on from what is there.

    After an interruption ``part`` holds what came so far; after wrong bytes it is gone.

    Raises:
        PlaceFailed: this place does not have the file, or did not manage to send it.
        ArmletError: the disk is full.
    """
    attempt = 0
    while True:
        before = _size(part)
        try:
            _receive(wanted, url, part, session, emit, patience)
            verify(wanted, part)
            return
        except _Wrong as wrong:
            part.unlink()
            if not before:
                raise PlaceFailed(wrong.reason) from wrong
            continue  # What was there before may be to blame: once more, from nothing.
        except PlaceFailed as failed:
            if failed.again is not Again.SOON:
                raise
            attempt = 1 if _size(part) - before >= _STEADY else attempt + 1
            if attempt >= patience.attempts:
                raise PlaceFailed(f"{failed.reason} ({attempt} attempts)") from failed
            pause = max(failed.pause, patience.pause * 2 ** (attempt - 1) * random.uniform(0.5, 1.5))
            time.sleep(min(pause, patience.longest_pause))


def verify(wanted: Wanted, path: Path) -> None:
    """Checks size and hash, where there is a hash to check against.

    Raises:
        PlaceFailed: they differ; the reason names both hashes.
    """
    if not wanted.sha256:
        return
    size, found = _size(path), digest.of_file(path)
    if found != wanted.sha256 or wanted.size not in (None, size):
        expected = wanted.sha256 if wanted.size is None else f"{wanted.sha256} ({wanted.size} bytes)"
        raise _Wrong(f"wrong content: sha256 is {found} ({size} bytes), expected {expected}")


class _Wrong(PlaceFailed):
    """The bytes are not the wanted ones."""


def _receive(wanted: Wanted, url: str, part: Path, session: requests.Session, emit: Sink, patience: Patience) -> None:
    have = _size(part)
    if wanted.size is not None and have >= wanted.size:
        return  # All there, or too much: either way the hash decides.
    with opened(url, have, session, patience) as reply:
        if wanted.size is not None and reply.total not in (None, wanted.size):
            raise PlaceFailed(
                f"wrong content: it offers {reply.total} bytes, expected {wanted.size} with sha256 {wanted.sha256}"
            )
        total = wanted.size or reply.total
        if total is not None and shutil.disk_usage(part.parent).free < total - reply.start:
            raise disk_full(part, total - reply.start)
        _write(wanted, part, reply, total, emit, patience)


def _write(wanted: Wanted, part: Path, reply: Reply, total: int | None, emit: Sink, patience: Patience) -> None:
    done = reply.start
    told, since, got = 0.0, time.monotonic(), 0
    with part.open("r+b" if reply.start else "wb") as stream:
        stream.seek(done)
        for block in reply.blocks:
            stream.write(block)
            done += len(block)
            got += len(block)
            now = time.monotonic()
            if now - told >= _TELL_EVERY or done == total:
                emit(Progress(label=wanted.filename, done=done, total=total or done, unit="bytes"))
                told = now
            if total is not None and done > total:
                raise _Wrong(f"wrong content: more than {total} bytes, expected sha256 {wanted.sha256}")
            if now - since >= patience.silence:
                if got < patience.least:
                    raise PlaceFailed(f"only {got} bytes in {now - since:.0f} s", again=Again.LATER)
                since, got = now, 0
    if total is not None and done < total:
        raise PlaceFailed(f"cut off at {done} of {total} bytes", again=Again.SOON)


def disk_full(path: Path, needed: int) -> ArmletError:
    return ArmletError(
        f"no room for {path.name.removesuffix('.part')}: {needed / 2**20:.0f} MiB more are needed",
        hint="free some space, or point ARMLET_CACHE at a larger disk",
        kind=Kind.HOST,
        where=str(path.parent),
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
