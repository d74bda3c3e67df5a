"""Build contexts: a tar whose bytes depend on names and contents alone."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO


def write_context(context: Mapping[str, bytes | Path], archive: BinaryIO) -> None:
    """Writes the files in the order of their names, owned by root, dated to the epoch.

    Of a file's mode only "may be executed" is kept.
    """
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in sorted(context):
            content = context[name]
            entry = tarfile.TarInfo(name)
            entry.mode = 0o644
            if isinstance(content, bytes):
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
                continue
            with content.open("rb") as stream:
                status = os.fstat(stream.fileno())
                entry.size = status.st_size
                entry.mode = 0o755 if status.st_mode & 0o100 else 0o644
                tar.addfile(entry, stream)
