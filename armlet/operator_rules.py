"""What a SKU's allow-list may name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from armlet.case import Case
from armlet.registrations import ONNX_DOMAIN
from armlet.spec.patterns import FUNCTIONS
from armlet.spec.sku import DOMAINS_LEFT_OUT
from armlet.validation import did_you_mean
from armlet.yamlfile import Problem


def allow(case: Case) -> Iterator[Problem]:
    """What is wrong with the allow-list."""
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
