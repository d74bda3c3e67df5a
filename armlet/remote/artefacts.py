"""Finished steps on a server: ``steps/<id>.json`` names the object, ``objects/<sha256>`` is what it says it is.

What comes back is taken only when its size and sha256 are those of the record, the record is of the id that was asked
for, and the archive says so too. Who may write there is trusted as the machine that builds: nothing is signed.
"""

from __future__ import annotations

import io
import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from armlet import digest
from armlet.events import Note, Sink
from armlet.remote.objects import Content, Objects, Unavailable, Wrong, content_of
from armlet.remote.packing import pack, unpacked
from armlet.remote.settings import Settings
from armlet.store import STAGING, Store

_SCHEMA = 1
_LARGEST_RECORD = 64 << 10
_LARGEST = 8 << 30
"""Bytes: no step leaves as much."""
_SHA256 = re.compile(r"[0-9a-f]{64}")

T = TypeVar("T")


class Artefacts:
    """The store that machines share. What goes wrong with it is told once and costs nothing but time."""

    def __init__(self, objects: Objects, *, write: bool, emit: Sink) -> None:
        self._objects = objects
        self._write = write
        self._emit = emit
        self._down = False
        self._refused: set[str] = set()
        """What is there under these ids is to be replaced."""

    @classmethod
    def here(cls, settings: Settings, emit: Sink) -> Artefacts | None:
        """None where no store is named."""
        return None if settings.store is None else cls(Objects(settings.store), write=settings.write, emit=emit)

    def has(self, step_id: str) -> bool:
        """Whether a step's output is said to be there; no where nobody answers."""
        return self._asked(lambda: self._objects.size(_record_name(step_id)) is not None, otherwise=False)

    def bring(self, step: str, step_id: str, store: Store) -> bool:
        """Puts a step's output into the local store; false where it has to be made here.

        Raises:
            ArmletError: (HOST) the disk is full or not writable.
        """
        return self._asked(lambda: self._brought(step, step_id, store), otherwise=False, step=step, step_id=step_id)

    def offer(self, step: str, step_id: str, folder: Path) -> None:
        """Puts a finished output there, where this machine may and nobody has yet."""
        if self._write:
            self._asked(lambda: self._offered(step, step_id, folder), otherwise=None, step=step)

    def _brought(self, step: str, step_id: str, store: Store) -> bool:
        told = io.BytesIO()
        if self._objects.read(_record_name(step_id), told, most=_LARGEST_RECORD) is None:
            return False
        wanted = _parsed(told.getvalue(), step_id)
        with store.lock(step_id, self._emit):
            if store.find(step_id) is not None:
                return True
            with store.create(step_id) as out, tempfile.TemporaryDirectory(dir=out.parent, prefix=STAGING) as place:
                archive = Path(place) / "archive"
                with archive.open("w+b") as stream:
                    found = self._objects.read(_object_name(wanted), stream, most=wanted.size)
                if found is None:
                    raise Wrong("it names an object that it does not have")
                if found != wanted:
                    raise Wrong(f"sha256 is {found.sha256} ({found.size} bytes), expected {wanted.sha256}")
                # In the place of the empty one.
                unpacked(archive, step_id, Path(place) / "tree").rename(out)
        self._emit(Note(text=f"{step}: from {self._objects.address}"))
        return True

    def _offered(self, step: str, step_id: str, folder: Path) -> None:
        refused = step_id in self._refused
        if not refused and self._objects.size(_record_name(step_id)) is not None:
            return
        self._emit(Note(text=f"{step}: sending it to {self._objects.address}"))
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=STAGING) as place:
            archive = Path(place) / "archive"
            pack(folder, step_id, archive)
            content = content_of(archive)
            with archive.open("rb") as stream:
                if refused or self._objects.size(_object_name(content)) != content.size:
                    self._objects.write(_object_name(content), stream, content.size)
        named = {"sha256": content.sha256, "size": content.size}
        record = digest.canonical_json({"schema": _SCHEMA, "id": step_id, "step": step, "object": named})
        # Last: whoever sees the record finds the object. Of two that send the same id, either's is good.
        self._objects.write(_record_name(step_id), io.BytesIO(record), len(record))

    def _asked(self, ask: Callable[[], T], *, otherwise: T, step: str = "", step_id: str = "") -> T:
        if self._down:
            return otherwise
        try:
            return ask()
        except Unavailable as failed:
            self._down = True
            self._warn(f"the store {self._objects.address} cannot be used: {failed}; going on without it")
        except OSError as error:
            # No room to pack it: the output itself is made.
            self._down = True
            self._warn(f"nothing is sent to {self._objects.address}: {error.strerror or error}")
        except Wrong as lie:
            self._refused.add(step_id)
            self._warn(f"{step}: refused what {self._objects.address} gave: {lie}; making it here")
        return otherwise

    def _warn(self, text: str) -> None:
        self._emit(Note(text=f"warning: {text}"))


def _record_name(step_id: str) -> str:
    return f"steps/{step_id}.json"


def _object_name(content: Content) -> str:
    return f"objects/{content.sha256}"


def _parsed(data: bytes, step_id: str) -> Content:
    try:
        record = json.loads(data)
        if record["schema"] != _SCHEMA:
            raise Wrong(f"its record is of schema {record['schema']!r}, expected {_SCHEMA}")
        if record["id"] != step_id:
            raise Wrong(f"its record is of another id, {str(record['id'])[:64]}")
        sha256, size = record["object"]["sha256"], record["object"]["size"]
        if _SHA256.fullmatch(sha256) and type(size) is int and 0 < size <= _LARGEST:
            return Content(sha256=sha256, size=size)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Wrong("its record is damaged") from error
    raise Wrong("its record is damaged")
