"""Applying patches to an unpacked tree."""

from __future__ import annotations

import re
from pathlib import Path

from armlet.errors import ArmletError, Kind
from armlet.process import Command, Runner

# --ignore-whitespace and --binary are how ONNX Runtime applies its own; the rest keeps patch from asking, guessing
# that a patch is to be undone, and leaving files behind.
_OPTIONS = ("-p1", "--batch", "--forward", "--binary", "--ignore-whitespace", "--no-backup-if-mismatch")

_FILE = re.compile(r"patching file '?(.+?)'?$|\|(?:---|\+\+\+) (?:[^/\s]+/)?(\S+)")
"""How patch names the file it is at, and how it quotes the header of a patch whose file it cannot find."""


def apply_patch(tree: Path, patch: Path, runner: Runner, *, name: str) -> None:
    """Applies one patch; ``name`` is how messages call it.

    Raises:
        ArmletError: it is missing or does not apply; ``tree`` is then half patched and of no use.
    """
    if not patch.is_file():
        raise ArmletError(
            "there is no such patch",
            hint="mend patches: of its lock entry, or add the file",
            kind=Kind.INPUT,
            where=name,
        )
    argv = ("patch", *_OPTIONS, "--reject-file=-", f"--directory={tree}", f"--input={patch.resolve()}")
    done = runner.run(Command(argv=argv))
    if done.code != 0:
        failed = _failed_files(done.tail)
        raise ArmletError(
            f"does not apply to {tree.name}: {', '.join(failed) or done.output.strip()}",
            hint="the source has another version than the one the patch was made for: make it anew against that",
            kind=Kind.INPUT,
            where=name,
        )


def _failed_files(tail: tuple[str, ...]) -> tuple[str, ...]:
    failed: dict[str, None] = {}
    current = ""
    for line in tail:
        if match := _FILE.match(line):
            current = match[1] or match[2]
        elif current and re.search(r"FAILED|[Ss]kipping patch|ignored|No file to patch", line):
            failed[current] = None
    return tuple(failed)
