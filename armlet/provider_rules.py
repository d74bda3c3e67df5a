"""What a SKU may not ask of its providers: the order, and what their rows and components say they need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from armlet.case import Case, Rule
from armlet.choosing import floors_told, is_version
from armlet.providers import PROVIDERS
from armlet.spec.base import version_key
from armlet.spec.sku import BUILDABLE_PROVIDERS, Provider
from armlet.spec.source_set import Component, Needs
from armlet.spec.toolchain import Toolchain
from armlet.yamlfile import Problem

_KEY = ("runtime", "providers")
_KNOWN: dict[str, Provider] = {name: name for name in get_args(Provider)}


def _given(case: Case) -> list[object]:
    given = case.sku.get(*_KEY)
    return given if isinstance(given, list) else []


def _known(case: Case) -> Iterator[tuple[int, Provider]]:
    """(place, provider) of those that are any."""
    for place, name in enumerate(_given(case)):
        if isinstance(name, str) and name in _KNOWN:
            yield place, _KNOWN[name]


def _order(case: Case) -> Iterator[Problem]:
    given = _given(case)
    for place, provider in enumerate(given):
        if provider in given[:place]:
            yield case.sku.problem((*_KEY, place), f'"{provider}" is given twice', "keep the first")
    if given and "cpu" not in given:
        yield case.sku.problem(
            _KEY, "cpu is missing", "add cpu at the end: it takes the nodes that no other provider takes"
        )
    elif "cpu" in given[:-1] and given[-1] != "cpu":
        yield case.sku.problem(
            (*_KEY, given.index("cpu")), "cpu must come last", "it takes every node, so nothing after it is ever asked"
        )


def _buildable(case: Case) -> Iterator[Problem]:
    """One answer per provider: the first reason that stands against it."""
    if case.toolchain is None:
        return
    for place, provider in _known(case):
        reason = _against(case, case.toolchain, provider)
        if reason:
            # A toolchain that nobody has named says nothing to the reader.
            by = f"with {case.toolchain.name}" if case.sku.get("toolchain") else f"for {case.toolchain.arch}"
            what = f'the provider "{provider}" cannot be built {by}: {reason}'
            yield case.sku.problem((*_KEY, place), what, _instead(case, case.toolchain, provider))


def builds(case: Case, provider: str, toolchain: Toolchain) -> bool:
    """Whether a provider can be had with a toolchain: what the choice by the rootfs's glibc goes by."""
    return provider not in _KNOWN or not _against(case, toolchain, _KNOWN[provider])


def _against(case: Case, toolchain: Toolchain, provider: Provider) -> str:
    row = PROVIDERS[provider]
    if toolchain.arch not in BUILDABLE_PROVIDERS[provider]:
        return row.not_on[toolchain.arch]
    if row.component and case.source_set is not None and not list(_components(case, provider)):
        return f"{case.source_set.name} has no library for it"
    for component, needs in _needs(case, provider):
        if version_key(needs.glibc) > version_key(toolchain.floors.glibc):
            return (
                f"{component.name} {component.version} needs glibc {needs.glibc}, and it has {toolchain.floors.glibc}"
            )
    return ""


def _instead(case: Case, toolchain: Toolchain, provider: Provider) -> str:
    able = [name for name in _KNOWN.values() if not _against(case, toolchain, name)]
    others = [one for one in case.toolchains if not _against(case, one, provider)]
    with_another = f"; {provider} can be had for a rootfs with glibc {floors_told(others)}" if others else ""
    return f"available: {', '.join(able)}{with_another}"


def _components(case: Case, provider: Provider) -> Iterator[Component]:
    if case.source_set is not None:
        yield from (one for one in case.source_set.components if one.only.provider == provider and one.ships)


def _needs(case: Case, provider: Provider) -> Iterator[tuple[Component, Needs]]:
    yield from ((one, one.needs) for one in _components(case, provider) if one.needs is not None)


def _flavor(case: Case) -> Iterator[Problem]:
    flavor = case.sku.get("runtime", "flavor")
    for place, provider in _known(case):
        for name, reason in PROVIDERS[provider].not_in.items():
            if name == flavor:
                yield case.sku.problem(
                    (*_KEY, place),
                    f"{provider} is not to be had with flavor: {flavor}: {reason}",
                    "choose another flavor",
                )


def _wheel(case: Case) -> Iterator[Problem]:
    if case.sku.get("runtime", "python") != "wheel":
        return
    for place, provider in _known(case):
        if PROVIDERS[provider].shared_cxx:
            yield case.sku.problem(
                (*_KEY, place),
                f"{provider} is not to be had with python: wheel: a wheel would not bring its library",
                "write python: capi, whose package does",
            )


def _cxx(case: Case) -> Iterator[Problem]:
    """A provider with a C++ library of its own uses the rootfs's libstdc++, which the SKU then has to state."""
    key = ("floors", "glibcxx")
    floor = case.sku.get(*key)
    known = [provider for _, provider in _known(case)]
    if floor is not None and len(known) == len(_given(case)) and not any(PROVIDERS[one].shared_cxx for one in known):
        yield case.sku.problem(
            key,
            "is only asked for by a provider that uses the rootfs's libstdc++",
            "leave it out: the C++ runtime is linked in, and nothing is asked of the rootfs's",
        )
    for provider in known:
        if not PROVIDERS[provider].shared_cxx:
            continue
        least = max((n.glibcxx for _, n in _needs(case, provider) if n.glibcxx), key=version_key, default=None)
        if floor is None:
            yield case.sku.problem(
                key if key in case.sku.lines else ("floors",),
                f"{provider} uses the rootfs's libstdc++, and floors.glibcxx does not say which it has",
                f'write the newest GLIBCXX_ version that strings lists in it, e.g. glibcxx: "{least or "3.4.30"}"',
            )
        elif isinstance(floor, str) and least and is_version(floor) and version_key(floor) < version_key(least):
            yield case.sku.problem(
                key,
                f"{provider} needs a libstdc++ with GLIBCXX_{least}, and the rootfs has {floor}",
                f"leave {provider} out, or ship a rootfs with a newer libstdc++",
            )


providers: tuple[Rule, ...] = (_order, _buildable, _flavor, _wheel, _cxx)
