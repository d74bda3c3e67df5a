from __future__ import annotations

from pathlib import Path

import pytest

from armlet import config
from armlet.errors import ArmletError, Kind
from armlet.new_sku import new_sku
from armlet.recipes import SKUS
from tests.fakes.recipes import FakeProject

SKU = FakeProject.sku_file


@pytest.fixture
def project(tmp_path: Path) -> FakeProject:
    return FakeProject(tmp_path)


def test_a_new_sku_keeps_the_comments_and_resolves(project: FakeProject) -> None:
    path = new_sku(project.paths, "gateway-a72", cpu="cortex-a72")
    assert path == project.root / "recipes/skus/gateway-a72.yaml"
    assert config.resolve(project.paths, "gateway-a72").cpu.name == "cortex-a72"
    made, like = path.read_text(encoding="utf-8"), project.text(SKU)
    same = like.replace("name: demo-a53 ", "name: gateway-a72 ", 1).replace("cpu: cortex-a53 ", "cpu: cortex-a72 ", 1)
    assert made.partition("toolchain:")[2] == same.partition("toolchain:")[2]
    assert "demo" not in made.partition("runtime:")[0]
    assert config.resolve(project.paths, "gateway-a72").sku.description == "gateway-a72 (cortex-a72)"
    assert sorted(file.name for file in path.parent.iterdir()) == ["demo-a53.yaml", "gateway-a72.yaml"]


def test_a_floor_takes_the_place_of_a_toolchain(project: FakeProject) -> None:
    old = project.text(project.toolchain_file).replace("bookworm", "bullseye").replace('"2.36"', '"2.31"')
    project.write("toolchains/aarch64-bullseye.yaml", old)
    made = new_sku(project.paths, "old", glibc="2.31").read_text(encoding="utf-8")
    assert "toolchain:" not in made.partition("runtime:")[0]
    assert '  glibc: "2.31"  ' in made
    assert config.resolve(project.paths, "old").toolchain.name == "aarch64-bullseye"
    # And a SKU after one that names no toolchain.
    new_sku(project.paths, "newer", like="old", glibc="2.36")
    assert config.resolve(project.paths, "newer").toolchain.name == "aarch64-bookworm"
    named = new_sku(project.paths, "named", like="old", toolchain="aarch64-bullseye", glibc="2.36")
    assert "\ntoolchain: aarch64-bullseye\ncpu: cortex-a53 " in named.read_text(encoding="utf-8")
    assert config.resolve(project.paths, "named").toolchain.name == "aarch64-bullseye"


def test_another_toolchain_brings_its_own_cpython(project: FakeProject) -> None:
    project.change(SKU, "flavor: minimal", "flavor: reduced")
    project.change(SKU, "python: capi ", 'python: wheel\n  cpython: "3.11" ')
    old = project.text(project.toolchain_file)
    project.write(
        "toolchains/aarch64-trixie.yaml",
        old.replace("bookworm", "trixie").replace("2.36", "2.41").replace("3.11", "3.13"),
    )
    for flags in ({"glibc": "2.41"}, {"toolchain": "aarch64-trixie", "glibc": "2.41"}):
        name = f"new-{len(flags)}"
        assert "cpython" not in new_sku(project.paths, name, **flags).read_text(encoding="utf-8")
        assert config.resolve(project.paths, name).toolchain.name == "aarch64-trixie"
    assert config.resolve(project.paths, "new-1").origins["toolchain"].startswith("chosen by floors.glibc (")


def test_a_core_of_another_architecture_leaves_the_toolchain_to_the_floor(project: FakeProject) -> None:
    old = project.text(project.toolchain_file).replace("aarch64-bookworm", "armhf-bookworm")
    old = old.replace("arch: aarch64", "arch: armhf").replace("aarch64-linux-gnu", "arm-linux-gnueabihf")
    project.write("toolchains/armhf-bookworm.yaml", old.replace("arm64", "armhf"))
    new_sku(project.paths, "small", cpu="cortex-a7")
    assert config.resolve(project.paths, "small").toolchain.name == "armhf-bookworm"


@pytest.mark.parametrize("name", ["1", "1.5", "null", "true"])
def test_a_new_sku_may_be_named_like_a_number(project: FakeProject, name: str) -> None:
    new_sku(project.paths, name)
    assert config.resolve(project.paths, name).sku.name == name


@pytest.mark.parametrize("name", ["", "Gateway", "a b", "../x", "x/y", "größe", "x.yaml", "-x", "x" * 65, "x\n"])
def test_a_new_sku_with_a_bad_name_is_refused(project: FakeProject, name: str) -> None:
    with pytest.raises(ArmletError) as caught:
        new_sku(project.paths, name)
    assert caught.value.kind is Kind.INPUT
    assert SKUS.names(project.paths) == ("demo-a53",)


def test_a_new_sku_never_overwrites(project: FakeProject) -> None:
    before = project.text(SKU)
    with pytest.raises(ArmletError, match="is there already") as caught:
        new_sku(project.paths, "demo-a53", cpu="cortex-a72")
    assert caught.value.where == SKU
    assert project.text(SKU) == before


def test_a_new_sku_after_one_that_is_not_sound_is_refused_with_that_file(project: FakeProject) -> None:
    line = project.change(SKU, "flavor: minimal", "flavor: minmal")
    with pytest.raises(ArmletError, match=f"^{SKU}:{line}: runtime.flavor"):
        new_sku(project.paths, "mine")


def test_a_new_sku_that_would_not_resolve_is_not_written(project: FakeProject) -> None:
    with pytest.raises(ArmletError, match=r'^--cpu: unknown CPU "cortex-a99"'):
        new_sku(project.paths, "mine", cpu="cortex-a99")
    with pytest.raises(ArmletError, match=r'^--toolchain: unknown toolchain "x"'):
        new_sku(project.paths, "mine", toolchain="x")
    with pytest.raises(ArmletError, match=r'^--glibc: "2\.x" is no version'):
        new_sku(project.paths, "mine", glibc="2.x")
    with pytest.raises(ArmletError, match=r"^--cpu: arm926ej-s has no floating-point unit"):
        new_sku(project.paths, "mine", cpu="arm926ej-s")
    with pytest.raises(ArmletError, match=r"^the new SKU:\d+: floors\.glibc: no aarch64 toolchain"):
        new_sku(project.paths, "mine", glibc="2.17")
    with pytest.raises(ArmletError, match=r"^the new SKU:\d+: cpu: cortex-a7 is an armhf core"):
        new_sku(project.paths, "mine", cpu="cortex-a7", toolchain="aarch64-bookworm")
    with pytest.raises(ArmletError, match=r"^the new SKU:\d+: floors\.glibc: no armhf toolchain"):
        new_sku(project.paths, "mine", cpu="cortex-a7")
    with pytest.raises(ArmletError, match='unknown SKU "demo"'):
        new_sku(project.paths, "mine", like="demo")
    assert SKUS.names(project.paths) == ("demo-a53",)
