"""Recipes whose names a file system that ignores case would take for one."""

from __future__ import annotations

from pathlib import Path

import pytest

from armlet import config
from armlet.errors import ArmletError, Kind
from armlet.new_sku import new_sku
from armlet.recipes import SKUS, SOURCE_SETS, TOOLCHAINS, Shelf
from tests.fakes.recipes import FakeProject

FILES = {SKUS: FakeProject.sku_file, TOOLCHAINS: FakeProject.toolchain_file, SOURCE_SETS: FakeProject.source_set_file}


@pytest.fixture
def project(tmp_path: Path) -> FakeProject:
    return FakeProject(tmp_path)


def twin(project: FakeProject, file: str, *, ending: str = ".yaml") -> str:
    """Writes the file again under a name with capitals, and returns that."""
    path = Path(file)
    other = str(path.with_name(path.stem.title() + ending))
    project.write(other, project.text(file))
    return other


@pytest.mark.parametrize("shelf", FILES, ids=lambda shelf: shelf.folder)
@pytest.mark.parametrize("ending", [".yaml", ".YAML"])
def test_two_that_differ_only_in_case_are_refused_with_both_names(
    project: FakeProject, shelf: Shelf, ending: str
) -> None:
    other = twin(project, FILES[shelf], ending=ending)
    with pytest.raises(ArmletError) as caught:
        config.resolve(project.paths, "demo-a53")
    assert caught.value.kind is Kind.INPUT
    what, hint = str(caught.value).splitlines()
    assert what == f"{other}: differs only in case from {Path(FILES[shelf]).name}"
    assert "a file system that ignores case" in hint


def test_the_list_and_a_new_sku_tell_it_too(project: FakeProject) -> None:
    twin(project, FakeProject.sku_file)
    with pytest.raises(ArmletError, match=r"Demo-A53\.yaml: differs only in case from demo-a53\.yaml"):
        SKUS.names(project.paths)
    with pytest.raises(ArmletError, match=r"Demo-A53\.yaml: differs only in case from demo-a53\.yaml"):
        new_sku(project.paths, "mine")
    assert not (project.root / "recipes/skus/mine.yaml").exists()


def test_a_new_sku_is_not_put_beside_one_that_differs_only_in_case(project: FakeProject) -> None:
    project.write("recipes/skus/Mine.yaml", project.text(FakeProject.sku_file))
    with pytest.raises(ArmletError, match="differs only in case") as caught:
        new_sku(project.paths, "mine")
    assert str(caught.value).startswith("recipes/skus/mine.yaml: differs only in case from Mine.yaml")
    assert not (project.root / "recipes/skus/mine.yaml").exists()


def test_a_file_with_capitals_is_to_be_renamed(project: FakeProject) -> None:
    project.write("recipes/skus/Mine.yaml", project.text(FakeProject.sku_file).replace("name: demo-a53", "name: mine"))
    with pytest.raises(ArmletError) as caught:
        config.resolve(project.paths, "Mine")
    what, hint = str(caught.value).splitlines()
    assert what == "recipes/skus/Mine.yaml: is no name for a recipe"
    assert hint.startswith(" hint: rename the file; a recipe's name is a name: small letters")
