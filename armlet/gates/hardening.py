"""Gates on what the loader and the kernel will let an attacker do."""

from __future__ import annotations

from armlet.elf import ElfFacts
from armlet.gates.base import Artefact, Gate, Problem, Verdict


def _linked(artefact: Artefact) -> list[tuple[str, ElfFacts]]:
    """Files that a linker made; object files have no segments to judge."""
    return [(path, elf) for path, elf in artefact.elf_files() if elf.type in ("ET_DYN", "ET_EXEC")]


def _executable_stack(artefact: Artefact) -> Verdict:
    problems = [
        Problem(
            what=f"{path}: its stack is executable (PT_GNU_STACK is {elf.stack_flags or 'missing'})",
            hint="link with -Wl,-z,noexecstack, and give assembler sources a .note.GNU-stack section",
        )
        for path, elf in _linked(artefact)
        if elf.stack_flags is None or "X" in elf.stack_flags
    ]
    return Verdict(measured=artefact.library_elf.stack_flags or "missing", problems=tuple(problems))


def _relro(artefact: Artefact) -> Verdict:
    problems = [
        Problem(
            what=f"{path}: RELRO is {elf.relro}: its relocated tables stay writable",
            hint="link with -Wl,-z,relro -Wl,-z,now",
        )
        for path, elf in _linked(artefact)
        if elf.relro != "full" and not (elf.relro == "partial" and path in artefact.expected.foreign)
    ]
    others = "".join(
        f"; {path.rpartition('/')[2]} {elf.relro}"
        for path, elf in _linked(artefact)
        if path in artefact.expected.foreign
    )
    return Verdict(measured=artefact.library_elf.relro + others, problems=tuple(problems))


def _writable_code(artefact: Artefact) -> Verdict:
    problems = [
        Problem(
            what=f"{path}: the segment at {address} is writable and executable",
            hint="look for a linker script or -Wl,-N / --omagic among the link flags",
        )
        for path, elf in _linked(artefact)
        for address in elf.writable_code
    ]
    return Verdict(measured=f"{len(problems)} W+X segments", problems=tuple(problems))


def _search_path(artefact: Artefact) -> Verdict:
    problems = [
        Problem(
            what=f"{path}: RPATH/RUNPATH is {':'.join(elf.search_paths)}",
            hint="drop -rpath from the link flags and set CMAKE_SKIP_RPATH=ON: the rootfs decides where libraries are",
        )
        for path, elf in artefact.elf_files()
        if elf.search_paths
    ]
    return Verdict(measured=":".join(artefact.library_elf.search_paths) or "none", problems=tuple(problems))


def _text_relocations(artefact: Artefact) -> Verdict:
    problems = [
        Problem(
            what=f"{path}: needs relocations in its code, which then has to be writable while loading",
            hint="compile every object with -fPIC and link with -Wl,-z,text, which names the culprit",
        )
        for path, elf in artefact.elf_files()
        if elf.text_relocations
    ]
    return Verdict(measured="none" if not problems else "present", problems=tuple(problems))


GATES: tuple[Gate, ...] = (
    Gate(
        name="stack",
        reason="An executable stack turns an overflow into running code; without the header, old kernels give one.",
        check=_executable_stack,
    ),
    Gate(
        name="relro",
        reason="Function tables that stay writable after loading can be overwritten to redirect calls.",
        check=_relro,
    ),
    Gate(
        name="nx",
        reason="Memory that is both writable and executable lets written data run as code.",
        check=_writable_code,
    ),
    Gate(
        name="rpath",
        reason="A search path inside the file overrides the rootfs and may lead to a place that anybody can write to.",
        check=_search_path,
    ),
    Gate(
        name="textrel",
        reason="Relocated code cannot be shared between processes and is writable while it loads; SELinux refuses it.",
        check=_text_relocations,
    ),
)
