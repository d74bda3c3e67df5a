"""Published files: whole for whoever reads them, never changed, and gone on with after an interruption.

``SHA256SUMS`` comes last. A reader goes by it: without it nothing is published yet, and with it all is there.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from armlet.errors import ArmletError, Kind
from armlet.events import Note, Progress, Sink
from armlet.remote.objects import Content, Objects, Unavailable, Wrong, content_of

SUMS = "SHA256SUMS"
_LARGEST_SUMS = 1 << 20
_SHOWN = 5
_AGAIN = (
    "see that the server, the address and the credentials are right, and run it again: it goes on where it stopped "
    "(a certificate of your own: SSL_CERT_FILE)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What there is now, and what had to be sent for it."""

    url: str
    files: tuple[str, ...]
    sent: tuple[str, ...]


def publish(files: Mapping[str, Path], folder: str, objects: Objects, emit: Sink) -> Published:
    """Puts files (name -> what it is to hold) below ``folder`` on the server, and ``SHA256SUMS`` over all of them.

    Raises:
        ArmletError: (INPUT) something else is published under one of the names: nothing was sent then; (HOST) the
            server cannot be used, or did not keep what it was sent, or a file is gone: run again, it goes on.
    """
    url = f"{objects.address}/{folder}"
    try:
        contents = {name: content_of(path) for name, path in sorted(files.items())}
        sums = "".join(f"{content.sha256}  {name}\n" for name, content in contents.items()).encode()
        if _is_published(objects, f"{folder}/{SUMS}", sums, url):
            emit(Note(text=f"published already: {url}"))
            return Published(url=url, files=tuple(contents), sent=())
        missing = [
            name for name, content in contents.items() if _is_missing(objects, f"{folder}/{name}", content, files[name])
        ]
        for number, name in enumerate(missing, 1):
            with files[name].open("rb") as stream:
                objects.write(f"{folder}/{name}", stream, contents[name].size)
            _demand_kept(objects, f"{folder}/{name}", contents[name])
            emit(Progress(label="publishing", done=number, total=len(missing), unit="files"))
        # Somebody else may have been faster.
        if not _is_published(objects, f"{folder}/{SUMS}", sums, url):
            objects.write(f"{folder}/{SUMS}", io.BytesIO(sums), len(sums))
        _is_published(objects, f"{folder}/{SUMS}", sums, url)
    except (Unavailable, Wrong) as failed:
        raise ArmletError(f"cannot publish: {failed}", where=url, hint=_AGAIN, kind=Kind.HOST) from failed
    except OSError as error:
        # Another command that builds or packs takes files away and puts others there.
        raise ArmletError(
            f"cannot read: {error.strerror or error}",
            where=str(error.filename or url),
            hint="let nothing else write there, and run it again: it goes on where it stopped",
            kind=Kind.HOST,
        ) from error
    return Published(url=url, files=tuple(contents), sent=tuple(missing))


def _is_published(objects: Objects, name: str, sums: bytes, url: str) -> bool:
    there = io.BytesIO()
    try:
        if objects.read(name, there, most=_LARGEST_SUMS) is None:
            return False
    except Wrong:
        there = io.BytesIO(b"something larger")
    if there.getvalue() != sums:
        raise _other(url, _differing(sums, there.getvalue()))
    return True


def _differing(sums: bytes, others: bytes) -> str:
    """The names that two lists of sums do not agree on; that of the list, where they agree on all."""
    lines = {*sums.decode().splitlines()} ^ {*others.decode(errors="replace").splitlines()}
    names = sorted({line.partition("  ")[2] for line in lines} - {""})
    return ", ".join(names[:_SHOWN]) + (" and others" if len(names) > _SHOWN else "") or SUMS


def _is_missing(objects: Objects, name: str, content: Content, path: Path) -> bool:
    """Whether a file is still to be sent.

    What an interruption cut short was never published, as ``SHA256SUMS`` is not there: it is sent again.
    """
    size = objects.size(name)
    if size is None:
        return True
    if size <= content.size:
        with path.open("rb") as ours:
            start = _Compared(ours)
            found = objects.read(name, start, most=content.size)
        if found is None:
            return True
        if start.same:
            return found != content
    raise _other(f"{objects.address}/{name.rpartition('/')[0]}", name)


def _demand_kept(objects: Objects, name: str, content: Content) -> None:
    found = objects.read(name, _Nowhere(), most=content.size)
    if found != content:
        raise Wrong(f"{name} does not hold what was sent")


def _other(url: str, name: str) -> ArmletError:
    return ArmletError(
        f"something else is published as {name} already, and published files are never changed",
        where=url,
        hint="publish to another place (--to), or remove what is there by hand if nobody can have it",
        kind=Kind.INPUT,
    )


class _Nowhere:
    """Takes what is read only to be hashed."""

    def seek(self, place: int) -> None: ...

    def truncate(self) -> None: ...

    def write(self, data: bytes) -> None: ...

    def flush(self) -> None: ...


class _Compared(_Nowhere):
    """Says whether what it takes is how ``ours`` begins."""

    def __init__(self, ours: BinaryIO) -> None:
        self._ours = ours
        self.same = True

    def seek(self, place: int) -> None:
        self._ours.seek(place)
        self.same = True

    def write(self, data: bytes) -> None:
        self.same = self.same and self._ours.read(len(data)) == data
