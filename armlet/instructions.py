"""Instructions that not every core of an architecture has: where a library holds them, and who asks the core first.

A library may hold code for newer cores than the SKU's as long as nothing of it runs unasked. ``DISPATCHED`` names the
sources that are meant: every instruction beyond the baseline has to come from one of them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from armlet.spec.cpu import Arch, Cpu

_LINE = re.compile(r"\s*([0-9a-f]+):\t([a-z][a-z0-9.]*)(?:\t(.*))?")

# Mnemonics by extension, as GNU objdump writes them. A baseline names what it has; all others are beyond it.
_AARCH64 = {
    "dotprod": r"[su]dot",
    "i8mm": r"[su]mmla|usmmla|usdot|sudot",
    "bf16": r"bf(dot|mmla|mlal[bt]?|cvtn?2?)",
    "fhm": r"fml[as]l2?",
    "lse": r"(cas|swp)p?[al]*[bh]?|(ld|st)(add|clr|eor|set|[su]max|[su]min)[al]*[bh]?",
    "rdm": r"sqrdml[as]h",
    "rcpc": r"ldapu?r[a-z]*",
    "jscvt": r"fjcvtzs",
    "fcma": r"fcmla|fcadd",
    "pauth": r"(pac|aut)[id][ab]|reta[ab]|brl?a[ab]z?|ldra[ab]",
    "crypto": r"aes\w+|sha\d\w*|sm[34]\w*|pmull2?",
    "sve": r"ptrue|whilel[to]|ld1[bhwd]|st1[bhwd]|cnt[bhwd]|rdvl|addvl|inc[bhwd]|smstart|smstop|zero",
}
_ARM = {
    "vfpv4": r"vfn?m[as]",
    "div": r"[su]div",
    "v8": r"vrint\w|v(max|min)nm|vcvt[amnp]|vsel\w\w|(lda|stl)(ex)?[bhd]?|crc32\w+|sevl",
    "dotprod": r"v[su]dot",
    "i8mm": r"v(us|s|u)mmla|v(us|su)dot",
    "bf16": r"vdot|vmmla|vfma[bt]",
    "crypto": r"aes\w+|sha\d\w*",
    "rdm": r"vqrdml[as]h",
}
_HALF = {
    "aarch64": re.compile(r"f(?!cvt((l|n|xn)2?)?\t)\w+\t.*\b(v\d+\.[48]?h\b|h\d+)"),
    "armhf": re.compile(r"v(?!cvt[bt]?\.)\w+\.f16\b"),
}
"""Arithmetic in half precision. Conversions from and to single precision are older."""
_KINDS: Mapping[Arch, Mapping[str, re.Pattern[str]]] = {
    "aarch64": {name: re.compile(pattern) for name, pattern in _AARCH64.items()},
    "armhf": {name: re.compile(pattern) for name, pattern in _ARM.items()},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatched:
    """Objects (patterns of the whole file name) whose code of some extensions runs only where the core was asked."""

    objects: str
    extensions: frozenset[str]
    asked: str
    """Where the question is, and of whom."""


def _row(objects: str, extensions: str, asked: str) -> Dispatched:
    return Dispatched(objects=objects, extensions=frozenset(extensions.split()), asked=asked)


_MLAS = "core/mlas/lib/platform.cpp, MLAS_PLATFORM's constructor: cpuinfo"
_NBITS = "core/mlas/lib/qnbitgemm_kernel_neon.cpp, where a kernel is chosen: cpuinfo"
_XNNPACK = "xnnpack/src/configs/*.c, once when the provider is made: cpuinfo"
DISPATCHED: tuple[Dispatched, ...] = (
    _row(r"(QgemmU8X8KernelUdot|QgemmS8S8KernelSdot|SymQgemmS8KernelSdot(Ld64)?)\.S\.o", "dotprod", _MLAS),
    _row(r"ConvSym[SU]8KernelDot(Ld64)?\.S\.o", "dotprod", _MLAS),
    _row(r"(QgemmU8X8KernelUmmla|QgemmS8S8KernelSmmla)\.S\.o", "i8mm", _MLAS),
    _row(r"(SbgemmKernelNeon\.S|sbgemm_kernel_neon\.cpp)\.o", "bf16", "core/providers/cpu/math/matmul.cc: cpuinfo"),
    _row(r"sqnbitgemm_kernel_neon_int8\.cpp\.o", "dotprod", _NBITS),
    _row(r".*-neonfma(-.*)?\.[cS]\.o", "vfpv4", _XNNPACK),
    _row(r".*(-|_)neonv8(-.*)?\.[cS]\.o", "v8", _XNNPACK),
    _row(r".*-neondot(-.*)?\.[cS]\.o", "dotprod v8 fp16", _XNNPACK),
    _row(r".*-neoni8mm(-.*)?\.[cS]\.o", "i8mm v8", _XNNPACK),
    _row(r".*(-|_)(neon)?fp16arith(-.*)?\.[cS]\.o", "fp16 v8", _XNNPACK),
    # What GCC links by itself: atomic operations (-moutline-atomics), and unwinding.
    _row(
        r"(cas|swp|ldadd|ldclr|ldeor|ldset)_\d+_\d+\.o",
        "lse",
        "libgcc's __aarch64_have_lse_atomics: the kernel's hwcap",
    ),
    _row(r"unwind-dw2(_s)?\.o", "sve", "only for a frame that says it has SVE's registers"),
)


def baseline(cpu: Cpu) -> frozenset[str]:
    """The extensions of this module's tables that code for the core may use unasked."""
    words = set(cpu.march.replace("neon-vfpv4", "neon+vfpv4").split("+")[1:]) | set(cpu.features)
    return frozenset(words | ({"lse", "rdm"} if cpu.march.startswith("armv8.2") else set()))


def beyond(disassembly: Iterable[str], cpu: Cpu) -> Iterator[tuple[int, str, str]]:
    """Address, mnemonic and extension of every instruction that code for the core may not use unasked.

    Args:
        disassembly: lines of ``objdump --disassemble --no-show-raw-insn``.
    """
    has, half = baseline(cpu), _HALF[cpu.arch]
    kinds = {name: pattern for name, pattern in _KINDS[cpu.arch].items() if name not in has}
    known: dict[str, str | None] = {}
    for line in disassembly:
        found = _LINE.match(line)
        if found is None:
            continue
        mnemonic = found[2].partition(".")[0]
        if mnemonic not in known:
            known[mnemonic] = next((name for name, pattern in kinds.items() if pattern.fullmatch(mnemonic)), None)
        extension = known[mnemonic]
        if extension is None and "fp16" not in has and mnemonic[0] in "fv" and half.match(f"{found[2]}\t{found[3]}"):
            extension = "fp16"
        if extension is not None:
            yield int(found[1], 16), found[2], extension


def unasked(
    instructions: Iterable[tuple[int, str, str]], owners: Sequence[tuple[int, int, str]]
) -> dict[str, Counter[str]]:
    """Object -> extension -> how many instructions of it ``DISPATCHED`` does not account for.

    Args:
        instructions: as :func:`beyond` yields them.
        owners: start, size and object of every piece of code, by start.
    """
    starts = [start for start, _, _ in owners]
    found: dict[str, Counter[str]] = {}
    for address, _, extension in instructions:
        index = bisect_right(starts, address) - 1
        start, size, owner = owners[index] if index >= 0 else (0, 0, "")
        name = owner if address < start + size else f"nothing that the map knows at {address:#x}"
        if not any(extension in row.extensions and re.fullmatch(row.objects, name) for row in DISPATCHED):
            found.setdefault(name, Counter())[extension] += 1
    return found
