"""What GNU ld's map says of code that was compiled for a newer core than the build's baseline.

Such code is meant to run only after the program has asked the core. An inline function leads around the question: many
sources have a copy, the linker keeps whichever comes first, and where that is one for a newer core, it ends every
program on an older one with SIGILL, though perhaps only on a path that no test takes. (Constructors lead around it as
well; they all run when the library is loaded, and so the smoke finds them.)
"""

from __future__ import annotations

import re
from collections.abc import Set

# " .text._ZN3fooEv\n   0x000123   0x40 libx.a(y.cpp.o)"; a short name is on the same line.
_SECTION = re.compile(r"^ (\.[^\s]+)\s+0x[0-9a-f]+\s+0x([0-9a-f]+) (\S.*)$", re.MULTILINE)
_CODE = re.compile(r"^ \.text(?:\.[^\s]+)?\s+0x([0-9a-f]+)\s+0x([0-9a-f]+) (\S.*)$", re.MULTILINE)
_UNLOADED = (".debug", ".comment", ".note", ".ARM.attributes")
_BODY = "Linker script and memory map"
# A further dot marks a copy of the source's own (.isra, .constprop, .part), which nobody shares.
_FUNCTION = re.compile(r"\.text\.(?:(?:unlikely|hot|startup)\.)?_Z[^.]*")


def shared(text: str, newer: Set[str]) -> tuple[str, ...]:
    """Functions that sources for every core share, kept in the copy of one for a newer core: ``<section> of <object>``.

    Args:
        text: the map of a link with ``-ffunction-sections``.
        newer: file names of the objects that were compiled for a newer core, e.g. ``qgemm_kernel_ummla.cpp.o``.

    Raises:
        ValueError: the text is no map of GNU ld.
    """
    discarded, marker, linked = text.partition(_BODY)
    if not marker:
        raise ValueError("not a map of GNU ld")
    elsewhere = {section for section, _, owner in _SECTION.findall(discarded) if _file(owner) not in newer}
    return tuple(
        f"{section} of {_file(owner)}"
        for section, size, owner in _SECTION.findall(linked)
        if int(size, 16) and _file(owner) in newer and _FUNCTION.fullmatch(section) and section in elsewhere
    )


def code(text: str) -> list[tuple[int, int, str]]:
    """Start, size and object's file name of every piece of code in a library, by start.

    Args:
        text: the map of its link.

    Raises:
        ValueError: the text is no map of GNU ld.
    """
    _, marker, linked = text.partition(_BODY)
    if not marker:
        raise ValueError("not a map of GNU ld")
    found = ((int(start, 16), int(size, 16), _file(owner)) for start, size, owner in _CODE.findall(linked))
    return sorted(piece for piece in found if piece[1])


def taken(text: str) -> dict[str, int]:
    """Archive or object file -> bytes of code and data that the linker took from it, notes and debug data not counted.

    Args:
        text: the map of a link.

    Raises:
        ValueError: the text is no map of GNU ld.
    """
    _, marker, linked = text.partition(_BODY)
    if not marker:
        raise ValueError("not a map of GNU ld")
    found: dict[str, int] = {}
    for name, size, owner in _SECTION.findall(linked):
        if int(size, 16) and not name.startswith(_UNLOADED):
            place = owner.partition("(")[0]
            found[place] = found.get(place, 0) + int(size, 16)
    return found


def _file(owner: str) -> str:
    return owner.rpartition("(")[2].rstrip(")").rpartition("/")[2]
