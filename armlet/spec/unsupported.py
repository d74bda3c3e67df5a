"""What somebody may ask for that Armlet will not build, with the reason in place of "unknown"."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Patterns of a key's last name and of its value (both in small letters and in full), and what is said of them."""

    keys: str
    values: str
    what: str
    """``{}`` stands for the value."""
    hint: str


_CPU = "cpu|mcpu"
_FLAGS = (
    "march|mfpu|fpu|mfloat[-_]abi|float[-_]abi|abi|flags|c(xx)?[-_]?flags|cpu[-_]?flags|compile(r)?[-_](flags|options)"
)
_TARGET = "arch|debian_arch|triple|toolchain"

_NO_SOFT = (
    "there is no soft-float build: the kernels of ONNX Runtime (MLAS) and of XNNPACK are written for NEON; "
    "take a core that has it, and a hard-float rootfs (Debian's armhf, Yocto's callconvention-hard)"
)
_NO_NEON = (
    "the kernels of ONNX Runtime (MLAS) and of XNNPACK are written for NEON, and every build uses it; "
    "docs/adding-a-sku.md lists the cores that have it"
)

REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        keys=_TARGET,
        values=r"armel(\W.*)?|arm|armv[4-6].*|arm-(.*-)?(gnueabi|musleabi|eabi)",
        what='"{}" is soft-float ARM',
        hint=f"{_NO_SOFT}: arch: armhf, debian_arch: armhf, triple: arm-linux-gnueabihf",
    ),
    Refusal(
        keys=_FLAGS,
        values=r"soft(fp)?|(.* )?-?mfloat-abi=soft(fp)?( .*)?|armel|aapcs",
        what='"{}" asks for soft float',
        hint=_NO_SOFT,
    ),
    Refusal(
        keys=_FLAGS,
        values=r"(.* )?(-?march=)?armv([4-6]|7(-a|ve)?(?!.*\+(neon|simd))).*|(.* )?(-?mfpu=)?(vfp.*|none)( .*)?",
        what='"{}" asks for code without NEON',
        hint=_NO_NEON,
    ),
    Refusal(
        keys=_FLAGS,
        values=".*",
        what="is not chosen by hand",
        hint="cpu: names the core, and what the compiler may use follows from it (docs/adding-a-sku.md, CPUs)",
    ),
    Refusal(
        keys=_CPU,
        values=r"arm(7|8|9|10)\D?.*|arm(9|10)\d\d.*|strongarm.*|xscale|iwmmxt2?|pxa.*|sa1[0-9]+|armv[3-5].*|armel",
        what="{} has no floating-point unit",
        hint=_NO_SOFT,
    ),
    Refusal(
        keys=_CPU,
        values=r"arm11.*|mpcore.*|armv6.*|bcm2835",
        what="{} has VFPv2 at most, and no NEON",
        hint=_NO_NEON,
    ),
    Refusal(
        keys=_CPU,
        values=r"cortex-(m\d+|r[4578]f?|r52)(\W.*)?|armv[678]-?[mr].*",
        what="{} is a core of microcontrollers, without the memory management that Linux asks for",
        hint="Armlet builds for Linux on Cortex-A and Neoverse; docs/adding-a-sku.md lists the cores",
    ),
    Refusal(
        keys=_CPU,
        values=r"cortex-a5(\W.*)?",
        what="{} may lack NEON, and its name does not tell",
        hint=f"where its /proc/cpuinfo lists neon, write cpu: cortex-a9; else: {_NO_NEON}",
    ),
    Refusal(
        keys=_CPU,
        values=r"(marvell-)?pj4.*|armada-?(370|xp)",
        what="{} has VFPv3, and NEON not in every chip",
        hint=_NO_NEON,
    ),
    Refusal(
        keys=_CPU,
        values=r"tegra-?20?|armv7(-a|ve)?|armhf|.*(no-?simd|no-?neon|vfpv3-d16)",
        what="{} promises no NEON",
        hint=_NO_NEON,
    ),
)
"""The first that fits is said."""


def refusal(key: str, value: object) -> tuple[str, str] | None:
    """What is wrong with asking for this value of a key, and what to do; null where nothing is known against it."""
    text = "" if value is None else str(value)
    for one in REFUSALS:
        if re.fullmatch(one.keys, key.lower()) and re.fullmatch(one.values, text.lower()):
            return one.what.format(text), one.hint
    return None
