"""Which operators a runtime has kernels for: what its sources register and its library really holds.

Neither source alone tells the truth: registrations that the preprocessor drops (``#if``) still stand in the text, and
a kernel that is linked need not be registered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from armlet.registrations import DOMAINS, Registration
from armlet.spec.runtime import Kernels

_BUILDER = re.compile(rb"_ZN11onnxruntime\w*?21BuildKernelCreateInfoIN\w*?_(\d+)(k[A-Z]\w+)")
_KERNEL = re.compile(
    r"(?P<provider>k\w+?ExecutionProvider)_(?P<op>\w+?)_(?P<domain>k\w*?Domain(?:Alias)?)_ver(?P<since>\d+)"
    r"(?:_(?P<until>\d+))?(?:_(?P<types>[A-Za-z]\w*))?"
)

Takes = Mapping[str, tuple[str, ...]]
"""Type constraint -> types that a kernel takes, sorted (:class:`armlet.spec.runtime.Kernels`)."""

KernelTypes = Mapping[Registration, Takes]


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
    registered: Iterable[Registration], linked: frozenset[Registration], types: KernelTypes | None
) -> dict[str, dict[str, tuple[Kernels, ...]]]:
    """Domain (``ai.onnx`` for ONNX's own) -> operator -> kernels of the registrations that are linked; all sorted.

    Versions that take the same types become one entry.

    Args:
        types: what each kernel takes; None where nobody knows.
    """
    versions: dict[tuple[str, str], dict[int, list[Takes] | None]] = {}
    for one in registered:
        if _flat(one) not in linked:
            continue
        operator = versions.setdefault((one.domain, one.op), {})
        takes = None if types is None else types.get(one)
        for since in range(one.since, (one.until or one.since) + 1):
            known = operator.setdefault(since, [])
            if takes is None:
                operator[since] = None
            elif known is not None:
                known.append(takes)
    result: dict[str, dict[str, tuple[Kernels, ...]]] = {}
    for (domain, name), operator in sorted(versions.items()):
        result.setdefault(domain, {})[name] = _grouped(operator)
    return result


def without(types: KernelTypes, left_out: tuple[str, ...]) -> KernelTypes:
    """What the kernels take of a build that lacks the types beginning with ``left_out``."""
    return {
        one: {
            name: tuple(kind for kind in allowed if not kind.removeprefix("seq(tensor(").startswith(left_out))
            for name, allowed in takes.items()
        }
        for one, takes in types.items()
    }


def _grouped(operator: Mapping[int, list[Takes] | None]) -> tuple[Kernels, ...]:
    groups: list[tuple[tuple[Takes, ...] | None, list[int]]] = []
    for since, kernels in sorted(operator.items()):
        takes = None if kernels is None else merged(kernels)
        same = next((group for known, group in groups if known == takes), None)
        if same is None:
            groups.append((takes, [since]))
        else:
            same.append(since)
    return tuple(
        Kernels(since_versions=tuple(since), takes=None if takes is None else tuple(map(dict, takes)))
        for takes, since in groups
    )


def merged(kernels: Iterable[Takes]) -> tuple[Takes, ...]:
    """As few entries as say the same: two that differ in one constraint only are one, with the types of both."""
    found = sorted({_as_text(takes): takes for takes in kernels}.values(), key=_as_text)
    while (pair := _joinable(found)) is not None:
        first, second, name = pair
        types = tuple(sorted({*first[name], *second[name]}))
        found = [takes for takes in found if takes is not first and takes is not second]
        found = sorted([*found, {**first, name: types}], key=_as_text)
    return tuple(found)


def _joinable(found: Sequence[Takes]) -> tuple[Takes, Takes, str] | None:
    for first, second in combinations(found, 2):
        if first.keys() == second.keys():
            differing = [name for name in first if first[name] != second[name]]
            if len(differing) == 1:
                return first, second, differing[0]
    return None


def _as_text(takes: Takes) -> str:
    return repr(sorted(takes.items()))


def _flat(one: Registration) -> Registration:
    """As a symbol spells it: several types are one word there."""
    types = ("_".join(one.types),) if one.types else ()
    return Registration(domain=one.domain, op=one.op, since=one.since, until=one.until, types=types)
