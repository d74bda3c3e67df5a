"""The project's tables of what providers take, made again from the sources that were built."""

from __future__ import annotations

from pathlib import Path

import pytest

from armlet import pipeline
from armlet.config import resolve
from armlet.coverage import generate, restated, tables
from armlet.coverage.generate import RECIPES
from armlet.errors import ArmletError, Kind
from armlet.events import silent
from armlet.paths import Paths

pytestmark = [pytest.mark.build, pytest.mark.docker, pytest.mark.timeout(5400)]

SKU = "demo-a53"


@pytest.fixture(scope="module")
def tree(root: Path) -> Path:
    pipeline.build(Paths.of(root), SKU, silent)
    return pipeline.source_tree(Paths.of(root), SKU)


@pytest.mark.parametrize("provider", RECIPES)
def test_the_tables_are_what_the_sources_say(root: Path, tree: Path, provider: str) -> None:
    source_set = resolve(Paths.of(root), SKU).source_set.name
    made = tables.text(generate.generate(provider, tree))
    assert made == tables.place(root, source_set, provider).read_text(), "./inv sources.providers writes them anew"


def test_a_rule_that_changed_changes_the_table_or_ends_it(tree: Path, tmp_path: Path) -> None:
    for folder in ("onnxruntime/core/providers", "onnxruntime/core/framework", "onnxruntime/core/optimizer"):
        (tmp_path / folder).mkdir(parents=True)
    recipe, copied = RECIPES["xnnpack"], tmp_path
    rows = [row.file for row in (*restated.CORE, *recipe.restated)]
    files = {path for pattern in recipe.files for path in tree.glob(pattern)}
    for path in files | {tree / file for file in (*rows, *generate.layout_files())}:
        target = copied / path.relative_to(tree)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    before = generate.generate("xnnpack", copied)
    rules = copied / "onnxruntime/core/providers/xnnpack/nn/max_pool.cc"
    text = rules.read_text()
    rules.write_text(text.replace("pool_attrs.ceil_mode != 0", "pool_attrs.ceil_mode > 1"))
    assert generate.generate("xnnpack", copied)["functions"] != before["functions"]
    rules.write_text(text.replace("pool_attrs.ceil_mode != 0", "pool_attrs.IsCeiling()"))
    with pytest.raises(ArmletError, match=r"max_pool\.cc:\d+: no such method in the vocabulary: IsCeiling") as caught:
        generate.generate("xnnpack", copied)
    assert caught.value.kind is Kind.INPUT
    rules.write_text(text)
    core = copied / "onnxruntime/core/framework/kernel_registry.cc"
    core.write_text(core.read_text().replace("kernel_start_version == since_ver", "kernel_start_version <= since_ver"))
    with pytest.raises(ArmletError, match=r"VerifyVersion is not what armlet/coverage/kernels\.py restates"):
        generate.generate("xnnpack", copied)
