"""A SKU without a toolchain: its rootfs's glibc chooses."""

from __future__ import annotations

from pathlib import Path

import pytest

from armlet import config, provider_rules
from armlet.case import Case
from armlet.errors import ArmletError, Kind
from armlet.spec.toolchain import Toolchain
from tests.fakes.recipes import FakeProject

SKU = FakeProject.sku_file
FLOORS = {"bullseye": "2.31", "bookworm": "2.36", "trixie": "2.41"}


@pytest.fixture
def project(tmp_path: Path) -> FakeProject:
    """Toolchains of three releases, and a SKU that names none of them."""
    project = FakeProject(tmp_path)
    bookworm = project.text(project.toolchain_file)
    for suite, glibc in FLOORS.items():
        text = bookworm.replace("bookworm", suite).replace('"2.36"', f'"{glibc}"')
        project.write(f"toolchains/aarch64-{suite}.yaml", text)
    project.change(SKU, "toolchain: aarch64-bookworm\n", "")
    return project


def refused(project: FakeProject) -> str:
    with pytest.raises(ArmletError) as caught:
        config.resolve(project.paths, "demo-a53")
    assert caught.value.kind is Kind.INPUT
    return str(caught.value)


@pytest.mark.parametrize(
    ("floor", "chosen"),
    [
        ("2.31", "aarch64-bullseye"),
        ("2.35", "aarch64-bullseye"),
        ("2.36", "aarch64-bookworm"),
        ("2.39", "aarch64-bookworm"),
        ("2.41", "aarch64-trixie"),
        ("2.99", "aarch64-trixie"),
    ],
)
def test_the_newest_toolchain_that_is_not_newer_than_the_floor(project: FakeProject, floor: str, chosen: str) -> None:
    line = project.change(SKU, '"2.36"', f'"{floor}"')
    resolved = config.resolve(project.paths, "demo-a53")
    assert resolved.toolchain.name == resolved.sku.toolchain == chosen
    rows = {key: (value, origin) for key, value, origin in config.describe(resolved)}
    assert rows["toolchain"] == (chosen, f"chosen by floors.glibc ({SKU}:{line})")
    assert rows["toolchain.name"][1].startswith(f"toolchains/{chosen}.yaml:")


def test_a_toolchain_that_is_named_is_taken(project: FakeProject) -> None:
    line = project.change(SKU, "cpu: cortex-a53", "toolchain: aarch64-bullseye\ncpu: cortex-a53")
    resolved = config.resolve(project.paths, "demo-a53")
    assert resolved.toolchain.name == "aarch64-bullseye"
    assert resolved.origins["toolchain"] == f"{SKU}:{line}"


def test_a_floor_below_every_toolchain_is_refused_with_those_to_be_had(project: FakeProject) -> None:
    line = project.change(SKU, '"2.36"', '"2.17"')
    what, hint = refused(project).splitlines()
    assert what == f"{SKU}:{line}: floors.glibc: no aarch64 toolchain links for a rootfs with glibc 2.17"
    assert "2.31 (aarch64-bullseye), 2.36 (aarch64-bookworm), 2.41 (aarch64-trixie)" in hint


def test_the_same_where_a_toolchain_is_named(project: FakeProject) -> None:
    project.change(SKU, "cpu: cortex-a53", "toolchain: aarch64-bookworm\ncpu: cortex-a53")
    line = project.change(SKU, '"2.36"', '"2.17"')
    what, hint = refused(project).splitlines()
    assert what.startswith(f"{SKU}:{line}: floors.glibc: a rootfs with glibc 2.17 cannot run what aarch64-bookworm")
    assert "floors to be had: 2.31 (aarch64-bullseye), 2.36 (aarch64-bookworm), 2.41 (aarch64-trixie)" in hint


def test_an_architecture_without_toolchains_has_no_floors(project: FakeProject) -> None:
    project.change(SKU, "cpu: cortex-a53", "cpu: cortex-a7")
    what, hint = refused(project).splitlines()
    assert "floors.glibc: no armhf toolchain links for a rootfs with glibc 2.36" in what
    assert "floors to be had: none" in hint


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("cpu: cortex-a53", "cpu: cortex-b53", 'cpu: unknown CPU "cortex-b53"'),
        ('"2.36"', '"two"', 'floors.glibc: "two" is not taken'),
    ],
)
def test_what_the_choice_goes_by_is_told_once_where_it_is_wrong(
    project: FakeProject, old: str, new: str, told: str
) -> None:
    project.change(SKU, old, new)
    what, _hint = refused(project).splitlines()
    assert told in what


def test_a_broken_toolchain_is_told_before_another_is_chosen_in_its_place(project: FakeProject) -> None:
    line = project.change("toolchains/aarch64-trixie.yaml", "compiler: gcc", "compiler: gc")
    assert f"toolchains/aarch64-trixie.yaml:{line}: compiler: unknown compiler" in refused(project)


def only_with(toolchain: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if XNNPACK could be built with one toolchain."""

    def builds(_: Case, provider: str, given: Toolchain) -> bool:
        return provider != "xnnpack" or given.name == toolchain

    monkeypatch.setattr(provider_rules, "builds", builds)


def test_a_toolchain_that_cannot_build_a_provider_is_passed_over(
    project: FakeProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_with("aarch64-bullseye", monkeypatch)
    assert config.resolve(project.paths, "demo-a53").toolchain.name == "aarch64-bullseye"


def test_a_toolchain_with_another_cpython_than_the_wheels_is_passed_over(project: FakeProject) -> None:
    project.change("toolchains/aarch64-trixie.yaml", 'cpython: "3.11"', 'cpython: "3.13"')
    project.change(SKU, '"2.36"', '"2.41"')
    project.change(SKU, "flavor: minimal", "flavor: full")
    project.change(SKU, "python: capi", 'python: wheel\n  cpython: "3.11"')
    text = project.text(SKU)
    project.write(SKU, text[: text.index("    allow:")] + text[text.index("# The oldest") :])
    assert config.resolve(project.paths, "demo-a53").toolchain.name == "aarch64-bookworm"
    project.change(SKU, '  cpython: "3.11"', "")
    assert config.resolve(project.paths, "demo-a53").toolchain.name == "aarch64-trixie"


def test_a_provider_that_needs_a_newer_toolchain_says_so(project: FakeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    only_with("aarch64-trixie", monkeypatch)
    what, hint = refused(project).splitlines()
    assert 'runtime.providers: the provider "xnnpack" cannot be had for a rootfs with glibc 2.36' in what
    assert "it is built for 2.41 (aarch64-trixie)" in hint


def test_a_provider_that_no_toolchain_builds_is_told_as_ever(project: FakeProject) -> None:
    project.change(SKU, "[xnnpack, cpu]", "[acl, cpu]")
    told = refused(project)
    assert 'runtime.providers: the provider "acl" cannot be built for aarch64: ' in told
    # Nobody has named it.
    assert "aarch64-bookworm" not in told
