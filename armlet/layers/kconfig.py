"""What a runtime asks of a root file system, in Buildroot's words: of the core, and of the toolchain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from armlet.elf import ElfFacts
from armlet.errors import ArmletError, Kind
from armlet.spec.base import version_key
from armlet.spec.cpu import CPUS
from armlet.spec.runtime import RuntimeManifest

# arch/Config.in.arm: the symbols that cores select. A symbol that an older Buildroot does not have counts as "n".
_HARD_FLOAT = ("BR2_arm", "BR2_ARM_EABIHF", "BR2_ARM_CPU_HAS_NEON")
_V82_CORES = (
    *("BR2_cortex_a55", "BR2_cortex_a75", "BR2_cortex_a75_a55", "BR2_cortex_a76", "BR2_cortex_a76_a55"),
    *("BR2_cortex_a78", "BR2_neoverse_n1", "BR2_neoverse_v1", "BR2_ARM_CPU_ARMV9A"),
)
CONDITIONS: Mapping[str, tuple[str, ...]] = {
    "armv7-a+neon": _HARD_FLOAT,
    # FP-ARMv8 is more than VFPv4, and selects it in newer releases alone.
    "armv7-a+neon-vfpv4": (*_HARD_FLOAT, "BR2_ARM_CPU_HAS_VFPV4 || BR2_ARM_CPU_HAS_FP_ARMV8"),
    # The one core of Buildroot's that GCC has no CRC instructions for.
    "armv8-a+crc+simd": ("BR2_aarch64", "!BR2_xgene1"),
    "armv8.2-a+crc+simd+fp16+dotprod": ("BR2_aarch64", " || \\\n\t\t".join(_V82_CORES)),
}
"""GCC's -march of a runtime -> what a target must be to run it."""

_TOOLCHAIN = ("BR2_TOOLCHAIN_HAS_THREADS", "!BR2_STATIC_LIBS")
_BY_LIBRARY: Mapping[str, str] = {
    "libc.so.6": "BR2_TOOLCHAIN_USES_GLIBC",
    "libstdc++.so.6": "BR2_INSTALL_LIBSTDCPP",
}
"""Soname that the library asks for -> the toolchain that has it; musl and uClibc have another name for theirs."""
_WORDS: Mapping[str, str] = {
    "BR2_TOOLCHAIN_USES_GLIBC": "glibc",
    "BR2_INSTALL_LIBSTDCPP": "C++",
    "BR2_TOOLCHAIN_HAS_THREADS": "threads",
    "!BR2_STATIC_LIBS": "dynamic library",
}
_LOADERS = "ld-linux"
_VERSIONS = ("GLIBC_", "GLIBCXX_", "CXXABI_", "GCC_")
_CORES = frozenset(
    (
        *("cortex-a7", "cortex-a8", "cortex-a9", "cortex-a15", "cortex-a17", "cortex-a32", "cortex-a35", "cortex-a53"),
        *("cortex-a55", "cortex-a57", "cortex-a72", "cortex-a73", "cortex-a75", "cortex-a76", "cortex-a78"),
        *("cortex-a710", "neoverse-n1", "neoverse-n2", "neoverse-v1", "neoverse-v2"),
    )
)
"""Those that Buildroot has a choice for, BR2_<core>."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """QEMU's machine "virt" with a SKU's core."""

    arch: str
    """As QEMU's system emulators are called."""
    cpu: str
    """QEMU's model."""
    image: str
    """The kernel's file in Buildroot's folder of images."""
    lines: tuple[str, ...]
    """Of a defconfig: architecture and core."""
    kernel: tuple[str, ...]


def conditions(manifest: RuntimeManifest) -> tuple[str, ...]:
    """Each must hold.

    Raises:
        ArmletError: (BUILD) no condition is known for the instructions that the runtime is compiled for.
    """
    isa = manifest.target.isa
    if isa not in CONDITIONS:
        hint = "add a row to the table of armlet/layers/kconfig.py"
        raise ArmletError(f"no condition of Buildroot's is known for {isa}", hint=hint, kind=Kind.BUILD)
    libraries = [_BY_LIBRARY[name] for name in sorted(manifest.requires.libraries) if name in _BY_LIBRARY]
    return (*CONDITIONS[isa], *libraries, *_TOOLCHAIN)


def in_words(manifest: RuntimeManifest) -> str:
    """What a target has to have, for a line that is shown where it has not."""
    words = [_WORDS[condition] for condition in conditions(manifest) if condition in _WORDS]
    float_abi = ", hard-float EABI" if manifest.target.float_abi == "hard" else ""
    return f"{manifest.target.isa}{float_abi}, a toolchain w/ {', '.join(words)}"


def asks(elves: Sequence[ElfFacts]) -> tuple[str, ...]:
    """``library:version`` of the newest versions of symbols that each library of the target has to define."""
    own = {elf.soname for elf in elves}
    found = set()
    for name in sorted({name for elf in elves for name in elf.needed} - own):
        # The loader is a part of the C library, whose version is asked for.
        if name.startswith(_LOADERS):
            continue
        asked = {one for elf in elves for one in elf.versions.get(name, ())}
        newest = [_newest(asked, prefix) for prefix in _VERSIONS]
        found |= {f"{name}:{version}" for version in newest if version} or {f"{name}:"}
    return tuple(sorted(found))


def machine(manifest: RuntimeManifest) -> Machine:
    """What a defconfig names to try the runtime in emulation."""
    core = manifest.target.cpu.removesuffix("-aarch32")
    chosen = (f"BR2_{core.replace('-', '_')}=y",) if core in _CORES else ()
    qemu = CPUS[manifest.target.cpu].qemu
    if manifest.target.arch == "aarch64":
        return Machine(
            arch="aarch64",
            cpu=qemu,
            image="Image",
            lines=("BR2_aarch64=y", *(chosen or ("BR2_cortex_a76=y",))),
            kernel=(
                "BR2_LINUX_KERNEL_USE_CUSTOM_CONFIG=y",
                'BR2_LINUX_KERNEL_CUSTOM_CONFIG_FILE="board/qemu/aarch64-virt/linux.config"',
            ),
        )
    # Where a core may have NEON and VFP, it has to be said that it has them.
    optional = ("BR2_ARM_ENABLE_NEON=y", "BR2_ARM_ENABLE_VFP=y") if core == "cortex-a9" else ()
    return Machine(
        arch="arm",
        cpu=qemu,
        image="zImage",
        lines=("BR2_arm=y", *chosen, *optional, "BR2_ARM_EABIHF=y"),
        kernel=('BR2_LINUX_KERNEL_DEFCONFIG="multi_v7"',),
    )


def _newest(asked: Iterable[str], prefix: str) -> str | None:
    numbers = [one.removeprefix(prefix) for one in asked if one.startswith(prefix)]
    plain = [one for one in numbers if one.replace(".", "").isdigit()]
    return prefix + max(plain, key=version_key) if plain else None
