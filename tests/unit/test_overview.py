"""The table over all SKUs: what was built, what was run, and what is no longer current."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from armlet import gates, overview, plan
from armlet.config import resolve
from armlet.digest import canonical_json
from armlet.gates import GateResult, Problem
from armlet.paths import Paths
from armlet.pipeline import STEPS
from armlet.steps.compile import COST
from armlet.store import Store
from tests.fakes.recipes import FakeProject

SKU = "demo-a53"
MANIFEST = {
    "schema": 1, "sku": SKU, "ort_version": "1.21.0", "ort_format_version": [5, 6], "onnx_ir_max": 10, "opsets": {},
    "flavor": "minimal", "providers": ["cpu"], "operators": {},
    "target": {"triple": "t", "arch": "aarch64", "float_abi": "aapcs64", "isa": "armv8-a", "cpu": "cortex-a53"},
    "requires": {"glibc": "2.35", "glibcxx": None, "kernel": "3.7"},
    "files": [{"path": "lib/libonnxruntime.so.1.21.0", "size": 2 << 20, "sha256": "0" * 64, "stripped": True,
               "build_id": None}],
    "source_set": {"name": "s", "sha256": "0" * 64}, "toolchain": {"name": "t", "image": "i", "compiler": "c"},
}  # fmt: skip


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return FakeProject(tmp_path).paths


def ids(paths: Paths) -> dict[str, str]:
    return {step.name: step.id for step in plan.make(resolve(paths, SKU), STEPS)}


def build(paths: Paths, build_id: str) -> Path:
    dist = paths.dist(SKU)
    dist.mkdir(parents=True)
    (dist / "runtime.json").write_text(json.dumps({**MANIFEST, "build_id": build_id}))
    results = [
        GateResult(name="machine", measured="m", problems=()),
        GateResult(name="size", measured="m", problems=(Problem(what="w", hint="h"),), of="wheel"),
    ]
    (dist / "gates.json").write_text(gates.record(results))
    return dist


def test_a_sku_that_was_never_built(paths: Paths) -> None:
    (row,) = overview.overview(paths)
    assert (row.sku, row.current, row.library, row.checks_passed) == (SKU, None, None, None)
    assert overview.cells(row)[-1] == "not built"


def test_what_was_built_and_run(paths: Paths) -> None:
    planned = ids(paths)
    dist = build(paths, planned["package"])
    (dist / f"{gates.runtime_name(resolve(paths, SKU))}.tar.xz").write_bytes(b"x" * (1 << 20))
    (dist / "smoke.json").write_text(json.dumps({"checks": [{"passed": True}, {"passed": True}, {"passed": False}]}))
    with zipfile.ZipFile(dist / "onnxruntime.whl", "w") as archive:
        archive.writestr("a", "b")
    with Store(paths.artifacts).create(planned["compile"]) as out:
        (out / COST).write_bytes(canonical_json({"cpu_seconds": 439.4, "compiled": 3, "cached": 1, "peak_rss_kib": 1}))
    (row,) = overview.overview(paths)
    cells = dict(zip(overview.HEAD, overview.cells(row), strict=True))
    assert cells["library MiB"] == "2.00"
    assert cells["package MiB"] == "1.00"
    assert cells["wheel MiB"] == "0.00"
    assert cells["glibc (floor)"] == "2.35 (2.36)"
    assert cells["gates"] == "1 of 2"
    assert cells["smoke"] == "2 of 3"
    assert (cells["compile CPU s"], cells["compiled"]) == ("439", "3 of 4")
    assert cells["current"] == "yes"


def test_what_other_recipes_made_is_not_current(paths: Paths) -> None:
    build(paths, "0" * 64)
    (row,) = overview.overview(paths, [SKU])
    assert row.current is False
    assert row.compile_cpu_seconds is None


@pytest.mark.parametrize("text", ['{"a": 1}', "[1]", "3", '{"checks": null}', '{"checks": [{}]}', "[" * 100_000, "{"])
def test_a_damaged_smoke_is_none(paths: Paths, text: str) -> None:
    dist = build(paths, ids(paths)["package"])
    (dist / "smoke.json").write_text(text)
    (row,) = overview.overview(paths)
    assert (row.checks_passed, row.gates_passed) == (None, 1)


def test_one_bad_sku_does_not_hide_the_others(paths: Paths) -> None:
    good = (paths.root / FakeProject.sku_file).read_text()
    (paths.root / "recipes/skus/bad.yaml").write_text(
        good.replace("name: demo-a53 ", "name: bad ").replace("cpu: ", "cpus: ")
    )
    bad, row = overview.overview(paths)
    assert (bad.sku, row.problem) == ("bad", "")
    assert "unknown key" in bad.problem
    assert len(overview.cells(bad)) == len(overview.HEAD)
