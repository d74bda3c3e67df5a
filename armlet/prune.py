"""Which sources a reduced build can leave out.

Two rules, both checked by the linker (``--no-undefined``), so that a wrong answer is a failed build and never a wrong
library:

* A source of the CPU provider stays if a kernel it registers survives the operator reduction, or if a source that stays
  includes the header of the same name.
* A source of another target goes if a table of that ONNX Runtime version names it: nothing a minimal runtime reaches
  refers to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from armlet.spec.cpu import Feature
from armlet.spec.source_set import Skip, Sources

Read = Callable[[str], "str | None"]
"""A source's text by its absolute path, None where there is no such file."""

PROVIDER_TARGET = "onnxruntime_providers"

_SUFFIXES = (".cc", ".cpp")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^">]+)[">]', re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*")
# Upstream's registration macros have KERNEL or REG in their names; the operator is one of the arguments.
_REGISTRATION = re.compile(r"\b[A-Z0-9_]*(?:KERNEL|REG)[A-Z0-9_]*\s*\(([^;{]*?)\)", re.DOTALL)
_WORD = re.compile(r"\b[A-Z][A-Za-z0-9_]*\b")


def registered_operators(text: str, known: frozenset[str]) -> frozenset[str]:
    """Names of the operators that a source registers kernels for."""
    plain = _COMMENT.sub("", text)
    words = (word for match in _REGISTRATION.finditer(plain) for word in _WORD.findall(match[1]))
    return frozenset(words) & known


def provider_sources_needed(
    targets: Mapping[str, Sequence[str]],
    *,
    known: frozenset[str],
    alive: frozenset[str],
    read: Read,
    include_roots: Sequence[str],
    always: Iterable[Sources],
) -> frozenset[str]:
    """The sources of the CPU provider that must be compiled.

    Args:
        targets: the build's targets and their sources (absolute paths).
        known: every operator that the unreduced provider registers.
        alive: the operators whose registrations survive.
        include_roots: folders that ``#include`` is resolved in.
        always: sources that stay although no header leads to them.
    """
    candidates = frozenset(targets[PROVIDER_TARGET])
    starts = [
        source
        for source in candidates
        if matches(source, always) or registered_operators(read(source) or "", known) & alive
    ]
    starts += [
        source
        for target, sources in targets.items()
        if target.startswith("onnxruntime") and target != PROVIDER_TARGET
        for source in sources
    ]
    return _reachable(starts, candidates, read, include_roots)


def _reachable(starts: Iterable[str], candidates: frozenset[str], read: Read, roots: Sequence[str]) -> frozenset[str]:
    seen: set[str] = set()
    todo = list(starts)
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        text = read(path)
        if text is None:
            continue
        for name in _INCLUDE.findall(text):
            for folder in (str(PurePosixPath(path).parent), *roots):
                header = f"{folder}/{name}"
                if read(header) is not None:
                    todo.append(header)
                    break
            # Public headers live in another tree than the sources that implement them.
            stem = str(PurePosixPath(name).with_suffix(""))
            todo += [
                f"{folder}/{stem}{suffix}"
                for folder in (str(PurePosixPath(path).parent), *roots)
                for suffix in _SUFFIXES
                if f"{folder}/{stem}{suffix}" in candidates
            ]
    return frozenset(seen & candidates)


def skipped(
    targets: Mapping[str, Sequence[str]],
    rules: Iterable[Skip],
    *,
    alive: frozenset[str],
    features: frozenset[Feature],
) -> frozenset[str]:
    """The sources that the version's table leaves out, given the surviving operators and the core's extensions."""
    return frozenset(
        source
        for rule in rules
        if not alive.intersection(rule.unless) and not features.intersection(rule.unless_cpu)
        for target, sources in targets.items()
        if re.fullmatch(rule.targets, target)
        for source in sources
        if re.search(rule.sources, source)
    )


def matches(source: str, rules: Iterable[Sources]) -> bool:
    """Whether one of the rules' regular expressions is found anywhere in a source's path."""
    return any(re.search(rule.sources, source) for rule in rules)
