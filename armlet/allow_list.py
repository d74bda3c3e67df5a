"""Allow-lists of operators: as text to paste, and put into a SKU's file without touching anything else in it."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from operator import add
from typing import Any

from armlet.errors import ArmletError, Kind
from armlet.registrations import ONNX_DOMAIN
from armlet.spec.sku import Allow
from armlet.yamlfile import Document, Key, parse

Edit = tuple[int, int, str]
"""Start and end in a text, and what takes the place of what is between."""

_OPERATORS: Key = ("runtime", "operators")
_ALLOW: Key = (*_OPERATORS, "allow")
_TYPES: Key = (*_OPERATORS, "types")
_BLOCK_ITEM = re.compile(r"[ ]*- ")
_LINE_END = re.compile(r"\r\n|\r|\n")
_CLOSING = re.compile(r"[ ]*[\]},]+[ ]*(#.*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An operator of an entry, and in one line why it is there."""

    name: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Operators of one domain, for every opset of a range."""

    domain: str
    opsets: tuple[int, int]
    items: tuple[Item, ...]


def missing(entries: Iterable[Entry], rules: Iterable[Allow]) -> tuple[Entry, ...]:
    """What of the entries the rules do not allow yet, for the whole of its range."""
    known = {
        (_qualified(name), opset)
        for rule in rules
        for name in rule.operators
        for opset in range(rule.opsets[0], rule.opsets[1] + 1)
    }

    def lacks(entry: Entry, item: Item) -> bool:
        opsets = range(entry.opsets[0], entry.opsets[1] + 1)
        return any(((entry.domain, item.name), opset) not in known for opset in opsets)

    less = (replace(entry, items=tuple(item for item in entry.items if lacks(entry, item))) for entry in entries)
    return tuple(entry for entry in less if entry.items)


def rendered(entries: Iterable[Entry], *, indent: int = 0) -> str:
    """The entries as YAML: items of a list that is called ``allow``."""
    space = " " * indent
    lines = []
    for entry in entries:
        lines += [f"{space}- opsets: [{entry.opsets[0]}, {entry.opsets[1]}]", f"{space}  operators:"]
        lines += [f"{space}    - {_written(entry.domain, item)}" for item in entry.items]
    return "".join(f"{line}\n" for line in lines)


def merged(document: Document, entries: Sequence[Entry], types: Sequence[str] = ()) -> str:
    """The SKU's text with the entries and element types in it: lines are added, and none is changed but the one of a
    list that stands in a single line.

    Entries go to the operators of their range, in the order of the alphabet, or behind the last.

    Raises:
        ArmletError: (INPUT) the file is laid out in a way that they cannot be put into.
    """
    edits: list[Edit] = []
    fresh: list[Entry] = []
    for entry in entries:
        place = _same(document, entry)
        if place is None:
            fresh.append(entry)
        else:
            edits += _into(document, (*_ALLOW, place, "operators"), [_pair(entry.domain, item) for item in entry.items])
    if fresh:
        edits.append(_behind(document, fresh))
    if types:
        edits += _into(document, _TYPES, [(one, one) for one in types])
    text = document.text
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    if _without_lists(parse(text, file=document.file).data) != _without_lists(document.data):
        raise _by_hand(document, _ALLOW)
    return text


def as_written(raw: bytes, text: str) -> bytes:
    """The new text of a file that is ``raw`` now: with its byte order mark, each line that stays with its own end."""
    old = raw.decode("utf-8-sig")
    lines, ends = _LINE_END.split(old), _LINE_END.findall(old)
    fresh = text.split("\n")
    chosen = [ends[0] if ends else "\n"] * (len(fresh) - 1)
    for there, here, size in SequenceMatcher(None, lines, fresh, autojunk=False).get_matching_blocks():
        kept = ends[there : there + size]
        chosen[here : here + len(kept)] = kept
    begun = raw[: len(BOM_UTF8)] if raw.startswith(BOM_UTF8) else b""
    return begun + "".join(map(add, fresh, [*chosen, ""])).encode()


def _same(document: Document, entry: Entry) -> int | None:
    """The index of the entry that the file has for this domain and range."""
    for place, rule in enumerate(document.get(*_ALLOW) or ()):
        domains = {_qualified(str(name))[0] for name in rule.get("operators", ())}
        if rule.get("opsets") == list(entry.opsets) and domains == {entry.domain}:
            return place
    return None


def _into(document: Document, key: Key, items: Sequence[tuple[str, str]]) -> list[Edit]:
    """The edits that put items, each its value and how it is written, into a list of scalars that has some."""
    there = [(document.get(*inner), span) for inner, span in document.spans.items() if inner[:-1] == key]
    text = document.text
    first_line = text.rfind("\n", 0, there[0][1][0]) + 1
    prefix = _BLOCK_ITEM.match(text, first_line, there[0][1][0])
    if prefix is None or prefix.end() != there[0][1][0]:
        end = there[-1][1][1]
        return [(end, end, "".join(f", {written.partition('  #')[0]}" for _, written in items))]
    found: dict[int, str] = {}
    for value, written in sorted(items):
        before = [span for name, span in there if name < value]
        place = _line_end(text, before[-1][1]) if before else first_line
        found[place] = found.get(place, "") + f"{prefix[0]}{written}\n"
    return [(place, place, _on_lines(text, place, new)) for place, new in found.items()]


def _behind(document: Document, entries: Sequence[Entry]) -> Edit:
    """The edit that puts new entries behind the last one, or begins the list."""
    text, inside = document.text, document.get(*_ALLOW)
    if inside:
        start = document.start_of_line((*_ALLOW, 0))
        item = re.compile(r"( *)- ").match(text, start)
        if item is None:
            raise _by_hand(document, _ALLOW)
        new = rendered(entries, indent=len(item[1]))
        place = _end_of(document, _ALLOW)
    else:
        parent = _OPERATORS if document.get(*_OPERATORS) else _OPERATORS[:1]
        sibling = next((key for key in document.lines if key[:-1] == parent), None)
        if sibling is None or inside is not None:
            raise _by_hand(document, _ALLOW)
        start = document.start_of_line(sibling)
        space = len(text[start:]) - len(text[start:].lstrip(" "))
        names = [str(part) for part in _ALLOW[len(parent) :]]
        heads = [f"{' ' * (space + 2 * depth)}{name}:\n" for depth, name in enumerate(names)]
        new = "".join(heads) + rendered(entries, indent=space + 2 * len(names))
        place = _end_of(document, parent)
    return (place, place, _on_lines(text, place, new))


def _end_of(document: Document, key: Key) -> int:
    """Where the lines of what is below a key end: those of brackets that close it on lines of their own as well."""
    text = document.text
    below = [inner for inner in document.lines if inner[: len(key)] == key]
    last = max(
        document.spans[inner][1] if inner in document.spans else document.start_of_line(inner) for inner in below
    )
    place = _line_end(text, last)
    while (line := text[place : _line_end(text, place)].rstrip("\n")) and _CLOSING.fullmatch(line):
        place = _line_end(text, place)
    return place


def _line_end(text: str, place: int) -> int:
    return text.find("\n", place) + 1 or len(text)


def _on_lines(text: str, place: int, new: str) -> str:
    """The new lines, begun on one of their own also where the file ends without a newline."""
    return new if place == 0 or text[place - 1] == "\n" else f"\n{new}"


def _qualified(name: str) -> tuple[str, str]:
    domain, _, operator = name.rpartition(":")
    return domain or ONNX_DOMAIN, operator


def _pair(domain: str, item: Item) -> tuple[str, str]:
    return (item.name if domain == ONNX_DOMAIN else f"{domain}:{item.name}", _written(domain, item))


def _written(domain: str, item: Item) -> str:
    name = item.name if domain == ONNX_DOMAIN else f'"{domain}:{item.name}"'
    return f"{name}  # {' '.join(re.sub(r'[^ -~]', '?', item.why).split())}" if item.why else name


def _without_lists(data: Any) -> Any:
    """The SKU's data less what may change."""
    runtime = data.get("runtime") or {}
    operators = {key: value for key, value in (runtime.get("operators") or {}).items() if key not in ("allow", "types")}
    return {**data, "runtime": {**runtime, "operators": operators}}


def _by_hand(document: Document, key: Key) -> ArmletError:
    return ArmletError(
        "runtime.operators.allow is laid out in a way that nothing can be put into",
        hint="write it as a list with one entry on each line, or paste what the command prints without --write",
        kind=Kind.INPUT,
        where=document.where(key),
    )
