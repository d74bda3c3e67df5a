"""For which machine a library was built: the loader says no more than "No such file" of another machine's."""

from __future__ import annotations

from pathlib import Path
from typing import Mapping

_HEAD_BYTES = 20
_MACHINES: Mapping[tuple[int, int], str] = {
    (1, 3): "i386",
    (1, 40): "32-bit ARM",
    (2, 62): "x86-64",
    (2, 183): "64-bit ARM",
    (2, 243): "64-bit RISC-V",
}
"""(class, e_machine) of an ELF header -> name."""


def foreign(library: str, own: str = "/proc/self/exe") -> str:
    """What is wrong with a library of another machine than the program ``own`` is for; empty: nothing, or unknown."""
    theirs, ours = _machine(library), _machine(own)
    if not theirs or not ours or theirs == ours:
        return ""
    return f"{library} is for {_name(theirs)}, and this Python is for {_name(ours)}"


def _machine(path: str) -> tuple[int, int] | None:
    try:
        with Path(path).open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return None
    if len(head) < _HEAD_BYTES or head[:4] != b"\x7fELF":
        return None
    return head[4], int.from_bytes(head[18:20], "big" if head[5] == 2 else "little")


def _name(machine: tuple[int, int]) -> str:
    return _MACHINES.get(machine, f"ELF machine {machine[1]}, class {machine[0]}")
