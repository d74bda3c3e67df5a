"""INI files with line numbers, and every mistake in one go, which :mod:`configparser` cannot give.

What it takes is what configparser takes without continuation lines and interpolation, and means the same.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field
from typing import Iterable, NamedTuple

_SECTION = re.compile(r"\[([^\]]+)\]")
_COMMENT = ("#", ";")


class Entry(NamedTuple):
    """A key's value and where it stands."""

    value: str
    line: int


@dataclass
class Section:
    """``name`` as it stands between the brackets, and keys as they are written: capitals do not tell two apart."""

    name: str
    line: int
    entries: dict[str, Entry] = field(default_factory=dict)


class Problem(NamedTuple):
    """A mistake: ``line`` is 0 where it is in no particular one."""

    line: int
    what: str


def parse(text: str) -> tuple[list[Section], list[Problem]]:
    """The sections of a file, in order, and what is wrong with its form."""
    sections: dict[str, Section] = {}
    problems: list[Problem] = []
    current: Section | None = None
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if not line or line.startswith(_COMMENT):
            continue
        header = _SECTION.fullmatch(line)
        key, sign, value = line.partition("=")
        if raw[0].isspace() and not header:
            problems.append(Problem(number, "a line that begins with a space continues none: one line for each key"))
        elif header:
            name = ":".join(part.strip() for part in header[1].split(":", 1))
            if name in sections:
                problems.append(Problem(number, f"[{name}] is there twice, first in line {sections[name].line}"))
            current = sections.setdefault(name, Section(name, number))
        elif not sign or not key.strip():
            problems.append(Problem(number, f'"{shown(line)}" is neither "key = value" nor "[section]"'))
        elif current is None:
            problems.append(Problem(number, f'"{shown(key.strip())}" stands before the first [section]'))
        else:
            _add(current, key.strip(), Entry(value.strip(), number), problems)
    return list(sections.values()), problems


def near(word: str, known: Iterable[str]) -> str:
    """``; did you mean ...?`` where a word is nearly one of the known, else which those are."""
    choices = list(known)
    found = difflib.get_close_matches(word, choices, n=1)
    return f"; did you mean {found[0]}?" if found else f"; known: {', '.join(choices)}"


def shown(text: str) -> str:
    """A text for a message: one line, not too long."""
    plain = text.encode("unicode_escape").decode("ascii")
    return plain if len(plain) <= 60 else plain[:57] + "..."


def _add(section: Section, key: str, entry: Entry, problems: list[Problem]) -> None:
    first = next((other.line for name, other in section.entries.items() if name.lower() == key.lower()), None)
    if first is not None:
        problems.append(Problem(entry.line, f'"{key}" is there twice in [{section.name}], first in line {first}'))
    else:
        section.entries[key] = entry
