"""Which operators a runtime has kernels for: what its sources register and its library really holds.

Neither source alone tells the truth: registrations that the preprocessor drops (``#if``) still stand in the text, and
a kernel that is linked need not be registered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from armlet.registrations import DOMAINS, Registration
from armlet.spec.runtime import Kernels

_BUILDER = re.compile(rb"_ZN11onnxruntime\w*?21BuildKernelCreateInfoIN\w*?_(\d+)(k[A-Z]\w+)")
_KERNEL = re.compile(
    r"(?P<provider>k\w+?ExecutionProvider)_(?P<op>\w+?)_(?P<domain>k\w*?Domain(?:Alias)?)_ver(?P<since>\d+)"
    r"(?:_(?P<until>\d+))?(?:_(?P<types>[A-Za-z]\w*))?"
)

# C++ names of tensor element types that differ from ONNX's (onnx.proto, TensorProto.DataType, in lower case).
_ONNX_TYPES = {
    "BFloat16": "bfloat16",
    "Float8E4M3FN": "float8e4m3fn",
    "Float8E4M3FNUZ": "float8e4m3fnuz",
    "Float8E5M2": "float8e5m2",
    "Float8E5M2FNUZ": "float8e5m2fnuz",
    "Int4x2": "int4",
    "MLFloat16": "float16",
    "UInt4x2": "uint4",
}


def linked(symbol_names: bytes, *, provider: str = "kCpuExecutionProvider") -> frozenset[Registration]:
    """The kernels of a provider that a library holds, from the content of its ``.strtab`` section.

    A kernel is a function ``BuildKernelCreateInfo<class k…ExecutionProvider_Conv_kOnnxDomain_ver11_21>``.
    """
    found: set[Registration] = set()
    for length, rest in _BUILDER.findall(symbol_names):
        match = _KERNEL.fullmatch(rest[: int(length)].decode("ascii", errors="replace"))
        if match is None or match["provider"] != provider or match["domain"] not in DOMAINS:
            continue
        found.add(
            Registration(
                domain=DOMAINS[match["domain"]],
                op=match["op"],
                since=int(match["since"]),
                until=int(match["until"]) if match["until"] else None,
                types=(match["types"],) if match["types"] else (),
            )
        )
    return frozenset(found)


def contract(
    registered: Iterable[Registration], linked: frozenset[Registration]
) -> dict[str, dict[str, tuple[Kernels, ...]]]:
    """Domain (``ai.onnx`` for ONNX's own) -> operator -> kernels of the registrations that are linked; all sorted.

    Kernels for the same versions that differ in their types become one entry, and so do versions of equal types.
    """
    versions: dict[tuple[str, str], dict[int, set[str] | None]] = {}
    for one in registered:
        if _flat(one) not in linked:
            continue
        operator = versions.setdefault((one.domain, one.op), {})
        for since in range(one.since, (one.until or one.since) + 1):
            types = operator.setdefault(since, set())
            if not one.types:
                operator[since] = None
            elif types is not None:
                types.add("|".join(_onnx_type(name) for name in one.types))
    result: dict[str, dict[str, tuple[Kernels, ...]]] = {}
    for (domain, name), operator in sorted(versions.items()):
        result.setdefault(domain, {})[name] = _grouped(operator)
    return result


def _grouped(operator: dict[int, set[str] | None]) -> tuple[Kernels, ...]:
    by_types: dict[tuple[str, ...] | None, list[int]] = {}
    for since, types in sorted(operator.items()):
        by_types.setdefault(None if types is None else tuple(sorted(types)), []).append(since)
    return tuple(Kernels(since_versions=tuple(since), types=types) for types, since in by_types.items())


def _flat(one: Registration) -> Registration:
    """As a symbol spells it: several types are one word there."""
    types = ("_".join(one.types),) if one.types else ()
    return Registration(domain=one.domain, op=one.op, since=one.since, until=one.until, types=types)


def _onnx_type(name: str) -> str:
    return _ONNX_TYPES.get(name, name.removesuffix("_t"))
