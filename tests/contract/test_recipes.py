"""Every recipe, and every word that recipes may use."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
from pydantic import BaseModel

from armlet import config, schemas
from armlet.emit import cmake
from armlet.onnx.text_samples import DRAWN
from armlet.paths import Paths
from armlet.providers import PROVIDERS
from armlet.qemu.run import ANY_CORE
from armlet.recipes import MODELS, SKUS, SOURCE_SETS, TOOLCHAINS, load_operators
from armlet.registrations import DOMAINS
from armlet.spec import patterns
from armlet.spec.cpu import CPUS
from armlet.spec.sku import BUILDABLE_PROVIDERS, Flavor, Provider, PythonApi, Sku
from armlet.spec.toolchain import Toolchain

ROOT = Path(__file__).resolve().parents[2]
PATHS = Paths(root=ROOT, cache=ROOT / "no-cache")
DOCS: dict[str, type[BaseModel]] = {"adding-a-sku.md": Sku, "adding-a-toolchain.md": Toolchain}
REGENERATE = ".venv/bin/python -c 'import pathlib; from armlet import schemas; schemas.write(pathlib.Path())'"


@pytest.mark.parametrize("name", SKUS.names(PATHS))
def test_every_sku_resolves_and_tells_each_value(name: str) -> None:
    resolved = config.resolve(PATHS, name)
    assert resolved.sku.name == name
    assert [key for key, _, origin in config.describe(resolved) if not origin] == []


@pytest.mark.parametrize("name", TOOLCHAINS.names(PATHS))
def test_every_toolchain_loads(name: str) -> None:
    toolchain = TOOLCHAINS.load(PATHS, name)
    assert any(cpu.arch == toolchain.arch for cpu in CPUS.values())


@pytest.mark.parametrize("name", SOURCE_SETS.names(PATHS))
def test_every_source_set_has_a_sound_table_of_operators(name: str) -> None:
    source_set = SOURCE_SETS.load(PATHS, name)
    table = load_operators(PATHS, name)
    assert table is not None
    assert set(table) <= set(DOMAINS.values())
    for domain, operators in table.items():
        assert list(operators) == sorted(operators)
        for since in operators.values():
            assert list(since) == sorted(set(since))
            assert since[0] >= 1
            assert since[-1] <= source_set.opsets.get(domain, since[-1])


@pytest.mark.parametrize("name", MODELS.names(PATHS))
def test_every_public_model_has_one_place_and_fixed_shapes_and_is_the_same_in_every_sku(name: str) -> None:
    recipe = MODELS.load(PATHS, name)
    assert (recipe.path is None) != (recipe.wheel is None)
    assert recipe.inputs
    for sku in SKUS.names(PATHS):
        for model in config.resolve(PATHS, sku).sku.runtime.operators.models:
            if model.name == name:
                assert (model.sha256, model.licence, model.wheel) == (recipe.sha256, recipe.licence, recipe.wheel)
                assert model.inputs in ({}, recipe.inputs)


def test_text_is_drawn_for_every_public_model() -> None:
    assert set(DRAWN) == set(MODELS.names(PATHS))


@pytest.mark.parametrize("name", SKUS.names(PATHS))
def test_every_recipe_of_a_sku_teaches(name: str) -> None:
    """A recipe is the first page of documentation that its reader sees."""
    comments = [line for line in SKUS.path(PATHS, name).read_text(encoding="utf-8").splitlines() if "#" in line]
    assert len(comments) >= 5


@pytest.mark.parametrize("file", schemas.SCHEMAS)
def test_the_schemas_in_docs_are_those_of_the_models(file: str) -> None:
    written = (ROOT / schemas.FOLDER / file).read_text(encoding="utf-8")
    assert written == schemas.text(schemas.SCHEMAS[file]), f"run: {REGENERATE}"


def test_no_schema_is_left_over() -> None:
    assert {path.name for path in (ROOT / schemas.FOLDER).iterdir()} == set(schemas.SCHEMAS)


@pytest.mark.parametrize("file", DOCS)
def test_every_key_is_documented_and_nothing_else_is(file: str) -> None:
    text = (ROOT / "docs" / file).read_text(encoding="utf-8")
    section = text.split("\n## Keys\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)
    assert sorted(rows) == sorted(_keys(DOCS[file]))


def test_every_cpu_flavor_and_provider_is_documented() -> None:
    text = (ROOT / "docs" / "adding-a-sku.md").read_text(encoding="utf-8")
    words = (*CPUS, *get_args(Flavor), *get_args(Provider))
    assert [word for word in words if f"| `{word}` |" not in text] == []


def _keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, info in model.model_fields.items():
        key = prefix + (info.alias or name)
        inner, many = _inner(info.annotation)
        if inner is None:
            yield key
        else:
            yield from _keys(inner, f"{key}[]." if many else f"{key}.")


def _inner(annotation: Any, *, many: bool = False) -> tuple[type[BaseModel] | None, bool]:
    """The model that a field holds, and whether it holds several."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, many
    for argument in get_args(annotation):
        found, several = _inner(argument, many=many or get_origin(annotation) is tuple)
        if found is not None:
            return found, several
    return None, many


def test_every_pattern_has_a_meaning_for_messages() -> None:
    found = {pattern for model in schemas.SCHEMAS.values() for pattern in _patterns(model.model_json_schema())}
    assert found - set(patterns.MEANINGS) == set()


def _patterns(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("pattern"), str):
            yield schema["pattern"]
        for value in schema.values():
            yield from _patterns(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _patterns(value)


def test_what_is_called_buildable_has_its_row() -> None:
    assert {name for name, arches in BUILDABLE_PROVIDERS.items() if arches} <= set(PROVIDERS)
    assert set(BUILDABLE_PROVIDERS) == set(get_args(Provider))


def test_every_flavor_and_python_has_its_definitions() -> None:
    assert set(cmake.FLAVORS) == set(get_args(Flavor))
    assert set(cmake.PYTHON_APIS) == set(get_args(PythonApi))


@pytest.mark.parametrize("name", CPUS)
def test_every_cpu_has_flags_and_a_model_of_its_own(name: str) -> None:
    cpu = CPUS[name]
    assert cpu.name == name
    assert cpu.qemu not in ANY_CORE
    assert f"-march={cpu.march}" in cpu.flags


def test_editors_find_the_schemas() -> None:
    for folder, file in ((SKUS.folder, "sku.json"), (TOOLCHAINS.folder, "toolchain.json")):
        for path in (ROOT / folder).glob("*.yaml"):
            named = re.match(r"# yaml-language-server: \$schema=(\S+)\n", path.read_text(encoding="utf-8"))
            assert named, path
            target = (path.parent / named[1]).resolve()
            assert target.name == file
            assert json.loads(target.read_text(encoding="utf-8"))["type"] == "object"
