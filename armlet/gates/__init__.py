"""Checks on an artefact that fail the build. One table; docs/gates.md explains every entry."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from armlet.config import Resolved
from armlet.digest import of_file
from armlet.errors import ArmletError, Kind
from armlet.gates import arm32, hardening, shipping, symbols
from armlet.gates.base import Artefact, Expected, FileFacts, Gate, GateResult, Problem, Verdict
from armlet.gates.reading import archive, forbidden_prefixes, read_artefact, tarball, tree
from armlet.providers import rows

__all__ = [
    "GATES",
    "MODULE",
    "SUMS",
    "Artefact",
    "Expected",
    "FileFacts",
    "Gate",
    "GateResult",
    "Problem",
    "Verdict",
    "demand",
    "demand_intact",
    "evaluate",
    "expected_of",
    "judge_wheel",
    "record",
    "recorded",
    "run_gates",
    "runtime_name",
]

MODULE = "onnxruntime/capi/onnxruntime_pybind11_state.so"
"""The compiled part of upstream's Python package, by its path in the wheel."""

SUMS = "SHA256SUMS"
"""Beside the artefacts, in the form of ``sha256sum``."""

GATES: tuple[Gate, ...] = (*shipping.GATES, *arm32.GATES, *hardening.GATES, *symbols.GATES)

# glibc's own libraries (2.34 made most of them empty, older ones did not). Whatever else a rootfs must have is in the
# providers' rows.
_LIBC = frozenset({"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1"})

_MIB = 1 << 20


def run_gates(artefact: Artefact, gates: Sequence[Gate] = GATES) -> tuple[GateResult, ...]:
    """Every gate's answer, in the order of the table."""
    verdicts = ((gate.name, gate.check(artefact)) for gate in gates)
    return tuple(GateResult(name=name, measured=v.measured, problems=v.problems) for name, v in verdicts)


def judge_wheel(
    resolved: Resolved, wheel: Path, debug: Iterable[tuple[str, bytes | str]], *, forbidden: Sequence[str]
) -> tuple[GateResult, ...]:
    """Every gate's answer to a wheel; ``debug`` as ``read_artefact`` takes it.

    Raises:
        ArmletError: (GATE) it cannot be read, or has no module.
    """
    artefact = read_artefact(wheel_expected_of(resolved), archive(wheel), debug, forbidden=forbidden)
    return tuple(replace(result, of="wheel") for result in run_gates(artefact))


def demand(results: Iterable[GateResult]) -> None:
    """Refuses an artefact that a gate has something against.

    Raises:
        ArmletError: (GATE) it lists every problem of every gate, and each remedy once.
    """
    problems = [(result.name, problem) for result in results for problem in result.problems]
    if not problems:
        return
    failed = ", ".join(dict.fromkeys(name for name, _ in problems))
    listed = "".join(f"\n  {name}: {problem.what}" for name, problem in problems)
    raise ArmletError(
        f"the artefact does not pass: {failed}{listed}",
        hint="\n       ".join(dict.fromkeys(problem.hint for _, problem in problems)),
        kind=Kind.GATE,
    )


def record(results: Iterable[GateResult]) -> str:
    """The text of ``gates.json``: every gate, why it is there, and what was measured."""
    reasons = {gate.name: gate.reason for gate in GATES}
    rows = [
        {
            "name": result.name,
            "of": result.of,
            "reason": reasons[result.name],
            "measured": result.measured,
            "problems": [{"what": problem.what, "hint": problem.hint} for problem in result.problems],
        }
        for result in results
    ]
    return json.dumps({"schema": 1, "gates": rows}, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def recorded(path: Path) -> tuple[GateResult, ...]:
    """The answers that a build left in ``gates.json``: at once, where ``evaluate`` reads every byte again.

    Raises:
        ArmletError: (INPUT) the file is not there, or is another program's.
    """
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["gates"]
        return tuple(
            GateResult(
                name=row["name"],
                of=row.get("of", "runtime"),
                measured=row["measured"],
                problems=tuple(Problem(what=one["what"], hint=one["hint"]) for one in row["problems"]),
            )
            for row in rows
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ArmletError(
            "the gates' answers cannot be read" + (f": {error}" if isinstance(error, OSError) else ": it is damaged"),
            where=str(path),
            hint=f"build it again, which mends it: ./inv build --sku {path.parent.name}",
            kind=Kind.INPUT,
        ) from error


def runtime_name(resolved: Resolved) -> str:
    """Name of the runtime's top folder, and of its files beside: ``armlet-runtime-<sku>-<version>-<triple>``."""
    return f"armlet-runtime-{resolved.sku.name}-{resolved.source_set.version}-{resolved.toolchain.triple}"


def expected_of(resolved: Resolved) -> Expected:
    """What the gates hold a SKU's artefact against."""
    version = resolved.source_set.version
    loader = shipping.MACHINES[resolved.toolchain.arch].loader
    providers = rows(resolved.sku.runtime.providers)
    return Expected(
        library=f"lib/libonnxruntime.so.{version}",
        soname=f"libonnxruntime.so.{version.split('.')[0]}",
        arch=resolved.toolchain.arch,
        needed=_LIBC.union({loader}, *(row.rootfs for row in providers)),
        exports=frozenset(chain.from_iterable(row.exports for row in providers)),
        glibc=resolved.sku.floors.glibc,
        glibcxx=resolved.sku.floors.glibcxx if any(row.shared_cxx for row in providers) else None,
        budget=int(resolved.sku.budgets.library_mib * _MIB),
        foreign=frozenset(f"lib/{Path(path).name}" for one in resolved.components for path in one.ships),
    )


def wheel_expected_of(resolved: Resolved) -> Expected:
    """What the gates hold a SKU's wheel against."""
    return replace(
        expected_of(resolved),
        library=MODULE,
        soname="",
        exports=frozenset({"PyInit_onnxruntime_pybind11_state"}),
        from_host=("Py", "_Py"),
    )


def demand_intact(dist: Path) -> None:
    """Checks that the files of ``SHA256SUMS`` are all there is, and as the build wrote them; nothing where nothing was.

    What the smoke adds is not the build's.

    Raises:
        ArmletError: (GATE) it names the files that are gone or changed.
    """
    sums = dist / SUMS
    if not dist.is_dir():
        return
    try:
        wanted = [line.split("  ", 1) for line in sums.read_text(encoding="utf-8").splitlines()]
        listed = {name for _, name in wanted}
        if any(Path(name).name != name for name in listed):
            raise ValueError(SUMS)
        wrong = [name for sha256, name in wanted if not (dist / name).is_file() or of_file(dist / name) != sha256]
        wrong += sorted(path.name for path in dist.glob("*.whl") if path.name not in listed)
        if not listed:
            wrong.append(SUMS)
    except (OSError, ValueError):
        wrong = [SUMS]
    if wrong:
        raise ArmletError(
            f"not as the build left it: {', '.join(wrong)}",
            where=str(dist),
            hint=f"build it again, which mends it: ./inv build --sku {dist.name}",
            kind=Kind.GATE,
        )


def evaluate(dist: Path, resolved: Resolved, *, private: Sequence[Path] = ()) -> tuple[GateResult, ...]:
    """Judges the tarballs that ``dist/<sku>/`` holds now, byte for byte, and the folder where it holds something else.

    Args:
        dist: the SKU's output folder.
        private: folders that no file may name: the project, the cache, the home.

    Raises:
        ArmletError: (INPUT) the SKU was not built; (GATE) a file is damaged or missing.
    """
    name = runtime_name(resolved)
    packed, debug = dist / f"{name}.tar.xz", dist / f"{name}-dbg.tar.xz"
    if not packed.is_file():
        raise ArmletError(
            f"there is no runtime of {resolved.sku.name}",
            where=str(dist),
            hint=f"run: ./inv build --sku {resolved.sku.name}",
            kind=Kind.INPUT,
        )
    debug_files = tuple(tarball(debug)) if debug.is_file() else ()
    forbidden = forbidden_prefixes(*private)
    wheels = sorted(dist.glob("*.whl"))
    if not wheels and resolved.sku.runtime.python == "wheel":
        raise ArmletError(
            f"the wheel of {resolved.sku.name} is missing",
            where=str(dist),
            hint=f"build it again, which mends it: ./inv build --sku {resolved.sku.name}",
            kind=Kind.GATE,
        )
    of_wheels = tuple(
        result for wheel in wheels for result in judge_wheel(resolved, wheel, debug_files, forbidden=forbidden)
    )

    def judged(files: Mapping[str, bytes | str]) -> tuple[GateResult, ...]:
        return run_gates(read_artefact(expected_of(resolved), files.items(), debug_files, forbidden=forbidden))

    shipped, unpacked = dict(tarball(packed)), dict(tree(dist / name))
    results = judged(shipped)
    if not unpacked or unpacked == shipped or not all(result.ok for result in results):
        return results + of_wheels
    results = judged(unpacked)
    if all(result.ok for result in results):
        changed = [path for path in sorted({*shipped, *unpacked}) if shipped.get(path) != unpacked.get(path)]
        raise ArmletError(
            f"differs from {packed.name}: {', '.join(changed[:3])}{', ...' if changed[3:] else ''}",
            where=str(dist / name),
            hint=f"somebody changed one of them: remove {dist} and build again",
            kind=Kind.GATE,
        )
    return results + of_wheels
