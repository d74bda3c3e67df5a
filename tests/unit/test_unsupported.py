"""Requests that are refused with their reason: soft float, cores without NEON, flags by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from armlet import config
from armlet.errors import ArmletError, Kind
from armlet.recipes import TOOLCHAINS
from armlet.spec.cpu import CPUS
from armlet.spec.unsupported import refusal
from tests.fakes.recipes import FakeProject

SKU = FakeProject.sku_file
TOOLCHAIN = FakeProject.toolchain_file
SOFT = "there is no soft-float build"
NEON = "are written for NEON"


@pytest.fixture
def project(tmp_path: Path) -> FakeProject:
    return FakeProject(tmp_path)


# (file, text, what stands there instead, the problem, the hint)
REFUSED = [
    (TOOLCHAIN, "debian_arch: arm64", "debian_arch: armel", 'debian_arch: "armel" is soft-float ARM', SOFT),
    (TOOLCHAIN, "triple: aarch64-linux-gnu", "triple: arm-linux-gnueabi",
     'triple: "arm-linux-gnueabi" is soft-float ARM', SOFT),
    (TOOLCHAIN, "triple: aarch64-linux-gnu", "triple: arm-poky-linux-gnueabi", "is soft-float ARM", SOFT),
    (TOOLCHAIN, "arch: aarch64", "arch: armel", 'arch: "armel" is soft-float ARM', "triple: arm-linux-gnueabihf"),
    (TOOLCHAIN, "compiler: gcc", "compiler: gcc\nfloat_abi: soft", 'float_abi: "soft" asks for soft float', SOFT),
    (TOOLCHAIN, "compiler: gcc", "compiler: gcc\nfloat_abi: softfp", 'float_abi: "softfp" asks for soft float', SOFT),
    (TOOLCHAIN, "compiler: gcc", "compiler: gcc\ncflags: -O2 -mfloat-abi=soft", "cflags: ", SOFT),
    (TOOLCHAIN, "compiler: gcc", "compiler: gcc\nmarch: armv7-a", 'march: "armv7-a" asks for code without NEON', NEON),
    (TOOLCHAIN, "compiler: gcc", "compiler: gcc\nfpu: vfpv3-d16", 'fpu: "vfpv3-d16" asks for code without NEON', NEON),
    (TOOLCHAIN, "compiler: gcc", "compiler: gcc\ncflags: -march=armv7-a+vfpv3", "asks for code without NEON", NEON),
    (TOOLCHAIN, "compiler: gcc", "compiler: gcc\nmarch: armv8.2-a", "march: is not chosen by hand", "cpu: names the"),
    (SKU, "toolchain: aarch64-bookworm", "toolchain: armel-bookworm", '"armel-bookworm" is soft-float ARM', SOFT),
    (SKU, "cpu: cortex-a53", "cpu: cortex-a53\nfloat_abi: soft", 'float_abi: "soft" asks for soft float', SOFT),
    (SKU, "cpu: cortex-a53", "cpu: cortex-a53\nmarch: armv7-a+neon", "march: is not chosen by hand", "cpu: names the"),
    (SKU, "cpu: cortex-a53", "cpu: arm926ej-s", "cpu: arm926ej-s has no floating-point unit", SOFT),
    (SKU, "cpu: cortex-a53", "cpu: armel", "cpu: armel has no floating-point unit", SOFT),
    (SKU, "cpu: cortex-a53", "cpu: xscale", "cpu: xscale has no floating-point unit", SOFT),
    (SKU, "cpu: cortex-a53", "cpu: arm1176jzf-s", "cpu: arm1176jzf-s has VFPv2 at most, and no NEON", NEON),
    (SKU, "cpu: cortex-a53", "cpu: cortex-m7", "cpu: cortex-m7 is a core of microcontrollers", "Linux on Cortex-A"),
    (SKU, "cpu: cortex-a53", "cpu: cortex-r52", "cpu: cortex-r52 is a core of microcontrollers", "Linux on Cortex-A"),
    (TOOLCHAIN, "compiler: gcc", "compiler: gcc\ncxxflags: null", "cxxflags: is not chosen by hand", "cpu: names the"),
    (SKU, "cpu: cortex-a53", "cpu: cortex-a5", "cpu: cortex-a5 may lack NEON", "write cpu: cortex-a9"),
    (SKU, "cpu: cortex-a53", "cpu: cortex-a9+nosimd", "cpu: cortex-a9+nosimd promises no NEON", NEON),
    (SKU, "cpu: cortex-a53", "cpu: marvell-pj4", "cpu: marvell-pj4 has VFPv3", NEON),
    (SKU, "cpu: cortex-a53", "cpu: tegra2", "cpu: tegra2 promises no NEON", NEON),
    (SKU, "cpu: cortex-a53", "cpu: armv7-a", "cpu: armv7-a promises no NEON", NEON),
    (SKU, "cpu: cortex-a53", "cpu: cortex-a7+nosimd", "cpu: cortex-a7+nosimd promises no NEON", NEON),
]  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new", "problem", "hint"), REFUSED)
def test_it_is_refused_once_with_the_reason(
    project: FakeProject, file: str, old: str, new: str, problem: str, hint: str
) -> None:
    line = project.change(file, old, new) + new.count("\n")
    with pytest.raises(ArmletError) as caught:
        config.resolve(project.paths, "demo-a53")
    assert caught.value.kind is Kind.INPUT
    what, told = str(caught.value).splitlines()
    assert what.startswith(f"{file}:{line}: ")
    assert problem in what
    assert hint in told


@pytest.mark.parametrize("name", CPUS)
def test_nothing_is_known_against_the_cores_of_the_table(name: str) -> None:
    assert refusal("cpu", name) is None


@pytest.mark.parametrize("name", ["cortex-x4", "cortex-x1", "krait", "cortex-a12", "cortex-r82", "apple-m1"])
def test_a_core_that_is_only_not_in_the_table_is_unknown(name: str) -> None:
    assert refusal("cpu", name) is None


def test_a_vendor_may_stand_in_a_triple(project: FakeProject) -> None:
    project.change(TOOLCHAIN, "triple: aarch64-linux-gnu", "triple: aarch64-poky-linux-gnu")
    assert TOOLCHAINS.load(project.paths, "aarch64-bookworm").triple == "aarch64-poky-linux-gnu"
