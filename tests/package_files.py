"""What is in a deb or an ipk."""

from __future__ import annotations

import io
import tarfile


def members(data: bytes) -> dict[str, bytes]:
    """Of a deb (an ar archive) or an ipk (a tar of the same three)."""
    if data.startswith(b"!<arch>\n"):
        found, rest = {}, data[8:]
        while rest:
            name, size = rest[:16].decode().rstrip(" /"), int(rest[48:58])
            found[name], rest = rest[60 : 60 + size], rest[60 + size + size % 2 :]
        return found
    return {name.removeprefix("./"): content for name, (content, _) in files(data).items()}


def files(data: bytes) -> dict[str, tuple[bytes, tarfile.TarInfo]]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return {info.name: (file.read(), info) for info in archive if (file := archive.extractfile(info)) is not None}
