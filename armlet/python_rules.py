"""What a SKU may not ask of its Python wheel."""

from __future__ import annotations

from collections.abc import Iterator

from armlet.case import Case
from armlet.choosing import is_glibc, is_version, old_enough
from armlet.spec.base import version_key
from armlet.spec.source_set import SourceSet
from armlet.spec.toolchain import Toolchain
from armlet.yamlfile import Problem


def python(case: Case) -> Iterator[Problem]:
    """A wheel needs a flavor and a CPython that it can be built for."""
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
    if isinstance(wanted, str) and not is_version(wanted):
        return  # The model says so.
    key = ("runtime", "cpython" if wanted is not None else "python")
    floor = case.sku.get("floors", "glibc")
    fitting = old_enough(case.toolchains, floor) if is_glibc(floor) else case.toolchains
    able = {
        one.name: one.cpython
        for one in fitting
        if one.arch == toolchain.arch and one.cpython and _has_wheel(source_set, one.cpython)
    }
    others = (
        "wheels can be had of: " + ", ".join(f"{name} (CPython {version})" for name, version in sorted(able.items()))
        if able
        else f"no {toolchain.arch} toolchain has a wheel for a rootfs with glibc {floor}"
    ) + "; or write python: capi, which serves every CPython from 3.8 on"
    version = wanted if isinstance(wanted, str) else toolchain.cpython
    if version is None or version != toolchain.cpython:
        has = f"it has those of {toolchain.cpython}" if toolchain.cpython else "it has none"
        named = f"CPython {wanted}" if wanted is not None else "any CPython"
        yield case.sku.problem(key, f"{toolchain.name} has no headers of {named}: {has}", others)
    elif not _has_wheel(source_set, version):
        what = f"{source_set.name} does not say which CPython its wheel is for, so none is built"
        if source_set.cpython:
            told = " to ".join(source_set.cpython)
            what = f"the wheel of ONNX Runtime {source_set.version} is for CPython {told}, not for {version}"
        yield case.sku.problem(key, what, others)


def _has_wheel(source_set: SourceSet, version: str) -> bool:
    if source_set.cpython is None:
        return False
    oldest, newest = source_set.cpython
    return version_key(oldest) <= version_key(version) <= version_key(newest)
