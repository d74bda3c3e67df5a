"""The archives that are on their way in, each a pair of files below one folder."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Collection

from armlet_runtime.store.disk import Disk, remove_tree
from armlet_runtime.store.incoming import MAP, PART, StoredIncoming, forget


class Arrivals:
    """By the archive's sha256. Not for several threads; a :class:`StoredIncoming` is."""

    def __init__(self, disk: Disk, folder: Path) -> None:
        self._disk = disk
        self._folder = folder
        self._open: dict[str, StoredIncoming] = {}

    def allocated(self, name: str) -> int:
        """Bytes that an archive takes of the disk already."""
        try:
            return (self._folder / (name + PART)).stat().st_blocks * 512
        except FileNotFoundError:
            return 0

    def take(self, name: str, size: int, block_size: int) -> StoredIncoming:
        """To put blocks into; the same one as long as nobody wants another block size. Raises OSError."""
        known = self._open.get(name)
        if known and not known.closed:
            if (known.size, known.block_size) == (size, block_size):
                return known
            known.sync()
        self._close(name)
        made = self._open[name] = StoredIncoming(self._disk, self._folder, name, size, block_size)
        return made

    def finished(self, name: str, size: int) -> Path | None:
        """The archive, if all of it is there; nothing can be put into it any more then. Raises OSError."""
        known = self._open.get(name) or StoredIncoming.found(self._disk, self._folder, name, size)
        if known is None or known.closed:
            return None
        self._open[name] = known
        known.sync()
        if known.missing():
            return None
        self._close(name)
        return known.path

    def forget(self, name: str) -> int:
        """Removes one; the bytes that were freed. Raises OSError."""
        self._close(name)
        return forget(self._disk, self._folder, name)

    def sweep(self, keep: Collection[str]) -> int:
        """Removes all others, and whatever else is there; the bytes that were freed. Raises OSError."""
        freed = 0
        for name in sorted({path.name for path in self._folder.iterdir()}):
            stem, dot, ending = name.rpartition(".")
            if dot + ending not in (MAP, PART):
                freed += remove_tree(self._disk, self._folder / name)
            elif stem not in keep:
                freed += self.forget(stem)
        return freed

    def close(self) -> None:
        """What came is kept as far as the disk lets it."""
        for name, known in [*self._open.items()]:
            # Closed ones have lost it already.
            with suppress(OSError):
                known.sync()
            self._close(name)

    def _close(self, name: str) -> None:
        known = self._open.pop(name, None)
        if known:
            known.close()
