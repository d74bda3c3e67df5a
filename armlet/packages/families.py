"""What distributions call architectures, folders and libraries. No name here is a guess: each table has its source."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from armlet.elf import ElfFacts
from armlet.errors import ArmletError, Kind
from armlet.nfpm import PackageFormat
from armlet.package_versions import at_least
from armlet.spec.base import NAME, version_key

Ipk = Literal["openwrt", "yocto"]
IPK: tuple[Ipk, ...] = get_args(Ipk)

_GLIBC = ("libc.so.6", "libm.so.6", "ld-linux-aarch64.so.1", "ld-linux-armhf.so.3")
_ONCE_APART = ("libdl.so.2", "libpthread.so.0", "librt.so.1")
"""glibc's too; what they held is in libc.so.6 since 2.34."""
_LIBSTDCXX, _LIBGCC = "libstdc++.so.6", "libgcc_s.so.1"

# The packages' shlibs and symbols files in Debian 11 to 13.
_DEBIAN = {**dict.fromkeys((*_GLIBC, *_ONCE_APART), "libc6"), _LIBSTDCXX: "libstdc++6", _LIBGCC: "libgcc-s1"}
# OpenEmbedded-Core: classes/debian.bbclass names packages after what they hold, as recipes-core/glibc and
# recipes-devtools/gcc do.
_YOCTO = {**_DEBIAN, _LIBGCC: "libgcc1"}
# OpenWrt: package/libs/toolchain/Makefile; the number behind a name is its ABI_VERSION. Its usual C library, musl,
# cannot run what is made for glibc: that one's version, 1.2, is below any floor, so the package is not installed.
_OPENWRT = {
    **dict.fromkeys((*_GLIBC, "libdl.so.2"), "libc"),
    "libpthread.so.0": "libpthread",
    "librt.so.1": "librt",
    _LIBSTDCXX: "libstdcpp6",
    _LIBGCC: "libgcc1",
}
# What abuild and melange write: "so:" and the name. That has no versions of symbols, so the package tells the floor, as
# Wolfi names it (wolfi-dev/os, glibc.yaml); Alpine, whose C library is musl, rightly has none.
_APK_LIBC = "glibc"

# GCC's libstdc++ manual, "ABI Policy and Guidelines": newest symbol version -> the first release that has it.
_GCC = {
    "3.4.22": "6.1",
    "3.4.23": "7.1",
    "3.4.24": "7.2",
    "3.4.25": "8.1",
    "3.4.26": "9.1",
    "3.4.27": "9.2",
    "3.4.28": "9.3",
    "3.4.29": "11.1",
    "3.4.30": "12.1",
    "3.4.31": "13.1",
    "3.4.32": "13.2",
    "3.4.33": "14.1",
    "3.4.34": "15.1",
}

# target/linux/*/ and include/target.mk of OpenWrt: ARCH_PACKAGES.
_OPENWRT_CORES = {
    "cortex-a7": "arm_cortex-a7_neon-vfpv4",
    "cortex-a8": "arm_cortex-a8_vfpv3",
    "cortex-a9": "arm_cortex-a9_neon",
    "cortex-a15": "arm_cortex-a15_neon-vfpv4",
    "cortex-a53": "aarch64_cortex-a53",
    "cortex-a72": "aarch64_cortex-a72",
    "cortex-a76": "aarch64_cortex-a76",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a format's distributions have libraries, and what they call the architecture."""

    arch: str
    libraries: str


_PLACES: Mapping[tuple[PackageFormat, str], Place] = {
    ("deb", "aarch64"): Place(arch="arm64", libraries="/usr/lib/aarch64-linux-gnu"),
    ("deb", "armhf"): Place(arch="armhf", libraries="/usr/lib/arm-linux-gnueabihf"),
    ("rpm", "aarch64"): Place(arch="aarch64", libraries="/usr/lib64"),
    ("rpm", "armhf"): Place(arch="armv7hl", libraries="/usr/lib"),
    ("apk", "aarch64"): Place(arch="aarch64", libraries="/usr/lib"),
    ("apk", "armhf"): Place(arch="armv7", libraries="/usr/lib"),
}


def place(kind: PackageFormat, arch: str, core: str, ipk: Ipk = "openwrt", ipk_arch: str = "") -> Place:
    """Of a format, an architecture and a core as SKUs name them.

    Raises:
        ArmletError: (INPUT) OpenWrt has no name for the core, or the one that is given is none.
    """
    if kind != "ipk":
        return _PLACES[kind, arch]
    if ipk_arch and not re.fullmatch(NAME, ipk_arch):
        hint = "opkg print-architecture, on the device, lists those that it takes"
        raise ArmletError(f"{ipk_arch!a} is no architecture's name", hint=hint, kind=Kind.INPUT)
    return Place(arch=ipk_arch or (_openwrt(arch, core) if ipk == "openwrt" else _yocto(arch)), libraries="/usr/lib")


def depends(kind: PackageFormat, elves: Iterable[ElfFacts], ipk: Ipk = "openwrt") -> tuple[str, ...]:
    """What these files need of a distribution, with the oldest version that has it.

    Raises:
        ArmletError: (BUILD) they need a library that the format's table does not know.
    """
    files = list(elves)
    own = {elf.soname for elf in files}
    needed = sorted({name for elf in files for name in elf.needed} - own)
    if kind == "rpm":
        return _capabilities(files, own)
    if kind == "apk":
        floor = _newest(files, "GLIBC_")
        libc = (at_least(kind, _APK_LIBC, floor),) if floor else ()
        return (*libc, *(f"so:{name}" for name in needed))
    names = _DEBIAN if kind == "deb" else {"openwrt": _OPENWRT, "yocto": _YOCTO}[ipk]
    if unknown := [name for name in needed if name not in names]:
        raise ArmletError(
            f"no {kind} is known that has {', '.join(unknown)}",
            hint="add a row to the tables of armlet/packages/families.py, with its source",
            kind=Kind.BUILD,
        )
    floors = {names[_GLIBC[0]]: _newest(files, "GLIBC_")}
    if kind == "deb" or ipk == "yocto":
        floors |= {names[_LIBSTDCXX]: _compiler(files), names[_LIBGCC]: _newest(files, "GCC_")}
    packages = sorted({names[name] for name in needed})
    return tuple(at_least(kind, name, floor) if (floor := floors.get(name)) else name for name in packages)


def provides(kind: PackageFormat, elves: Iterable[ElfFacts], version: str) -> tuple[str, ...]:
    """What others may need of these files, beyond the package's name."""
    found = {elf.soname: elf for elf in elves if elf.soname}
    if kind == "apk":
        return tuple(f"so:{name}={version}" for name in sorted(found))
    if kind == "rpm":
        versions = {name: sorted({one.version for one in elf.exports if one.version}) for name, elf in found.items()}
        return tuple(f"{name}({one}){_bits(found[name])}" for name in sorted(found) for one in ("", *versions[name]))
    return ()


def _capabilities(files: list[ElfFacts], own: set[str | None]) -> tuple[str, ...]:
    """As rpm's own generator (elfdeps) writes them: every library, and every version of symbols asked of it."""
    found = set()
    for elf in files:
        found |= {f"{name}(){_bits(elf)}" for name in elf.needed if name not in own}
        found |= {
            f"{name}({one}){_bits(elf)}" for name, asked in elf.versions.items() if name not in own for one in asked
        }
    return tuple(sorted(found))


def _bits(elf: ElfFacts) -> str:
    return "(64bit)" if elf.bits == 64 else ""


def _newest(files: list[ElfFacts], prefix: str) -> str | None:
    asked = {one.removeprefix(prefix) for elf in files for of in elf.versions.values() for one in of if prefix in one}
    numbers = [one for one in asked if one.replace(".", "").isdigit()]
    return max(numbers, key=version_key, default=None)


def _compiler(files: list[ElfFacts]) -> str | None:
    newest = _newest(files, "GLIBCXX_")
    if newest is None or version_key(newest) < version_key(min(_GCC, key=version_key)):
        return None
    if newest not in _GCC:
        hint = "add it to the table of armlet/packages/families.py, from GCC's manual"
        raise ArmletError(f"no release of GCC is known for GLIBCXX_{newest}", hint=hint, kind=Kind.BUILD)
    return _GCC[newest]


def _openwrt(arch: str, core: str) -> str:
    if name := _OPENWRT_CORES.get(core):
        return name
    if arch == "aarch64":
        return "aarch64_generic"
    raise ArmletError(
        f"OpenWrt has no architecture for the core {core}",
        hint="name the one of your image, --ipk-arch, or leave ipk out of --format",
        kind=Kind.INPUT,
    )


def _yocto(arch: str) -> str:
    """meta/conf/machine/include/arm: whatever is tuned for a newer core of the same kind takes these too."""
    return {"aarch64": "aarch64", "armhf": "armv7ahf-neon"}[arch]
