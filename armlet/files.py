"""Writing files that are whole or not there."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from armlet.errors import host_error


def write_whole(target: Path, data: bytes) -> None:
    """Puts ``data`` at ``target``: a reader, or a power cut, sees the old content or the new, never a part of it.

    Raises:
        ArmletError: (HOST) the disk is full or not writable.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")
        part = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            part.chmod(0o644)
            part.replace(target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise host_error(error, target) from error
