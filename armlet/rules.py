"""Combinations that a SKU may not ask for, each with its reason.

The rules look at the document, not at a validated model, so that they speak up beside unknown keys and typing errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from armlet.recipes import Table
from armlet.registrations import ONNX_DOMAIN
from armlet.spec.base import version_key
from armlet.spec.cpu import CPUS, Arch
from armlet.spec.patterns import FUNCTIONS
from armlet.spec.sku import BUILDABLE_PROVIDERS, DOMAINS_LEFT_OUT
from armlet.spec.source_set import SourceSet
from armlet.spec.toolchain import Toolchain
from armlet.validation import did_you_mean
from armlet.yamlfile import Document, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A SKU as written, and what it refers to as far as that is there and sound."""

    sku: Document
    toolchain: Toolchain | None
    source_set: SourceSet | None
    toolchains: tuple[Toolchain, ...]
    operators: Table | None


Rule = Callable[[Case], Iterator[Problem]]


def _cpu(case: Case) -> Iterator[Problem]:
    given = case.sku.get("cpu")
    if not isinstance(given, str):
        return
    known = [name for name, cpu in CPUS.items() if case.toolchain is None or cpu.arch == case.toolchain.arch]
    cpu = CPUS.get(given)
    if cpu is None:
        yield case.sku.problem(("cpu",), f'unknown CPU "{given}"', did_you_mean(given, known))
    elif case.toolchain is not None and cpu.arch != case.toolchain.arch:
        yield case.sku.problem(
            ("cpu",),
            f"{given} is an {cpu.arch} core, and {case.toolchain.name} compiles for {case.toolchain.arch}",
            f"CPUs of this toolchain: {', '.join(known)}",
        )


def _python(case: Case) -> Iterator[Problem]:
    runtime = case.sku.get("runtime")
    if not isinstance(runtime, dict):
        return
    if runtime.get("python") != "wheel":
        if "cpython" in runtime:
            yield case.sku.problem(
                ("runtime", "cpython"),
                "is only asked for by a wheel",
                "leave it out, or write python: wheel; python: capi serves every CPython from 3.8 on",
            )
    elif runtime.get("flavor") == "minimal":
        yield case.sku.problem(
            ("runtime", "python"),
            "upstream's Python wheel cannot be had with flavor: minimal",
            "its pybind module needs exceptions, RTTI and a full build; write python: capi, which serves every flavor, "
            "or flavor: reduced or full",
        )
    elif case.toolchain is not None and case.source_set is not None:
        yield from _cpython(case, case.toolchain, case.source_set, runtime.get("cpython"))


def _cpython(case: Case, toolchain: Toolchain, source_set: SourceSet, wanted: object) -> Iterator[Problem]:
    key = ("runtime", "cpython" if wanted is not None else "python")
    able = {
        one.name: one.cpython
        for one in case.toolchains
        if one.arch == toolchain.arch and one.cpython and _has_wheel(source_set, one.cpython)
    }
    others = (
        "toolchains that can: " + ", ".join(f"{name} ({version})" for name, version in sorted(able.items()))
        if able
        else f"no {toolchain.arch} toolchain can"
    ) + "; or write python: capi, which serves every CPython from 3.8 on"
    version = wanted if isinstance(wanted, str) else toolchain.cpython
    if version is None or version != toolchain.cpython:
        has = f"it has those of {toolchain.cpython}" if toolchain.cpython else "it has none"
        named = f"CPython {wanted}" if wanted is not None else "any CPython"
        yield case.sku.problem(key, f"{toolchain.name} has no headers of {named}: {has}", others)
    elif not _has_wheel(source_set, version):
        told = " to ".join(source_set.cpython) if source_set.cpython else "no CPython that is known"
        yield case.sku.problem(
            key, f"the wheel of ONNX Runtime {source_set.version} is for CPython {told}, not for {version}", others
        )


def _has_wheel(source_set: SourceSet, version: str) -> bool:
    if source_set.cpython is None:
        return False
    oldest, newest = source_set.cpython
    return version_key(oldest) <= version_key(version) <= version_key(newest)


def _providers(case: Case) -> Iterator[Problem]:
    given = case.sku.get("runtime", "providers")
    if not isinstance(given, list):
        return
    key = ("runtime", "providers")
    buildable: Mapping[str, frozenset[Arch]] = {str(name): arches for name, arches in BUILDABLE_PROVIDERS.items()}
    for index, provider in enumerate(given):
        if provider in given[:index]:
            yield case.sku.problem((*key, index), f'"{provider}" is given twice', "keep the first")
        arches = buildable.get(provider) if isinstance(provider, str) else None
        if arches is not None and case.toolchain is not None and case.toolchain.arch not in arches:
            able = [name for name, on in buildable.items() if case.toolchain.arch in on]
            yield case.sku.problem(
                (*key, index),
                f'the provider "{provider}" cannot be built with {case.toolchain.name} yet',
                f"Armlet knows it, but has no build of its library for this toolchain; available: {', '.join(able)}",
            )
    if given and "cpu" not in given:
        yield case.sku.problem(
            key, "cpu is missing", "add cpu at the end: it takes the nodes that no other provider takes"
        )
    elif "cpu" in given[:-1] and given[-1] != "cpu":
        yield case.sku.problem(
            (*key, given.index("cpu")), "cpu must come last", "it takes every node, so nothing after it is ever asked"
        )


def _glibc(case: Case) -> Iterator[Problem]:
    floor = case.sku.get("floors", "glibc")
    if case.toolchain is None or not isinstance(floor, str) or not _is_version(floor):
        return
    if version_key(floor) >= version_key(case.toolchain.floors.glibc):
        return
    fitting = [
        toolchain.name
        for toolchain in case.toolchains
        if toolchain.arch == case.toolchain.arch and version_key(toolchain.floors.glibc) <= version_key(floor)
    ]
    yield case.sku.problem(
        ("floors", "glibc"),
        f"a rootfs with glibc {floor} cannot run what {case.toolchain.name} links, which needs "
        f"{case.toolchain.floors.glibc}",
        f"toolchains that fit: {', '.join(fitting)}"
        if fitting
        else f"no {case.toolchain.arch} toolchain goes that far back; add one (docs/adding-a-toolchain.md), "
        f'or ship a rootfs with glibc {case.toolchain.floors.glibc} and write "{case.toolchain.floors.glibc}"',
    )


def _is_version(text: str) -> bool:
    return all(part.isascii() and part.isdigit() for part in text.split("."))


def _some_operators(case: Case) -> Iterator[Problem]:
    runtime = case.sku.get("runtime")
    if not isinstance(runtime, dict) or runtime.get("flavor") not in ("minimal", "reduced"):
        return
    operators = runtime.get("operators", {})
    if isinstance(operators, dict) and not operators.get("models") and not operators.get("allow"):
        yield case.sku.problem(
            ("runtime", "operators"),
            f"flavor: {runtime['flavor']} keeps only named operators, and none are named",
            "add models: or allow: (docs/adding-a-sku.md)",
        )


def _full_allow(case: Case) -> Iterator[Problem]:
    if case.sku.get("runtime", "flavor") == "full" and case.sku.get("runtime", "operators", "allow"):
        yield case.sku.problem(
            ("runtime", "operators", "allow"),
            "flavor: full keeps every operator: there is nothing to allow",
            "leave allow: out, or write flavor: reduced",
        )


def _models(case: Case) -> Iterator[Problem]:
    models = case.sku.get("runtime", "operators", "models")
    seen: set[str] = set()
    for index, model in enumerate(models if isinstance(models, list) else ()):
        if not isinstance(model, dict):
            continue
        key = ("runtime", "operators", "models", index)
        places = [place for place in ("path", "wheel") if model.get(place) is not None]
        if len(places) != 1:
            what = "has no place" if not places else "has two places"
            yield case.sku.problem(
                key, what, "give one of path: (a file of this project) and wheel: (a file in a wheel)"
            )
        name = model.get("name")
        if isinstance(name, str) and name in seen:
            yield case.sku.problem((*key, "name"), f'"{name}" is given twice', "give every model a name of its own")
        elif isinstance(name, str):
            seen.add(name)


def _allow(case: Case) -> Iterator[Problem]:
    entries = case.sku.get("runtime", "operators", "allow")
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        if isinstance(entry, dict):
            yield from _allow_entry(case, index, entry)


def _allow_entry(case: Case, index: int, entry: Mapping[str, object]) -> Iterator[Problem]:
    key = ("runtime", "operators", "allow", index)
    operators = entry.get("operators")
    written = operators if isinstance(operators, list) else []
    names = [(place, *_split(name)) for place, name in enumerate(written) if isinstance(name, str)]
    domains = sorted({domain for _, domain, _ in names})
    if len(domains) > 1:
        yield case.sku.problem(
            (*key, "operators"),
            f"mixes domains: {', '.join(domains)}",
            "opsets count per domain: write one entry for each domain",
        )
    low, high = _range(entry.get("opsets"))
    if low is not None and high is not None:
        yield from _opsets(case, key, low, high, domains)
    for place, domain, name in names:
        yield from _operator(case, (*key, "operators", place), domain, name, high)
        if written.index(written[place]) < place:
            yield case.sku.problem((*key, "operators", place), f'"{name}" is given twice', "keep one")


def _range(opsets: object) -> tuple[int | None, int | None]:
    if isinstance(opsets, list) and len(opsets) == 2 and all(type(bound) is int for bound in opsets):
        return opsets[0], opsets[1]
    return None, None


def _opsets(case: Case, key: tuple[str | int, ...], low: int, high: int, domains: list[str]) -> Iterator[Problem]:
    place = (*key, "opsets")
    if low > high:
        yield case.sku.problem(place, f"[{low}, {high}] is upside down", f"write [{high}, {low}]")
    if min(low, high) < 1:
        yield case.sku.problem(place, f"there is no opset {min(low, high)}", "opsets count from 1")
    if case.source_set is None:
        return
    for domain in domains:
        newest = case.source_set.opsets.get(domain)
        if newest is not None and max(low, high) > newest:
            of = f" of {domain}" if domain != ONNX_DOMAIN else ""
            yield case.sku.problem(
                place,
                f"opset {max(low, high)}{of} is newer than ONNX Runtime {case.source_set.version} knows",
                f"the newest is {newest}: write [{min(low, high, newest)}, {newest}], or choose a newer source set",
            )


_MANY_OPERATORS = (
    "recipes/operators has all that have kernels; ONNX's functions, such as GroupNormalization, "
    "are allowed through the operators they consist of"
)


def _operator(case: Case, key: tuple[str | int, ...], domain: str, name: str, high: int | None) -> Iterator[Problem]:
    if case.operators is None:
        return
    known = case.operators.get(domain)
    if known is None:
        yield case.sku.problem(key, f'unknown operator domain "{domain}"', did_you_mean(domain, case.operators))
    elif domain in _left_out(case):
        flavor = case.sku.get("runtime", "flavor")
        yield case.sku.problem(
            key, f"flavor: {flavor} is built without {domain}", f"leave {name} out, and models that use it"
        )
    elif name not in known and domain == ONNX_DOMAIN and name in FUNCTIONS:
        parts = FUNCTIONS[name]
        yield case.sku.problem(
            key,
            f'"{name}" has no kernel: it is a function of {len(parts)} other operators',
            f"allow these in its place: {', '.join(parts)}",
        )
    elif name not in known:
        elsewhere = [other for other, names in case.operators.items() if name in names]
        hint = (
            f'did you mean "{elsewhere[0]}:{name}"?' if elsewhere else did_you_mean(name, known, more=_MANY_OPERATORS)
        )
        yield case.sku.problem(key, f'unknown operator "{name}"', hint)
    elif high is not None and min(known[name]) > high:
        yield case.sku.problem(
            key, f"{name} has no kernel for opset {high} or older", f"it starts with opset {min(known[name])}"
        )


def _left_out(case: Case) -> frozenset[str]:
    flavor = case.sku.get("runtime", "flavor")
    return next((domains for name, domains in DOMAINS_LEFT_OUT.items() if name == flavor), frozenset())


def _split(name: str) -> tuple[str, str]:
    domain, _, operator = name.rpartition(":")
    return domain or ONNX_DOMAIN, operator


RULES: tuple[Rule, ...] = (_cpu, _python, _providers, _glibc, _some_operators, _full_allow, _models, _allow)


def check(case: Case) -> list[Problem]:
    """Everything that the rules have against a SKU."""
    return [problem for rule in RULES for problem in rule(case)]
