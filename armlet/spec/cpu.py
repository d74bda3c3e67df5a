"""The CPU cores a SKU may name: ISA baseline, tuning, and the QEMU model that refuses what the core refuses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Arch = Literal["aarch64", "armhf"]
Feature = Literal["dotprod", "fp16", "bf16", "i8mm", "sve"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpu:
    """One core type.

    ``march`` is what GCC may use without asking at run time; ``features`` are the optional extensions the core has
    (Arm's technical reference manual of each core). Kernels for any other extension are left out of the build.
    """

    name: str
    arch: Arch
    march: str
    qemu: str
    features: frozenset[Feature] = frozenset()

    @property
    def flags(self) -> tuple[str, ...]:
        return (f"-march={self.march}", f"-mtune={self.name}")


_V8 = "armv8-a+crc+simd"
_V82_DOT: frozenset[Feature] = frozenset({"dotprod", "fp16"})

CPUS: dict[str, Cpu] = {
    cpu.name: cpu
    for cpu in (
        Cpu(name="cortex-a7", arch="armhf", march="armv7ve+simd", qemu="cortex-a7"),
        Cpu(name="cortex-a35", arch="aarch64", march=_V8, qemu="cortex-a35"),
        Cpu(name="cortex-a53", arch="aarch64", march=_V8, qemu="cortex-a53"),
        Cpu(name="cortex-a57", arch="aarch64", march=_V8, qemu="cortex-a57"),
        Cpu(name="cortex-a72", arch="aarch64", march=_V8, qemu="cortex-a72"),
        Cpu(
            name="cortex-a76",
            arch="aarch64",
            march="armv8.2-a+crc+simd+fp16+dotprod",
            qemu="cortex-a76",
            features=_V82_DOT,
        ),
    )
}
