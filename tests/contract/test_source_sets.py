"""Every source set that is checked in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from armlet.fetch import Places, from_component
from armlet.paths import Paths
from armlet.recipes import SOURCE_SETS
from armlet.spec.source_set import UPSTREAM_PATCH, Component, SourceSet

ROOT = Path(__file__).resolve().parents[2]
PATHS = Paths(root=ROOT, cache=ROOT / "no-cache")
NAMES = SOURCE_SETS.names(PATHS)
SETS = {name: SOURCE_SETS.load(PATHS, name) for name in NAMES}
COMPONENTS = [pytest.param(one, id=f"{name}-{one.name}") for name, made in SETS.items() for one in made.components]
LICENCES = {"MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "MPL-2.0", "Minpack"}
"""SPDX ids that a product may ship: one more is a decision, not an oversight."""
VARIABLE = re.compile(r"FETCHCONTENT_SOURCE_DIR_[A-Z0-9_]+|[A-Za-z0-9_]+_(SOURCE_DIR|INCLUDE_DIRS?|HOME)")


def own_patches(made: SourceSet) -> set[str]:
    return {name for one in made.components for name in one.patches if not name.startswith(UPSTREAM_PATCH)}


def test_there_is_one() -> None:
    assert "onnxruntime-1.21.0" in NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_set_is_named_after_its_version_and_begins_with_onnx_runtime(name: str) -> None:
    made = SETS[name]
    assert made.name == f"onnxruntime-{made.version}"
    assert (made.components[0].name, made.components[0].version) == ("onnxruntime", made.version)


@pytest.mark.parametrize("name", NAMES)
def test_no_two_components_share_a_name_a_file_or_a_cmake_variable(name: str) -> None:
    components = SETS[name].components
    for values in (
        [one.name for one in components],
        [one.sha256 for one in components],
        [one.snapshot for one in components if one.snapshot],
        [(one.cmake, one.only.arch) for one in components if one.cmake],
    ):
        assert len(values) == len(set(values))


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_component_is_handed_over_by_a_cmake_variable(component: Component) -> None:
    assert (component.cmake is None) == (component.name == "onnxruntime" or bool(component.ships))
    assert component.cmake is None or VARIABLE.fullmatch(component.cmake)


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_licence_is_one_that_a_product_may_ship(component: Component) -> None:
    assert set(re.split(r" AND | OR ", component.licence)) <= LICENCES


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_component_of_the_pool_has_a_second_place(component: Component) -> None:
    places = Places(debian=("http://mirror.example/debian",)).of_file(from_component(component))
    assert len(places) >= 2
    assert not component.debian or component.debian.startswith("pool/")


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_place_tells_the_version(component: Component) -> None:
    assert component.version in component.filename


@pytest.mark.parametrize("component", [one for one in COMPONENTS if one.values[0].ships])  # type: ignore[union-attr]
def test_a_library_that_ships_says_what_it_needs(component: Component) -> None:
    assert component.needs is not None
    assert component.only.arch
    assert component.only.provider
    for path in component.ships:
        assert re.fullmatch(r"lib\w+\.so(\.\d+)+", path.rpartition("/")[2]), "called by its full version"
        assert not component.keep or path in component.keep


@pytest.mark.parametrize("name", NAMES)
def test_every_patch_is_there_used_and_explains_itself(name: str) -> None:
    made = SETS[name]
    folder = PATHS.patch(made.version)
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*.patch")} == own_patches(made)
    for patch in own_patches(made):
        header = (folder / patch).read_text(encoding="utf-8").partition("\n--- a/")[0]
        for heading in ("Why:", "Where it comes from:", "Upstream status:"):
            assert f"\n{heading}" in header, patch


@pytest.mark.parametrize("name", NAMES)
def test_the_formats_make_sense(name: str) -> None:
    made = SETS[name]
    oldest, newest = made.ort_format
    assert 1 <= oldest <= newest
    assert {"ai.onnx", "ai.onnx.ml", "com.microsoft"} <= set(made.opsets)
