"""The kernels that ONNX Runtime's provider sources register."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

ONNX_DOMAIN = "ai.onnx"
"""ONNX's own domain. Its files and sources write the empty text for it; ours always write this name."""

DOMAINS = {
    "kOnnxDomain": ONNX_DOMAIN,
    "kOnnxDomainAlias": ONNX_DOMAIN,
    "kMLDomain": "ai.onnx.ml",
    "kMSDomain": "com.microsoft",
    "kMSNchwcDomain": "com.microsoft.nchwc",
    "kMSInternalNHWCDomain": "com.ms.internal.nhwc",
    "kPytorchAtenDomain": "org.pytorch.aten",
    "kDynamicDomainByCreate": "xnnpack",
}
"""Constants of ``core/graph/constants.h``, and one of the XNNPACK provider -> domain."""

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_DIRECTIVE = re.compile(r"\s*#\s*(ifdef|ifndef|if|elif|else|endif)\b(.*)")
_DEFINED = re.compile(r"(!?)\s*defined\s*\(?\s*(\w+)\s*\)?")
_ENTRY = re.compile(r"BuildKernelCreateInfo\s*<\s*ONNX_OPERATOR_(\w*?)KERNEL_CLASS_NAME\s*\(([^()]*)\)\s*>")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Registration:
    """One kernel: the operator versions it serves, and the types its class is made for."""

    domain: str
    op: str
    since: int
    until: int | None
    """Last opset version it serves; null: all that follow."""
    types: tuple[str, ...]
    """As the source writes them (``float``, ``int64_t``, ``MLFloat16``); empty for a kernel that is not typed."""


def parse(text: str, *, defined: Collection[str] | None = None) -> list[Registration]:
    """The registrations in a C++ source, in its order; those in comments do not count.

    Args:
        defined: the preprocessor's symbols, so that the parts of ``#ifdef``, ``#ifndef``, ``#if defined()`` and
            ``#if !defined()`` that are switched off do not count either. Null: everything counts.

    Raises:
        ValueError: an entry has another form than ONNX Runtime's macros, or a condition another than those four.
    """
    plain = without_comments(text)
    if defined is not None:
        plain = switched_on(plain, defined)
    return [_registration(kind, arguments) for kind, arguments in _ENTRY.findall(plain)]


def without_comments(text: str) -> str:
    """A C++ source with a space in place of each comment."""
    return _COMMENT.sub(" ", text)


def switched_on(text: str, defined: Collection[str]) -> str:
    """A C++ source without what its conditions switch off; lines keep their numbers.

    Raises:
        ValueError: as ``parse``.
    """
    kept: list[str] = []
    on: list[bool] = []
    for line in text.splitlines():
        directive = _DIRECTIVE.match(line)
        kept.append(line if directive is None and all(on) else "")
        if directive is None:
            continue
        if directive[1] in ("endif", "else"):
            if not on:
                raise ValueError(f"#{directive[1]} without a condition")
            before = on.pop()
            if directive[1] == "else":
                on.append(not before)
        else:
            on.append(_holds(directive[1], directive[2].strip(), defined))
    if on:
        raise ValueError("a condition without #endif")
    return "\n".join(kept)


def _holds(directive: str, condition: str, defined: Collection[str]) -> bool:
    if directive in ("ifdef", "ifndef"):
        return (condition in defined) == (directive == "ifdef")
    test = _DEFINED.fullmatch(condition)
    if directive != "if" or test is None:
        raise ValueError(f"a condition of an unknown form: #{directive} {condition}")
    return (test[2] in defined) != bool(test[1])


def _registration(kind: str, arguments: str) -> Registration:
    # (provider, domain, since[, until][, type...], operator)
    parts = [part.strip() for part in arguments.split(",")]
    versioned = "VERSIONED" in kind.split("_")
    first_type = 4 if versioned else 3
    if len(parts) < first_type + 1 or parts[1] not in DOMAINS:
        raise ValueError(f"a kernel registration of an unknown form: {kind}({', '.join(parts)})")
    return Registration(
        domain=DOMAINS[parts[1]],
        op=parts[-1],
        since=int(parts[2]),
        until=int(parts[3]) if versioned else None,
        types=tuple(parts[first_type:-1]),
    )


def table(registrations: Iterable[Registration]) -> dict[str, dict[str, list[int]]]:
    """Domain -> operator -> opset versions at which its kernels start; everything sorted."""
    found: dict[str, dict[str, set[int]]] = {}
    for one in registrations:
        found.setdefault(one.domain, {}).setdefault(one.op, set()).add(one.since)
    return {
        domain: {op: sorted(since) for op, since in sorted(operators.items())}
        for domain, operators in sorted(found.items())
    }


SOURCES = (
    "onnxruntime/core/providers/cpu/cpu_execution_provider.cc",
    "onnxruntime/contrib_ops/cpu/cpu_contrib_kernels.cc",
)
"""Where the CPU provider registers its kernels, in ONNX Runtime's tree."""


def table_text(sources: Iterable[str]) -> str:
    """The text of ``recipes/operators/<source set>.json`` from the texts of ``SOURCES``; one operator a line.

    Raises:
        ValueError: as ``parse``.
    """
    # No symbol is defined: what is left is there in every build, apart from training, ATen and half precision.
    found = table(one for source in sources for one in parse(source, defined=()))
    return _one_a_line({domain: {op: json.dumps(since) for op, since in ops.items()} for domain, ops in found.items()})


def _one_a_line(table: Mapping[str, Mapping[str, str]]) -> str:
    domains = [
        f"  {json.dumps(domain)}: {{\n"
        + ",\n".join(f"    {json.dumps(op)}: {text}" for op, text in operators.items())
        + "\n  }"
        for domain, operators in table.items()
    ]
    return "{\n" + ",\n".join(domains) + "\n}\n"


def kernel_types_text(types: Mapping[Registration, Mapping[str, Iterable[str]]]) -> str:
    """The text of ``recipes/operators/<source set>.types.json``: what each kernel takes, one kernel a line."""
    table: dict[str, dict[str, list[str]]] = {}
    for one in sorted(types, key=lambda one: (one.domain, one.op, one.since, one.until or 0, one.types)):
        takes = {name: " ".join(sorted(allowed)) for name, allowed in sorted(types[one].items())}
        row = json.dumps([one.since, one.until, " ".join(one.types), takes])
        table.setdefault(one.domain, {}).setdefault(one.op, []).append(row)
    return _one_a_line(
        {
            domain: {op: "[\n      " + ",\n      ".join(rows) + "\n    ]" for op, rows in operators.items()}
            for domain, operators in table.items()
        }
    )


def kernel_types(text: str) -> dict[Registration, dict[str, tuple[str, ...]]]:
    """What :func:`kernel_types_text` wrote.

    Raises:
        ValueError, AttributeError, TypeError: it did not.
    """
    return {
        Registration(domain=domain, op=op, since=int(since), until=until, types=tuple(types.split())): {
            name: tuple(allowed.split()) for name, allowed in takes.items()
        }
        for domain, operators in json.loads(text).items()
        for op, rows in operators.items()
        for since, until, types, takes in rows
    }
