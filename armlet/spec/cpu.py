"""The CPU cores a SKU may name: ISA baseline, tuning, and the QEMU model that refuses what the core refuses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Arch = Literal["aarch64", "armhf"]
Feature = Literal["dotprod", "fp16", "bf16", "i8mm", "sve"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpu:
    """One core type.

    ``march`` is what GCC may use without asking at run time, and never more than QEMU's model has: what no test can run
    is not taken for granted. ``features`` are the optional extensions that kernels are compiled for (Arm's technical
    reference manual of each core, as far as that model goes). XNNPACK's and half-precision kernels for any other are
    left out; MLAS's int8 kernels are all there, and chosen at run time.
    """

    name: str
    arch: Arch
    march: str
    qemu: str
    """QEMU's model of the core, or of an older one where QEMU's user mode has none of this."""
    mtune: str = ""
    """GCC's name of the core, where it is not ``name``."""
    features: frozenset[Feature] = frozenset()

    @property
    def flags(self) -> tuple[str, ...]:
        return (f"-march={self.march}", f"-mtune={self.mtune or self.name}")


# Debian's armhf alone would promise VFPv3-D16 and no NEON. Integer division, which the older cores lack, stays out.
_V7_NEON = "armv7-a+neon"
_V7 = "armv7-a+neon-vfpv4"
_V8 = "armv8-a+crc+simd"
_V82 = "armv8.2-a+crc+simd+fp16+dotprod"
_V82_DOT: frozenset[Feature] = frozenset({"dotprod", "fp16"})

CPUS: dict[str, Cpu] = {
    cpu.name: cpu
    for cpu in (
        Cpu(name="cortex-a8", arch="armhf", march=_V7_NEON, qemu="cortex-a8"),
        Cpu(name="cortex-a9", arch="armhf", march=_V7_NEON, qemu="cortex-a9"),
        Cpu(name="cortex-a7", arch="armhf", march=_V7, qemu="cortex-a7"),
        Cpu(name="cortex-a15", arch="armhf", march=_V7, qemu="cortex-a15"),
        Cpu(name="cortex-a17", arch="armhf", march=_V7, qemu="cortex-a15"),
        # 64-bit cores in 32-bit mode, and one that has no other. QEMU's 32-bit user mode knows none of them: the A7 has
        # all that _V7 asks for.
        Cpu(name="cortex-a32", arch="armhf", march=_V7, qemu="cortex-a7"),
        Cpu(name="cortex-a53-aarch32", arch="armhf", march=_V7, mtune="cortex-a53", qemu="cortex-a7"),
        Cpu(name="cortex-a35", arch="aarch64", march=_V8, qemu="cortex-a35"),
        Cpu(name="cortex-a53", arch="aarch64", march=_V8, qemu="cortex-a53"),
        Cpu(name="cortex-a57", arch="aarch64", march=_V8, qemu="cortex-a57"),
        Cpu(name="cortex-a72", arch="aarch64", march=_V8, qemu="cortex-a72"),
        Cpu(name="cortex-a73", arch="aarch64", march=_V8, qemu="cortex-a72"),
        Cpu(name="cortex-a55", arch="aarch64", march=_V82, qemu="cortex-a76", features=_V82_DOT),
        Cpu(name="cortex-a65", arch="aarch64", march=_V82, qemu="cortex-a76", features=_V82_DOT),
        Cpu(name="cortex-a75", arch="aarch64", march=_V82, qemu="cortex-a76", features=_V82_DOT),
        Cpu(name="cortex-a76", arch="aarch64", march=_V82, qemu="cortex-a76", features=_V82_DOT),
        Cpu(name="cortex-a77", arch="aarch64", march=_V82, qemu="cortex-a76", features=_V82_DOT),
        # GCC 10 has no name for the A78; 12 and 14 tune both alike.
        Cpu(name="cortex-a78", arch="aarch64", march=_V82, mtune="cortex-a76", qemu="cortex-a76", features=_V82_DOT),
        Cpu(name="neoverse-n1", arch="aarch64", march=_V82, qemu="neoverse-n1", features=_V82_DOT),
        # These also have bfloat16, int8 matrix products and SVE, which QEMU 7.2 has in no model but one for everything.
        # Tuned by a name that GCC 10 has too.
        Cpu(name="cortex-a510", arch="aarch64", march=_V82, mtune="cortex-a55", qemu="cortex-a76", features=_V82_DOT),
        Cpu(name="cortex-a710", arch="aarch64", march=_V82, mtune="cortex-a76", qemu="cortex-a76", features=_V82_DOT),
        Cpu(name="neoverse-v1", arch="aarch64", march=_V82, mtune="neoverse-n1", qemu="neoverse-n1", features=_V82_DOT),
        Cpu(name="neoverse-n2", arch="aarch64", march=_V82, mtune="neoverse-n1", qemu="neoverse-n1", features=_V82_DOT),
        Cpu(name="neoverse-v2", arch="aarch64", march=_V82, mtune="neoverse-n1", qemu="neoverse-n1", features=_V82_DOT),
    )
}

_MARCH = re.compile(r"armv(\d+)(?:\.(\d+))?[a-z-]*((?:\+[a-z0-9-]+)*)")


def runs_on(march: str, baseline: str) -> bool:
    """Whether code compiled with GCC's ``-march=<march>`` may run wherever that for ``baseline`` does."""
    (version, extensions), (known, allowed) = _parts(march), _parts(baseline)
    return version <= known and extensions <= allowed


def _parts(march: str) -> tuple[tuple[int, int], frozenset[str]]:
    found = _MARCH.fullmatch(march)
    if found is None:
        # A form that nobody has met yet is taken for the newest there is.
        return (99, 0), frozenset()
    return (int(found[1]), int(found[2] or 0)), frozenset(found[3].split("+")) - {""}
