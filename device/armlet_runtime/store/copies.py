"""The state on disk: two copies, of which one is whole at any time."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace as with_fields
from pathlib import Path

from armlet_runtime.store.disk import Disk, replace
from armlet_runtime.store.state import State
from armlet_runtime.store.state_file import LARGEST, encoded, settled

COPIES = ("state.a", "state.b")


class Copies:
    """``state`` is what counts; it changes once all of it has been written."""

    def __init__(self, disk: Disk, root: Path) -> None:
        """Reads them; a copy that cannot be read is told in ``notes``, and is none."""
        self._disk = disk
        self._root = root
        self.read()

    def read(self) -> None:
        """Once more: it may be that another process wrote meanwhile."""
        unreadable: list[str] = []
        found = settled([(name, self._read(name, unreadable)) for name in COPIES])
        self.state = found.state
        self.newer = found.newer
        """Whether a newer version wrote one: then nothing may be written."""
        self.notes = (*found.notes, *unreadable)
        self._sequence = found.state.sequence
        self._agree = found.agree

    @property
    def fresh(self) -> bool:
        """Whether there is no copy at all."""
        return not any((self._root / name).exists() for name in COPIES)

    def write(self, state: State) -> None:
        """Raises OSError: ``state`` is as it was, and the next start may find either."""
        # Higher than anything that a write which failed may have left.
        self._sequence += 1
        self._agree = False
        state = with_fields(state, sequence=self._sequence)
        data = encoded(state)
        for name in COPIES:
            replace(self._disk, self._root / name, data)
        self.state = state
        self._agree = True

    def settle(self) -> None:
        """After this, every start finds ``state`` and no other: what only another one names may go. Raises OSError."""
        if not self._agree:
            self.write(self.state)

    def _read(self, name: str, unreadable: list[str]) -> bytes | None:
        with suppress(FileNotFoundError):
            try:
                with (self._root / name).open("rb") as stream:
                    return stream.read(LARGEST)
            except FileNotFoundError:
                raise
            except OSError as error:
                unreadable.append(f"{name} cannot be read: {error.strerror}")
        return None
