"""Finished outputs, addressed by the id of the step that made them."""

from __future__ import annotations

import glob
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from armlet.errors import host_error, is_host_error
from armlet.events import Sink
from armlet.files import alone, copy_tree, write_whole

STAGING = ".staging-"
"""How the names of folders begin that become outputs, or help to make one."""
_LONGEST_STEP_SECONDS = 24 * 3600


class Store:
    """Folders named by step id. A folder is there whole, or not at all.

    Beside each is its seal: an output that was damaged since counts as not there, and is made again.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def find(self, step_id: str) -> Path | None:
        """The finished output; None where there is none, or where it was damaged since."""
        folder = self._root / step_id
        try:
            return folder if self._seal(step_id).read_text() == _state(folder) else None
        except (OSError, ValueError):
            return None

    def __getitem__(self, step_id: str) -> Path:
        """The finished output.

        Raises:
            KeyError: there is none.
        """
        if (found := self.find(step_id)) is None:
            raise KeyError(step_id)
        return found

    @contextmanager
    def create(self, step_id: str) -> Iterator[Path]:
        """Yields an empty folder that becomes the step's output when the block ends without an exception.

        One caller at a time for one step (``lock``): what a killed one left of it is removed.

        Raises:
            ArmletError: the disk is full or not writable. Any other exception of the block goes on as it is.
        """
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            mark = f"{STAGING}{step_id[:16]}-"
            for left in self._root.glob(f"{mark}*"):
                remove_tree(left)
            staging = Path(tempfile.mkdtemp(prefix=mark, dir=self._root))
            staging.chmod(0o755)
        except OSError as error:
            raise host_error(error, self._root) from error
        try:
            yield staging
            os.sync()
            write_whole(self._seal(step_id), _state(staging).encode())
            _remove(self._root / step_id)
            staging.rename(self._root / step_id)
        except BaseException as error:
            remove_tree(staging)
            if isinstance(error, OSError) and is_host_error(error):
                raise host_error(error, self._root) from error
            raise

    @contextmanager
    def lock(self, step_id: str, emit: Sink) -> Iterator[None]:
        """Holds the step for this process; a second build of the same step waits here and then finds its output."""
        waiting = f"another build is making {step_id[:12]}"
        with ExitStack() as held:
            try:
                self._root.mkdir(parents=True, exist_ok=True)
                held.enter_context(alone(self._root / f".{step_id}.lock", emit, waiting=waiting))
            except OSError as error:
                raise host_error(error, self._root) from error
            yield

    def _seal(self, step_id: str) -> Path:
        return self._root / f".{step_id}.seal"

    def sweep(self) -> None:
        """Removes what a killed process left half-done (anything staged for longer than any step takes)."""
        remove_older(self._root.glob(f"{STAGING}*"), _LONGEST_STEP_SECONDS)


def _state(folder: Path) -> str:
    """What differs once a file is removed, added, cut short or written to, without reading any of them.

    Times are whole seconds: more do not survive every copy of a cache.
    """
    files = size = times = 0
    waiting = [str(folder)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                    continue
                found = entry.stat(follow_symlinks=False)
                files, size, times = files + 1, size + found.st_size, times + int(found.st_mtime)
    return f"{files} files, {size} bytes, times {times}\n"


def _remove(path: Path) -> None:
    """Removes a folder, or what is in the place of one."""
    if path.is_dir() and not path.is_symlink():
        remove_tree(path)
    else:
        path.unlink(missing_ok=True)


def remove_older(folders: Iterable[Path], seconds: float) -> None:
    """Removes those folders that were last changed longer ago; one that another process removes meanwhile is gone."""
    for folder in folders:
        with suppress(FileNotFoundError):
            if time.time() - folder.stat().st_mtime > seconds:
                remove_tree(folder)


def remove_tree(folder: Path) -> None:
    """Removes a folder, read-only files and all; silent where it is gone already."""
    if folder.exists():
        shutil.rmtree(folder, ignore_errors=True)


def replace_tree(source: Path, target: Path) -> None:
    """Puts a copy of ``source`` at ``target``: a reader sees the old folder, for a moment none, or the new one.

    Raises:
        ArmletError: the disk is full or not writable.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # No name of a SKU has this mark, so the pattern never meets another's folders.
        mark = f".{target.name}~"
        for left in target.parent.glob(f"{glob.escape(mark)}*"):
            remove_tree(left)
        staging = Path(tempfile.mkdtemp(prefix=mark, dir=target.parent))
        staging.chmod(0o755)
        try:
            copy_tree(source, staging)
            retired = Path(tempfile.mkdtemp(prefix=mark, dir=target.parent))
            if target.exists():
                target.rename(retired / target.name)
            staging.rename(target)
            remove_tree(retired)
        except BaseException:
            remove_tree(staging)
            raise
    except OSError as error:
        raise host_error(error, target) from error


def holds_copy(folder: Path, source: Path) -> bool:
    """Whether every file of ``source`` is in ``folder`` as ``replace_tree`` left it, told without reading any."""

    def told(path: Path) -> tuple[int, int, int]:
        found = path.lstat()
        return stat.S_IFMT(found.st_mode), found.st_size, 0 if path.is_symlink() else int(found.st_mtime)

    try:
        return all(
            told(path) == told(folder / path.relative_to(source)) for path in source.rglob("*") if not path.is_dir()
        )
    except OSError:
        return False
