"""Every SKU beside the others: what was built of it, and what came of the smoke."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from armlet import gates, manifest, plan
from armlet.config import Resolved, resolve
from armlet.errors import ArmletError
from armlet.paths import Paths
from armlet.pipeline import STEPS
from armlet.qemu.smoke import REPORT
from armlet.recipes import SKUS
from armlet.steps.compile import COST
from armlet.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One SKU. Sizes in bytes; null where nothing was built, or not run in QEMU."""

    sku: str
    problem: str = ""
    """What is wrong with the SKU or its output, where nothing else can be told."""
    toolchain: str = ""
    cpu: str = ""
    qemu: str = ""
    flavor: str = ""
    providers: tuple[str, ...] = ()
    python: str = ""
    current: bool | None = None
    """Whether what lies in ``dist`` is what the recipes describe now."""
    library: int | None = None
    package: int | None = None
    """Of the runtime's tarball."""
    wheel: int | None = None
    glibc: str | None = None
    """The newest that its files ask for."""
    glibc_floor: str = ""
    gates_passed: int | None = None
    gates_failed: int | None = None
    checks_passed: int | None = None
    checks_failed: int | None = None
    compile_cpu_seconds: float | None = None
    compiled: int | None = None
    """Objects that were compiled; the others came out of the compiler cache. Builds side by side count together."""
    cached: int | None = None


def overview(paths: Paths, names: Sequence[str] = ()) -> list[Row]:
    """A row for each SKU (all of them, where none is named), from what the last builds and smokes left.

    A SKU that is not sound, or whose output is damaged, has a row that says so.
    """
    return [_row_or_problem(paths, name) for name in names or SKUS.names(paths)]


def _row_or_problem(paths: Paths, name: str) -> Row:
    try:
        return _row(paths, resolve(paths, name))
    except ArmletError as error:
        return Row(sku=name, problem=str(error))


def _row(paths: Paths, resolved: Resolved) -> Row:
    dist = paths.dist(resolved.sku.name)
    planned = {step.name: step.id for step in plan.make(resolved, STEPS)}
    made = manifest.read_manifest(dist / manifest.FILE) if (dist / manifest.FILE).exists() else None
    results = gates.recorded(dist / "gates.json") if made else ()
    cost = _cost(Store(paths.artifacts), planned["compile"])
    checks = _checks(dist / REPORT)
    runtime = resolved.sku.runtime
    return Row(
        sku=resolved.sku.name,
        toolchain=resolved.toolchain.name,
        cpu=resolved.cpu.name,
        qemu=resolved.cpu.qemu,
        flavor=runtime.flavor,
        providers=runtime.providers,
        python=runtime.python,
        current=made.build_id == planned["package"] if made else None,
        library=next((file.size for file in made.files if file.path.startswith("lib/libonnxruntime.so.")), None)
        if made
        else None,
        package=_size(dist / f"{gates.runtime_name(resolved)}.tar.xz"),
        wheel=next((_size(path) for path in dist.glob("*.whl")), None),
        glibc=made.requires.glibc if made else None,
        glibc_floor=resolved.sku.floors.glibc,
        gates_passed=sum(result.ok for result in results) if made else None,
        gates_failed=sum(not result.ok for result in results) if made else None,
        checks_passed=sum(checks) if checks is not None else None,
        checks_failed=len(checks) - sum(checks) if checks is not None else None,
        compile_cpu_seconds=cost.get("cpu_seconds"),
        compiled=cost.get("compiled"),
        cached=cost.get("cached"),
    )


def _cost(store: Store, step: str) -> dict[str, Any]:
    output = store.find(step)
    found = _json(output / COST) if output else None
    return found if isinstance(found, dict) else {}


def _checks(path: Path) -> list[bool] | None:
    """Whether each check of a smoke passed; null where there was none, or its report is damaged."""
    try:
        return [bool(check["passed"]) for check in _json(path)["checks"]]
    except (KeyError, TypeError, IndexError):
        return None


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None


def cells(row: Row) -> tuple[str, ...]:
    """The row as text, in the order of ``HEAD``."""
    if row.problem:
        return (row.sku, *("-" for _ in HEAD[2:]), row.problem.partition("\n")[0])
    return (
        row.sku,
        row.toolchain,
        row.cpu,
        row.flavor,
        ", ".join(row.providers),
        _mib(row.library),
        _mib(row.package),
        _mib(row.wheel),
        f"{row.glibc or '-'} ({row.glibc_floor})",
        _passed(row.gates_passed, row.gates_failed),
        _passed(row.checks_passed, row.checks_failed),
        "-" if row.compile_cpu_seconds is None else f"{row.compile_cpu_seconds:.0f}",
        "-" if row.compiled is None else f"{row.compiled} of {row.compiled + (row.cached or 0)}",
        {True: "yes", False: "no", None: "not built"}[row.current],
    )


HEAD = (
    "SKU",
    "toolchain",
    "CPU",
    "flavor",
    "providers",
    "library MiB",
    "package MiB",
    "wheel MiB",
    "glibc (floor)",
    "gates",
    "smoke",
    "compile CPU s",
    "compiled",
    "current",
)


def _mib(size: int | None) -> str:
    return "-" if size is None else f"{size / (1 << 20):.2f}"


def _passed(passed: int | None, failed: int | None) -> str:
    return "-" if passed is None or failed is None else f"{passed} of {passed + failed}"
