"""The store's folder: whether it is one, whose it is, and whether it can be written."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from armlet_runtime.store.admission import PAYLOADS, STAGING, TRASH
from armlet_runtime.store.copies import COPIES, Copies
from armlet_runtime.store.disk import NEW, Disk, remove_tree
from armlet_runtime.store.errors import StoreError
from armlet_runtime.store.filesystem import PROBE, demand_renames, demand_safe, is_readonly
from armlet_runtime.store.lock import Lock
from armlet_runtime.store.times import mend

INCOMING = "incoming"
FOLDERS = (PAYLOADS, STAGING, INCOMING, TRASH)
_FOR_GOOD = (errno.EACCES, errno.EPERM, errno.EROFS)
"""What another try does not mend."""
_OURS = "say where payloads are kept: [updates] store; the service's user has to own that folder"


class Place:
    """``readonly`` is why nothing can be changed, or empty; ``notes`` is what could not be done yet."""

    def __init__(self, disk: Disk, root: Path) -> None:
        """Raises:
        StoreError: ("store") there can be no store.
        """
        self._disk = disk
        self._root = root
        self._lock = Lock(disk, root / "lock")
        self._remedy = _OURS
        self.notes: tuple[str, ...] = ()
        try:
            mend(disk, root)
            if not root.exists():
                disk.mkdir(root)
            os.scandir(root).close()
            self.readonly = f"{root} is on a file system that is mounted read-only" if is_readonly(root) else ""
            if not self.readonly:
                demand_safe(root)
                self._take()
        except OSError as error:
            raise StoreError("store", _told(error, root), _OURS) from error

    def prepare(self, copies: Copies) -> None:
        """Raises:
        StoreError: ("store") it cannot replace files.
        """
        self._look_at(copies)
        if not self.readonly:
            try:
                self.demand(copies)
            except OSError as error:
                self._cannot(error)

    def demand(self, copies: Copies) -> None:
        """Makes what is lacking.

        Raises:
            StoreError: ("store") nothing can be changed here.
            OSError: not now.
        """
        if not self.readonly and not self._lock.held:
            self._lock.take()
            # Somebody else may have had it until now.
            copies.read()
            self._look_at(copies)
        if self.readonly:
            raise StoreError("store", f"the store cannot be changed: {self.readonly}", self._remedy)
        lacking = [self._root / name for name in FOLDERS if not (self._root / name).is_dir()]
        if lacking and copies.fresh:
            demand_renames(self._disk, self._root)
        if lacking:
            # Also where an earlier run made the store's own folder. One who may not look there did not make it.
            with suppress(PermissionError):
                self._disk.sync_folder(self._root.parent)
            for folder in lacking:
                self._disk.mkdir(folder)
            self._disk.sync_folder(self._root)

    def sweep(self) -> None:
        """Removes what a write that was cut short left. Raises OSError."""
        for name in (*(copy + NEW for copy in COPIES), PROBE, PROBE + NEW):
            remove_tree(self._disk, self._root / name)

    def close(self) -> None:
        self.readonly = self.readonly or "it is closed"
        self._lock.release()

    def _look_at(self, copies: Copies) -> None:
        if copies.newer:
            self.readonly = f"{self._root} was written by a newer version of Armlet"
            self._remedy = "go back to that version, or empty the folder: the payloads are downloaded again"

    def _take(self) -> None:
        try:
            self._lock.take()
        except BlockingIOError:
            self.readonly = f"another process uses {self._root}"
            self._remedy = "give each service a folder of its own: [updates] store"
        except OSError as error:
            self._cannot(error)

    def _cannot(self, error: OSError) -> None:
        told = _told(error, self._root)
        if error.errno in _FOR_GOOD:
            self.readonly = told
        else:
            self.notes = (*self.notes, told)


def _told(error: OSError, root: Path) -> str:
    return f"{error.filename or root}: {error.strerror}"
