"""The kernels that a provider registers, with the types that each binds."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass

from armlet.coverage.cpp import Unlowerable
from armlet.coverage.elements import CXX_NAMES
from armlet.registrations import DOMAINS, parse, switched_on, without_comments

NHWC = "com.ms.internal.nhwc"
"""The domain of nodes in channels-last layout."""

_DEFINE = re.compile(r"^[ \t]*#define[ \t]+(\w+)\(([^)]*)\)((?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE)
_DEFINED = re.compile(r"\bONNX_OPERATOR_(\w*?)KERNEL_EX\s*\(")
_CONSTRAINT = re.compile(r'\.TypeConstraint\(\s*"(\w+)",')
_ELEMENT = re.compile(r"DataTypeImpl::GetTensorType<([\w:]+)>\(\)")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Kernel:
    """One registered kernel. ``types``: type parameter of the operator's definition -> elements that it takes."""

    op: str
    domain: str
    """``ai.onnx`` for ONNX's own."""
    since: int
    until: int | None
    """Last version that it serves; None: it serves exactly the version it starts at."""
    types: tuple[tuple[str, tuple[str, ...]], ...]

    def serves(self, version: int) -> bool:
        return self.since == version if self.until is None else self.since <= version <= self.until

    def plain(self) -> dict[str, object]:
        return {**asdict(self), "types": {name: list(elements) for name, elements in self.types}}


def kernels(texts: Mapping[str, str], *, defined: Collection[str]) -> tuple[Kernel, ...]:
    """Those that are both defined and registered in the files (name -> text).

    Raises:
        Unlowerable: one is of an unknown form, or is registered and not defined.
    """
    registered, known = [], {}
    for file, text in texts.items():
        try:
            plain = _expanded(without_comments(switched_on(text, defined)))
            registered += [(file, one) for one in parse(plain)]
            for kernel, types in _definitions(plain):
                known[(kernel.domain, kernel.op, kernel.since, kernel.until, types)] = kernel
        except ValueError as error:
            raise Unlowerable(f"{file}: {error}") from error
    found = []
    for file, one in registered:
        match = known.get((one.domain, one.op, one.since, one.until, one.types))
        if match is None:
            raise Unlowerable(f"{file}: {one.op} {one.since} is registered, and defined nowhere")
        found.append(match)
    return tuple(sorted(found, key=lambda kernel: (kernel.op, kernel.domain, kernel.since, kernel.types)))


def _definitions(text: str) -> Iterator[tuple[Kernel, tuple[str, ...]]]:
    for start in _DEFINED.finditer(text):
        parts = _arguments(text, start.end())
        versioned = "VERSIONED" in start[1].split("_")
        first = 4 if versioned else 3
        typed = 1 if "TYPED" in start[1].split("_") else 0
        if len(parts) != first + typed + 3 or parts[1] not in DOMAINS:
            raise ValueError(f"a kernel of an unknown form: {', '.join(parts)[:80]}")
        kernel = Kernel(
            op=parts[0],
            domain=DOMAINS[parts[1]],
            since=int(parts[2]),
            until=int(parts[3]) if versioned else None,
            types=_constraints(parts[-2]),
        )
        yield kernel, tuple(parts[first : first + typed])


def _constraints(builder: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    rest = re.sub(r"\s+", "", builder).removeprefix("KernelDefBuilder()")
    found = []
    while rest:
        start = _CONSTRAINT.match(rest)
        if start is None:
            raise ValueError(f"a kernel is built by something unknown: {rest[:60]}")
        end = closing(rest, start.end())
        inside = rest[start.end() : end].strip("{},").split(",")
        names = [_ELEMENT.fullmatch(one) for one in inside]
        if not all(names):
            raise ValueError(f"types of an unknown form: {rest[:end]}")
        found.append((start[1], tuple(sorted(CXX_NAMES[name[1]] for name in names if name))))
        rest = rest[end + 1 :]
    return tuple(found)


def _expanded(text: str) -> str:
    """With the macros expanded that stand for kernels, and without their definitions."""
    macros = {
        name: ([one.strip() for one in parameters.split(",")], body.replace("\\\n", "\n"))
        for name, parameters, body in _DEFINE.findall(text)
        if "ONNX_OPERATOR_" in body
    }
    plain = _DEFINE.sub("", text)
    for name, (parameters, body) in macros.items():
        use = re.compile(rf"\b{name}\s*\(")
        while found := use.search(plain):
            given = _arguments(plain, found.end())
            if len(given) != len(parameters):
                raise ValueError(f"{name} with {len(given)} arguments")
            values = dict(zip(parameters, given, strict=True))
            filled = re.sub(r"\b\w+\b", lambda word, values=values: values.get(word[0], word[0]), body)  # type: ignore[misc]
            plain = plain[: found.start()] + filled + plain[closing(plain, found.end()) + 1 :]
    return plain


def closing(text: str, start: int) -> int:
    """Where the bracket closes that stands before ``start``."""
    depth = 1
    for at in range(start, len(text)):
        depth += (text[at] in "({") - (text[at] in ")}")
        if depth == 0:
            return at
    raise ValueError("a bracket that does not close")


def _arguments(text: str, start: int) -> list[str]:
    """The arguments of a call whose bracket opens before ``start``."""
    parts, depth = [""], 0
    for sign in text[start : closing(text, start)]:
        depth += (sign in "({<") - (sign in ")}>")
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts]
