"""Fetching one file from fake mirrors, and looking at what is left behind."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from armlet.events import Event
from armlet.fetch import Patience, Places, Wanted, fetch
from armlet.process import Command, Done
from tests.fakes.mirror import FakeMirror

DATA = bytes(range(256)) * 2000
IMPATIENT = Patience(connect=2.0, silence=0.3, least=1000, attempts=3, pause=0.01, longest_pause=0.05)


class FakeNoRunner:
    def run(self, command: Command, emit: Any = None) -> Done:
        raise AssertionError(f"nothing is to be run here: {command}")


def wanted_from(*mirrors: FakeMirror, data: bytes = DATA, size: int | None = len(DATA)) -> Wanted:
    urls = tuple(f"{mirror.url}/a.tar" for mirror in mirrors)
    return Wanted(filename="a.tar", sha256=hashlib.sha256(data).hexdigest(), size=size, urls=urls)


def get(wanted: Wanted, folder: Path, events: list[Event] | None = None, places: Places | None = None) -> Path:
    (path,) = fetch(
        [wanted],
        folder,
        (events if events is not None else []).append,
        places=places or Places(),
        runner=FakeNoRunner(),
        patience=IMPATIENT,
    )
    return path


def left(folder: Path) -> list[str]:
    """Names of the files in the cache, apart from locks."""
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and path.name != ".lock")


def part_of(wanted: Wanted, folder: Path) -> Path:
    part = folder / wanted.sha256[:2] / wanted.sha256 / f"{wanted.filename}.part"
    part.parent.mkdir(parents=True, exist_ok=True)
    return part
