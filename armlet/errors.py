"""The one exception that users meet, and the exit codes it maps to."""

from __future__ import annotations

import errno
import re
from enum import IntEnum
from pathlib import Path
from typing import final


class Kind(IntEnum):
    """What went wrong, as the process's exit code (documented in ``docs/exit-codes.md``)."""

    INPUT = 2
    HOST = 3
    BUILD = 4
    GATE = 5
    TARGET = 6
    INTERRUPTED = 130


_LONGEST = 1000
"""Characters of a line, or of a cell: names come from models, and may be of any length."""
_KEPT_END = 200
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_SOURCE_LINE = re.compile(
    # Where ONNX Runtime's and onnx's builders had their sources; of the former, the function follows.
    r"/(?:onnxruntime_src|github/workspace)/\S+?:\d+"
    r"(?::|(?: [\w:<>~*&, ]+\((?:[^()]|\([^()]*\))*\)(?: const)?(?: \[with [^\]]*\])?(?= ))?) "
)


def printable(text: str) -> str:
    """One line that a terminal shows as it is: no control characters, and not endless."""
    line = _CONTROL.sub("?", text.replace("\n", "?").replace("\t", " "))
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - _KEPT_END]} … {line[-_KEPT_END:]}"


@final
class ArmletError(Exception):
    """A failure that is explained: what happened, where, and what mends it.

    Args:
        what: one sentence, without a trailing full stop.
        hint: the remedy: a command or a change the reader can make.
        kind: which exit code the process ends with.
        where: ``file:line``, a URL or a path; empty where there is no such place.
        log: the file that holds the whole story.
    """

    def __init__(self, what: str, *, hint: str, kind: Kind, where: str = "", log: Path | None = None) -> None:
        # Where others have their sources is nothing that helps.
        self.what = _SOURCE_LINE.sub("", what)
        super().__init__(self.what)
        self.hint = hint
        self.kind = kind
        self.where = where
        self.log = log

    def __str__(self) -> str:
        what = "\n".join(map(printable, self.what.split("\n")))
        head = f"{printable(self.where)}: {what}" if self.where else what
        lines = [head, f" hint: {_CONTROL.sub('?', self.hint)}"] if self.hint else [head]
        if self.log is not None:
            lines.append(f"  log: {self.log}")
        return "\n".join(lines)


_HOST_REMEDIES = {
    errno.ENOSPC: "free some space (the cache may be on a larger disk: ARMLET_CACHE)",
    errno.EDQUOT: "your disk quota is used up: free some space (the cache may be elsewhere: ARMLET_CACHE)",
    errno.EACCES: "make the folder writable for this user (the cache may be elsewhere: ARMLET_CACHE)",
    errno.EROFS: "the file system is read-only: use one that is not (the cache may be elsewhere: ARMLET_CACHE)",
}
_IN_THE_WAY = (errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ELOOP)


def is_host_error(error: OSError) -> bool:
    """Whether it is about this machine's disk and permissions, and no mistake of ours, such as a file not made."""
    return error.errno in _HOST_REMEDIES


def host_error(error: OSError, place: Path) -> ArmletError:
    """The clear form of an operating system error: what failed, where, and what mends it."""
    otherwise = "see docs/troubleshooting.md (the cache's place is ARMLET_CACHE)"
    if error.errno in _IN_THE_WAY:
        otherwise = "something of another kind is in its place: move that away (the cache's place is ARMLET_CACHE)"
    return ArmletError(
        f"cannot write: {error.strerror or error}",
        where=str(error.filename or place),
        hint=_HOST_REMEDIES.get(error.errno or 0, otherwise),
        kind=Kind.HOST,
    )
