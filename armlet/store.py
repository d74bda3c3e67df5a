"""Finished outputs, addressed by the id of the step that made them."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from armlet.errors import host_error, is_host_error
from armlet.events import Sink
from armlet.files import alone


class Store:
    """Folders named by step id. A folder is there whole, or not at all."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def find(self, step_id: str) -> Path | None:
        """The finished output, or None."""
        folder = self._root / step_id
        return folder if folder.is_dir() else None

    @contextmanager
    def create(self, step_id: str) -> Iterator[Path]:
        """Yields an empty folder that becomes the step's output when the block ends without an exception.

        Raises:
            ArmletError: the disk is full or not writable. Any other exception of the block goes on as it is.
        """
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            staging = Path(tempfile.mkdtemp(prefix=".staging-", dir=self._root))
            staging.chmod(0o755)
        except OSError as error:
            raise host_error(error, self._root) from error
        try:
            yield staging
            os.sync()
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

    def sweep(self) -> None:
        """Removes what a killed process left half-done (anything staged for longer than any step takes)."""
        if not self._root.is_dir():
            return
        for staging in self._root.glob(".staging-*"):
            if _age_hours(staging) > 24:
                remove_tree(staging)


def _age_hours(path: Path) -> float:
    try:
        return (time.time() - path.stat().st_mtime) / 3600
    except FileNotFoundError:
        return 0.0


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
        staging = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
        staging.chmod(0o755)
        try:
            shutil.copytree(source, staging, symlinks=True, dirs_exist_ok=True)
            retired = Path(tempfile.mkdtemp(prefix=f".{target.name}-old-", dir=target.parent))
            if target.exists():
                target.rename(retired / target.name)
            staging.rename(target)
            remove_tree(retired)
        except BaseException:
            remove_tree(staging)
            raise
    except OSError as error:
        raise host_error(error, target) from error
