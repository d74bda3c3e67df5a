"""YAML files whose every key and value remembers its line."""

from __future__ import annotations

import itertools
import re
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from armlet.errors import ArmletError, Kind

Key = tuple[str | int, ...]
"""The way from the root of a file to a value: names of keys and indexes of list items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong with one place of a file."""

    where: str
    """``file:line``, the file relative to the project's root."""
    what: str
    """``key: problem``, or just the problem where it concerns the file as a whole."""
    hint: str


def refuse(problems: Iterable[Problem]) -> None:
    """Does nothing where there are no problems.

    Raises:
        ArmletError: of kind INPUT, one per call: it tells all the problems, in the order of files and lines.
    """
    told = sorted(set(problems), key=lambda problem: (_by_line(problem.where), problem.what))
    if not told:
        return
    first, last = told[0], told[-1]
    # Rendered by the error itself: its own place in front, its own hint at the end.
    lines = [first.what]
    for before, after in itertools.pairwise(told):
        lines += [f" hint: {before.hint}", f"{after.where}: {after.what}"]
    raise ArmletError("\n".join(lines), hint=last.hint, kind=Kind.INPUT, where=first.where)


def _by_line(where: str) -> tuple[str, int]:
    file, _, line = where.rpartition(":")
    return (file, int(line)) if line.isdigit() else (where, 0)


def dotted(key: Key) -> str:
    """Writes a key as users see it: ``runtime.operators.allow[0].opsets``."""
    text = ""
    for part in key:
        if isinstance(part, int):
            text += f"[{part}]"
        elif re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", part):
            text += f".{part}" if text else part
        else:
            text += f'["{part}"]'
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A file's data (mappings, lists, text, numbers, booleans, null) and where each piece stands."""

    file: str
    """Relative to the project's root."""
    text: str
    data: Mapping[str, Any]
    lines: Mapping[Key, int]
    """Counted from 1. A key's line for mapping entries, the item's line for list items."""
    spans: Mapping[Key, tuple[int, int]]
    """Of scalars: start and end in ``text``."""
    problems: tuple[Problem, ...] = ()
    """What the data alone already shows to be wrong, such as a key that comes twice."""

    def where(self, key: Key) -> str:
        """``file:line`` of the key, or of the nearest thing around it that is there."""
        while key and key not in self.lines:
            key = key[:-1]
        return f"{self.file}:{self.lines.get(key, 1)}"

    def get(self, *key: str | int) -> Any:
        """The value at the key; null where it, or anything on the way to it, is absent or of another kind."""
        value: Any = self.data
        for part in key:
            if isinstance(value, Mapping) and isinstance(part, str):
                value = value.get(part)
            elif isinstance(value, list) and isinstance(part, int) and part < len(value):
                value = value[part]
            else:
                return None
        return value

    def source(self, key: Key) -> str:
        """A scalar as it is written in the file; empty where there is none."""
        span = self.spans.get(key)
        return self.text[slice(*span)] if span else ""

    def start_of_line(self, key: Key) -> int:
        """Where in ``text`` the line of a key begins that is there."""
        return sum(len(line) for line in self.text.splitlines(keepends=True)[: self.lines[key] - 1])

    def problem(self, key: Key, what: str, hint: str) -> Problem:
        """The values of a list of scalars are named by the problem itself, so their index would only be noise."""
        shown = key[:-1] if key and isinstance(key[-1], int) and key in self.spans else key
        told = f"{dotted(shown)}: {what}" if shown else what
        return Problem(where=self.where(key), what=_on_one_line(told), hint=hint)


_SURROGATE = re.compile(r"[\ud800-\udfff]")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def _on_one_line(text: str) -> str:
    """Values and keys may hold what a line of a message may not."""
    return _UNPRINTABLE.sub(lambda found: repr(found[0])[1:-1], text)


class _Loader(yaml.SafeLoader):
    """Scalars as in YAML 1.2: no ``no`` that is false, no date, no base 60."""

    yaml_implicit_resolvers = {}  # noqa: RUF012  PyYAML's own interface

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.get_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, "an alias is not taken here: write the value out", mark)
        return super().compose_node(parent, index)


for _tag, _pattern, _first in (
    ("null", r"|~|null", ["", "~", "n"]),
    ("bool", r"true|false", ["t", "f"]),
    ("int", r"[-+]?[0-9]+", list("-+0123456789")),
    ("float", r"[-+]?[0-9]*\.[0-9]+(e[-+]?[0-9]+)?|[-+]?[0-9]+\.", list("-+.0123456789")),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), _first)

_CONSTRUCT: Mapping[str, Callable[[str], Any]] = {
    "tag:yaml.org,2002:null": lambda _: None,
    "tag:yaml.org,2002:bool": lambda text: text == "true",
    "tag:yaml.org,2002:int": int,
    "tag:yaml.org,2002:float": float,
    "tag:yaml.org,2002:str": str,
}


@dataclass(slots=True)
class _Walk:
    file: str
    lines: dict[Key, int] = field(default_factory=dict)
    spans: dict[Key, tuple[int, int]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def value(self, node: yaml.Node, key: Key) -> Any:
        self.lines.setdefault(key, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, key)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*key, index)) for index, item in enumerate(node.value)]
        construct = _CONSTRUCT.get(node.tag)
        if construct is None:
            self._tell(node, f'{dotted(key)}: the tag "{node.tag}" is not taken', "write plain text, numbers or lists")
            return None
        if _SURROGATE.search(node.value):
            self._tell(node, f"{dotted(key)}: is no valid text", "write the characters themselves, not \\u escapes")
            return None
        self.spans[key] = (node.start_mark.index, node.end_mark.index)
        return construct(node.value)

    def _mapping(self, node: yaml.MappingNode, key: Key) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name_node, value_node in node.value:
            if not isinstance(name_node, yaml.ScalarNode) or name_node.tag != "tag:yaml.org,2002:str":
                self._tell(name_node, "a key must be text", "write the key in quotes")
                continue
            name = name_node.value
            inner = (*key, name)
            if name in found:
                self._tell(
                    name_node,
                    f"{dotted(inner)}: is given twice",
                    f"keep one; the first is in line {self.lines[inner]}",
                )
                continue
            self.lines[inner] = name_node.start_mark.line + 1
            found[name] = self.value(value_node, inner)
        return found

    def _tell(self, node: yaml.Node, what: str, hint: str) -> None:
        where = f"{self.file}:{node.start_mark.line + 1}"
        self.problems.append(Problem(where=where, what=_on_one_line(what), hint=hint))


_LARGEST = 4 << 20
"""Bytes; reading that much takes seconds, and no recipe comes near."""


def read(path: Path, *, root: Path) -> Document:
    """Reads one file.

    Raises:
        ArmletError: it is missing, is no file, is no UTF-8, is no YAML, or holds anything but a mapping.
    """
    file = path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
    try:
        if not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():
            raise _refusal(file, "is no regular file", "put a YAML file here")
        raw = path.read_bytes()
    except FileNotFoundError:
        raise _refusal(file, "there is no such file", "check the name") from None
    except IsADirectoryError:
        raise _refusal(file, "is a folder", "move it away; a YAML file is expected here") from None
    except OSError as error:
        raise _refusal(file, f"cannot be read: {error.strerror}", "check its permissions") from error
    if len(raw) > _LARGEST:
        raise _refusal(file, f"has {len(raw) >> 20} MiB", "a recipe has a few KiB: put the right file here")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise _refusal(f"{file}:{line}", "is not UTF-8", "save the file as UTF-8") from error
    return parse(text, file=file)


def parse(text: str, *, file: str) -> Document:
    """Reads the text of a file; ``file`` is how messages name it.

    Raises:
        ArmletError: it is no YAML, or holds anything but a mapping.
    """
    # PyYAML's marks count characters after its own reading of line ends; one kind of line end keeps them true.
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    walk = _Walk(file)
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
        finally:
            loader.dispose()
        if node is None:
            raise _refusal(f"{file}:1", "is empty", "copy a file that works and change it")
        if not isinstance(node, yaml.MappingNode):
            raise _refusal(
                f"{file}:{node.start_mark.line + 1}", "must hold keys and values", "begin with a line `schema: 1`"
            )
        data = walk.value(node, ())
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise _refusal(
            f"{file}:{line}", f"holds the control character U+{_code(error):04X}", "remove that character"
        ) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise _refusal(f"{file}:{line}", f"is no YAML: {error.problem}", _syntax_hint(error)) from error
    except RecursionError as error:
        raise _refusal(f"{file}:1", "is nested too deeply", "a recipe needs no more than five levels") from error
    except ValueError as error:
        raise _refusal(f"{file}:1", f"holds a number that cannot be read: {error}", "write it in quotes") from error
    return Document(file=file, text=text, data=data, lines=walk.lines, spans=walk.spans, problems=tuple(walk.problems))


def _code(error: yaml.reader.ReaderError) -> int:
    return error.character if isinstance(error.character, int) else ord(error.character)


def _syntax_hint(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or ""
    if "\\t" in problem:
        return "indent with spaces: YAML takes no tabs"
    if "mapping values are not allowed" in problem:
        return "put text that holds a colon in quotes, and check the indentation"
    if "single document" in (error.context or "") or "another document" in problem:
        return "keep one document per file: remove the line ---"
    if "alias" in problem:
        return "recipes hold no anchors, so that every value has one line of its own"
    return "check quotes, brackets and indentation around this line"


def _refusal(where: str, what: str, hint: str) -> ArmletError:
    return ArmletError(what, hint=hint, kind=Kind.INPUT, where=where)
