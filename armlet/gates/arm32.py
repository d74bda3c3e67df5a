"""Gates on what 32-bit ARM files say of themselves (``.ARM.attributes``, Arm's ABI addenda)."""

from __future__ import annotations

from collections.abc import Callable

from armlet.elf import ElfFacts
from armlet.gates.base import Artefact, Gate, Problem, Verdict

_HARD_FLOAT = 0x400
"""``EF_ARM_ABI_FLOAT_HARD`` in ``e_flags``: linkers set it in executables and libraries alone, not in objects."""
_IN_REGISTERS = 1
_ARM = "EM_ARM"


def _float_abi(artefact: Artefact) -> Verdict:
    return _each(
        artefact,
        "hard",
        passes=lambda elf: (
            bool(elf.flags & _HARD_FLOAT) and elf.arm_attributes.get("TAG_ABI_VFP_ARGS") == _IN_REGISTERS
        ),
        what="passes floating-point arguments in core registers (soft float)",
        hint="compile every file with -mfloat-abi=hard; a soft-float rootfs needs another toolchain",
    )


def _neon(artefact: Artefact) -> Verdict:
    return _each(
        artefact,
        "NEON",
        passes=lambda elf: bool(elf.arm_attributes.get("TAG_ADVANCED_SIMD_ARCH")),
        what="was compiled without NEON",
        hint="name a core with NEON in the SKU: the kernels are many times slower without, and untested",
    )


def _each(artefact: Artefact, word: str, *, passes: Callable[[ElfFacts], bool], what: str, hint: str) -> Verdict:
    files = [(path, elf) for path, elf in artefact.elf_files() if elf.machine == _ARM]
    return Verdict(
        measured=f"{word}, {len(files)} files" if files else "not 32-bit ARM",
        problems=tuple(Problem(what=f"{path}: {what}", hint=hint) for path, elf in files if not passes(elf)),
    )


GATES: tuple[Gate, ...] = (
    Gate(
        name="float",
        reason="A soft-float library in a hard-float rootfs does not load, or takes arguments from the wrong place.",
        check=_float_abi,
    ),
    Gate(
        name="neon",
        reason="32-bit ARM may come without vectors, and then silently runs the slowest kernels there are.",
        check=_neon,
    ),
)
