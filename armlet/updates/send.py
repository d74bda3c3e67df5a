"""Answers devices that ask for blocks of payloads. Devices may be broken: what they ask is not trusted."""

from __future__ import annotations

import os
import queue
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from armlet_runtime.payload_manifest import strict_json
from armlet_runtime.update.desired import LARGEST_BLOCK, SMALLEST_BLOCK

from armlet.errors import ArmletError, Kind, printable
from armlet.events import Note, Sink
from armlet.updates.broker import Connection, Message
from armlet.updates.routes import Routes
from armlet.updates.wish import Archive

_LONGEST_QUESTION = 4096
"""Bytes."""
_MOST_BLOCKS = 64
"""Of one question; a device asks for four."""
_MOST_POSTED = 64
"""Blocks that the broker has not acknowledged: they are in memory."""
_REFUSED = 0x80
_MOST_TOLD = 100
"""Devices, whoever invents them."""
_TENTHS = 10


@dataclass(frozen=True, slots=True)
class Question:
    """What a device asks for. ``model`` is what it calls it, for the topic of the answer."""

    device: str
    model: str
    archive: str
    size: int
    """Bytes of a block."""
    blocks: tuple[int, ...]


@dataclass
class Sender:
    """``devices`` empty: whoever asks."""

    connection: Connection
    routes: Routes
    archives: Sequence[Archive]
    emit: Sink
    devices: Sequence[str] = ()
    _posted: dict[int, tuple[str, str, int]] = field(default_factory=dict)
    """Number of the message -> (device, archive, block)."""
    _told: dict[tuple[str, str], int] = field(default_factory=dict)
    """(device, archive) -> tenths that were told."""
    _foreign: set[str] = field(default_factory=set)
    """Devices that ask for what is not here, which was told."""

    def run(self, ended: Callable[[], bool]) -> None:
        """Until ``ended`` says so.

        Raises:
            ArmletError: (INPUT) the broker does not let us listen, or send; (HOST) a file cannot be read any more.
        """
        self.connection.subscribe(self.routes.filters("wanted", self.devices))
        known = {one.sha256: one for one in self.archives}
        names = ", ".join(one.path.name for one in self.archives)
        self.emit(Note(text=f"waiting for devices that ask for {names}; Ctrl-C ends it"))
        while not ended():
            self._acknowledged()
            try:
                message = self.connection.messages.get(timeout=0.2)
            except queue.Empty:
                continue
            asked = question(self.routes, message)
            if asked is None or (self.devices and asked.device not in self.devices):
                continue
            if asked.archive in known:
                self._answer(known[asked.archive], asked, ended)
            elif asked.device not in self._foreign and len(self._foreign) < _MOST_TOLD:
                self._foreign.add(asked.device)
                told = f"{asked.device} asks for another archive, {asked.archive[:16]}…, of {asked.model[:64]}"
                self.emit(Note(text=f"{printable(told)}: unless another sender has it, name its file with --also"))

    def _answer(self, archive: Archive, asked: Question, ended: Callable[[], bool]) -> None:
        count = -(-archive.size // asked.size)
        for number in asked.blocks:
            mine = (asked.device, asked.archive, number)
            if number >= count or mine in self._posted.values():
                continue
            while len(self._posted) >= _MOST_POSTED and not ended():
                self.connection.wait(0.2)
                self._acknowledged()
            data = _block(archive, number, asked.size)
            topic = self.routes.of("block", asked.device, asked.model, asked.archive, number)
            self._posted[self.connection.post(topic, data)] = mine
            self._tell(asked, archive, number, count)

    def _acknowledged(self) -> None:
        for number, (device, archive, block) in list(self._posted.items()):
            code = self.connection.answer(number)
            if code is None:
                continue
            del self._posted[number]
            if code >= _REFUSED:
                topic = self.routes.of("block", device, "m", archive, block)
                hint = "let this user write there, in the broker's ACL; and blocks of that size, in its limits"
                what = f"the broker does not take a block for {device}, on a topic such as {topic}"
                raise ArmletError(what, hint=hint, kind=Kind.INPUT)

    def _tell(self, asked: Question, archive: Archive, number: int, count: int) -> None:
        """When a device begins, and at each tenth: blocks are asked for more or less in order."""
        tenth = _TENTHS * (number + 1) // count
        mine = (asked.device, asked.archive)
        if tenth > self._told.get(mine, -1) or (number == 0 and tenth < self._told.get(mine, -1)):
            self._told[mine] = tenth
            name = archive.path.name
            self.emit(Note(text=f"{asked.device}: {name}: block {number + 1} of {count} ({100 // _TENTHS * tenth} %)"))


def question(routes: Routes, message: Message) -> Question | None:
    """None: it is none."""
    found = routes.read("wanted", message.topic)
    # A question is never retained: who kept it asks for a device that may have all of it.
    if found is None or message.retained or len(message.payload) > _LONGEST_QUESTION:
        return None
    try:
        fields = strict_json(message.payload)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    model, archive, size, blocks = (fields.get(name) for name in ("model", "archive", "size", "blocks"))
    model = found.get("model", model)
    if not (isinstance(model, str) and isinstance(archive, str) and _is_integer(size, SMALLEST_BLOCK, LARGEST_BLOCK)):
        return None
    if not isinstance(blocks, list) or not all(_is_integer(number, 0, 1 << 40) for number in blocks):
        return None
    return Question(found["device"], model, archive, size, tuple(blocks[:_MOST_BLOCKS]))


def _is_integer(value: Any, least: int, most: int) -> TypeGuard[int]:
    # A bool is an int in Python.
    return type(value) is int and least <= value <= most


def _block(archive: Archive, number: int, size: int) -> bytes:
    """Raises:
    ArmletError: (HOST) the file is gone, or has become another one.
    """
    try:
        with archive.path.open("rb") as stream:
            if os.fstat(stream.fileno()).st_size == archive.size:
                stream.seek(number * size)
                return stream.read(size)
        told = "it was changed while it was being sent"
    except OSError as error:
        told = f"it cannot be read any more: {error.strerror}"
    raise ArmletError(told, hint="keep it in its place, and start again", kind=Kind.HOST, where=str(archive.path))
