"""Gates on what goes into the package: the right machine, nothing private, not too large, debuggable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from armlet.gates.base import Artefact, FileFacts, Gate, Problem, Verdict

_MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """How an architecture shows in an ELF header, and the loader and float ABI it goes with."""

    name: str
    bits: int
    little_endian: bool
    loader: str
    float_abi: Literal["hard", "soft", "aapcs64"]


MACHINES: dict[str, Machine] = {
    "armhf": Machine(name="EM_ARM", bits=32, little_endian=True, loader="ld-linux-armhf.so.3", float_abi="hard"),
    "aarch64": Machine(
        name="EM_AARCH64", bits=64, little_endian=True, loader="ld-linux-aarch64.so.1", float_abi="aapcs64"
    ),
}


def _says(name: str, bits: int, little_endian: bool) -> str:
    return f"{name.removeprefix('EM_')} {bits}-bit {'little' if little_endian else 'big'}-endian"


def _machine(artefact: Artefact) -> Verdict:
    wanted = MACHINES[artefact.expected.arch]
    expected = _says(wanted.name, wanted.bits, wanted.little_endian)
    count = 0
    problems = []
    for facts in artefact.every_file():
        if facts.elf is None:
            continue
        count += 1
        found = _says(facts.elf.machine, facts.elf.bits, facts.elf.little_endian)
        if found != expected:
            problems.append(
                Problem(
                    what=f"{facts.path}: is for {found}, the toolchain makes {expected}",
                    hint="a tool of the build machine, or its output, got into the package: find which step wrote it",
                )
            )
    return Verdict(measured=f"{expected}, {count} files", problems=tuple(problems))


def _build_paths(artefact: Artefact) -> Verdict:
    problems = [
        Problem(
            what=f"{facts.path}: names a place of the machine that built it: {leak}",
            hint="compile with -ffile-prefix-map for every folder of the build",
        )
        for facts in artefact.every_file()
        for leak in facts.leaks
    ]
    return Verdict(measured=f"{len(problems)} found", problems=tuple(problems))


def _size(artefact: Artefact) -> Verdict:
    size, budget = artefact.library.size, artefact.expected.budget
    beside = "".join(
        f"; {path.rpartition('/')[2]} {artefact.files[path].size / _MIB:.2f} MiB"
        for path in sorted(artefact.expected.foreign & artefact.files.keys())
    )
    measured = f"{size / _MIB:.2f} MiB (at most {budget / _MIB:.2f}){beside}"
    if size <= budget:
        return Verdict(measured=measured)
    problem = Problem(
        what=f"{artefact.expected.library}: has {size:,} bytes, {size - budget:,} more than its budget",
        hint="allow fewer operators or opsets, or raise budgets.library_mib",
    )
    return Verdict(measured=measured, problems=(problem,))


def _debug(artefact: Artefact) -> Verdict:
    path, elf = artefact.expected.library, artefact.library_elf
    problems = [
        Problem(
            what=f"{file}: is not stripped", hint="strip it with objcopy --strip-unneeded after keeping its debug data"
        )
        for file, facts in artefact.elf_files()
        if not facts.stripped
    ]
    if elf.build_id is None:
        problems.append(Problem(what=f"{path}: has no build id", hint="link with -Wl,--build-id=sha1"))
    else:
        problems += _debug_file_problems(artefact, elf.build_id)
    return Verdict(measured=f"build id {elf.build_id or 'missing'}", problems=tuple(problems))


def _debug_file_problems(artefact: Artefact, build_id: str) -> list[Problem]:
    path, link = artefact.expected.library, artefact.library_elf.debug_link
    if link is None:
        return [Problem(what=f"{path}: names no debug file", hint="add one with objcopy --add-gnu-debuglink")]
    file = _named(artefact, link)
    if file is None or file.elf is None:
        return [
            Problem(what=f"{path}: its debug file {link} is missing", hint="keep one with objcopy --only-keep-debug")
        ]
    if file.elf.build_id != build_id:
        return [
            Problem(
                what=f"{file.path}: has build id {file.elf.build_id or 'none'}, the library has {build_id}",
                hint="both must come from one link: remove the output and build again",
            )
        ]
    if not file.elf.debug_sections:
        return [Problem(what=f"{file.path}: holds no debug data", hint="compile with -g1 or more, link without -s")]
    return []


def _named(artefact: Artefact, name: str) -> FileFacts | None:
    return next((f for path, f in sorted(artefact.debug.items()) if path.rsplit("/", 1)[-1] == name), None)


GATES: tuple[Gate, ...] = (
    Gate(
        name="machine",
        reason="One file of the build machine in the package fails at the customer's, not here.",
        check=_machine,
    ),
    Gate(
        name="paths",
        reason="Paths of the build machine make builds differ from place to place and tell strangers about it.",
        check=_build_paths,
    ),
    Gate(
        name="size",
        reason="Flash is small, and a library that grows unseen is found when an update no longer fits.",
        check=_size,
    ),
    Gate(
        name="debug",
        reason="Symbols take space on the device, and a crash report is worthless without the matching debug file.",
        check=_debug,
    ),
)
