"""What a recipe may hold: values that look right and would only fail later."""

from __future__ import annotations

from pathlib import Path

import pytest

from armlet import config
from armlet.errors import ArmletError, Kind
from tests.fakes.recipes import FakeProject

SKU = FakeProject.sku_file
TOOLCHAIN = FakeProject.toolchain_file
SOURCES = FakeProject.source_set_file
_LONG = "9" * 5001


@pytest.fixture
def project(tmp_path: Path) -> FakeProject:
    return FakeProject(tmp_path)


def refused(project: FakeProject) -> str:
    with pytest.raises(ArmletError) as caught:
        config.resolve(project.paths, "demo-a53")
    assert caught.value.kind is Kind.INPUT
    return str(caught.value)


# (file, text, what stands there instead, the problem, the hint)
WRONG = [
    (SKU, 'glibc: "2.36"', 'glibc: "٢.٣٦"', 'floors.glibc: "٢.٣٦" is not taken', 'such as "2.36"'),
    (SKU, 'glibc: "2.36"', f'glibc: "{_LONG}"', "floors.glibc: ", ""),
    (SKU, 'glibc: "2.36"', f'glibc: "2.{_LONG}"', "floors.glibc: ", ""),
    (TOOLCHAIN, 'kernel: "3.7"', f'kernel: "{_LONG}"', "floors.kernel: string should have at most 32", ""),
    (SOURCES, 'cpython: ["3.10",', 'cpython: ["٣.10",', 'cpython: "٣.10" is not taken', 'such as "2.36"'),
]  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new", "problem", "hint"), WRONG)
def test_it_is_told_once_with_file_line_and_remedy(
    project: FakeProject, file: str, old: str, new: str, problem: str, hint: str
) -> None:
    line = project.change(file, old, new)
    told = refused(project)
    assert len(told) < 1000
    what, remedy = told.splitlines()
    assert what.startswith(f"{file}:{line}: {problem}")
    assert remedy.startswith(" hint: ")
    assert hint in remedy


@pytest.mark.parametrize("version", ["", "٣.٣", _LONG])
def test_a_cpython_that_is_no_version_is_told_once(project: FakeProject, version: str) -> None:
    project.change(SKU, "flavor: minimal", "flavor: reduced")
    line = project.change(SKU, "python: capi ", f'python: wheel\n  cpython: "{version}" ') + 1
    told = refused(project)
    assert len(told) < 1000
    what, _ = told.splitlines()
    assert what.startswith(f"{SKU}:{line}: runtime.cpython: ")


def test_a_long_floor_without_a_toolchain(project: FakeProject) -> None:
    project.change(SKU, "toolchain: aarch64-bookworm\n", "")
    line = project.change(SKU, 'glibc: "2.36"', f'glibc: "{_LONG}"')
    what, _ = refused(project).splitlines()
    assert what.startswith(f"{SKU}:{line}: floors.glibc: ")
