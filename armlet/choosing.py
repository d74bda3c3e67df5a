"""The toolchain of a SKU that names none: what its rootfs's glibc allows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeGuard

from armlet.spec.base import VERSION, VERSION_LENGTH, version_key
from armlet.spec.cpu import CPUS, Arch
from armlet.spec.sku import GLIBC
from armlet.spec.toolchain import Toolchain
from armlet.yamlfile import Document, Problem

_FLOOR = ("floors", "glibc")
_PROVIDERS = ("runtime", "providers")


Builds = Callable[[str, Toolchain], bool]
"""Whether a provider can be had with a toolchain; one that nobody knows is not refused here."""


def choose(sku: Document, toolchains: Iterable[Toolchain], builds: Builds) -> tuple[Toolchain | None, list[Problem]]:
    """The newest toolchain for the SKU's CPU whose glibc is not newer than ``floors.glibc``.

    Those that cannot build one of the SKU's providers, or the wheel for its CPython, are passed over. Null and no
    problem where the SKU lacks what the choice goes by: that is told elsewhere.
    """
    cpu, floor = CPUS.get(str(sku.get("cpu"))), sku.get(*_FLOOR)
    if cpu is None or not is_glibc(floor):
        return None, []
    same = [toolchain for toolchain in toolchains if toolchain.arch == cpu.arch]
    fitting = old_enough(same, floor)
    if not fitting:
        return None, [_too_old(sku, cpu.arch, floor, same)]
    able = [one for one in fitting if all(builds(name, one) for name in _providers(sku)) and _has_cpython(sku, one)]
    if not able and (problems := list(_needing_newer(sku, floor, same, fitting, builds))):
        return None, problems
    return max(able or fitting, key=_newest), []


def old_enough(toolchains: Iterable[Toolchain], floor: str) -> list[Toolchain]:
    """Those whose output a rootfs with glibc ``floor`` runs."""
    return [one for one in toolchains if version_key(one.floors.glibc) <= version_key(floor)]


def floors_told(toolchains: Iterable[Toolchain]) -> str:
    """``2.31 (aarch64-bullseye), 2.36 (aarch64-bookworm)``."""
    return ", ".join(f"{one.floors.glibc} ({one.name})" for one in sorted(toolchains, key=_newest)) or "none"


def is_version(text: str) -> bool:
    """Whether the models take it too, so that ``version_key`` can read it."""
    return len(text) <= VERSION_LENGTH and re.fullmatch(VERSION, text) is not None


def is_glibc(floor: object) -> TypeGuard[str]:
    """Whether the SKU's model takes it as ``floors.glibc``."""
    return isinstance(floor, str) and re.fullmatch(GLIBC, floor) is not None


def _newest(toolchain: Toolchain) -> tuple[tuple[int, ...], str]:
    return version_key(toolchain.floors.glibc), toolchain.name


def _providers(sku: Document) -> list[str]:
    given = sku.get(*_PROVIDERS)
    return [one for one in given if isinstance(one, str)] if isinstance(given, list) else []


def _has_cpython(sku: Document, toolchain: Toolchain) -> bool:
    """Whether it has the CPython that the SKU's wheel is for, where the SKU asks for one; if none has, a rule tells."""
    wanted = sku.get("runtime", "cpython")
    return sku.get("runtime", "python") != "wheel" or wanted in (None, toolchain.cpython)


def _too_old(sku: Document, arch: Arch, floor: str, same: Sequence[Toolchain]) -> Problem:
    return sku.problem(
        _FLOOR,
        f"no {arch} toolchain links for a rootfs with glibc {floor}",
        f"floors to be had: {floors_told(same)}; or add a toolchain (docs/adding-a-toolchain.md)",
    )


def _needing_newer(
    sku: Document, floor: str, same: Sequence[Toolchain], fitting: Sequence[Toolchain], builds: Builds
) -> Iterator[Problem]:
    """A provider that none can build is told by the rule on providers."""
    for index, provider in enumerate(_providers(sku)):
        elsewhere = [toolchain for toolchain in same if builds(provider, toolchain)]
        if elsewhere and not any(builds(provider, toolchain) for toolchain in fitting):
            yield sku.problem(
                (*_PROVIDERS, index),
                f'the provider "{provider}" cannot be had for a rootfs with glibc {floor}',
                f"it is built for {floors_told(elsewhere)}: raise floors.glibc if the rootfs has it, "
                f"or leave {provider} out",
            )
