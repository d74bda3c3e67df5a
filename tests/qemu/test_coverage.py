"""Predicted providers against ONNX Runtime's own profile on the target's core."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from armlet import pipeline
from armlet.config import resolve
from armlet.coverage.compare import Disagreement
from armlet.errors import ArmletError
from armlet.events import silent
from armlet.onnx.models import obtain
from armlet.onnx.placing import Placed, placed
from armlet.onnx.samples import Sample
from armlet.paths import Paths
from armlet.qemu.inspected import demand, inspect
from armlet.qemu.observe import observe, place_of
from armlet.qemu.runtime import find_runtime
from armlet.qemu.verify import compared
from tests.fakes.coverage_models import made_at_random
from tests.smoked import HEAVY, REAL

MODELS, SEED = 300, 21


@pytest.fixture(scope="module")
def paths(root: Path) -> Paths:
    return Paths.of(root)


@pytest.mark.parametrize(
    "sku",
    [
        pytest.param("demo-a53", marks=REAL),
        *(pytest.param(sku, marks=HEAVY) for sku in ("legacy-a7", "reduced-a53", "full-a53", "vision-a72-acl")),
    ],
)
def test_the_skus_own_model_runs_as_predicted(paths: Paths, sku: str) -> None:
    pipeline.build(paths, sku, silent)
    (model,) = resolve(paths, sku).sku.runtime.operators.models
    found = inspect(paths, obtain(model, paths), sku, shapes=model.inputs, verify=True)
    demand(found)
    assert found.verified is not None
    assert not found.verified.refused
    assert sum(line.provider == found.providers[0] for line in found.nodes) > 70
    assert all(line.us is not None for line in found.nodes if line.fused_into is None)
    assert sum(one.count for one in found.transposes) == found.verified.transposes


@pytest.mark.parametrize("sku", ["demo-a53", "legacy-a7", "reduced-a53", "full-a53", "vision-a72-acl"])
@pytest.mark.heavy
@pytest.mark.qemu
@pytest.mark.build
@pytest.mark.docker
@pytest.mark.timeout(5400)
def test_models_made_at_random_run_as_predicted(paths: Paths, sku: str, tmp_path: Path) -> None:
    pipeline.build(paths, sku, silent)
    manifest = find_runtime(paths, sku).manifest
    jobs: dict[Path, Sample] = {}
    predictions: dict[Path, Placed] = {}
    for model, sample in made_at_random(MODELS, SEED, tmp_path):
        try:
            found = placed(model, manifest, paths.root)
        except ArmletError:
            continue  # This machine's ONNX Runtime has no kernel for it either, and does not convert it.
        shipped = model.with_name(f"{model.stem}-shipped{found.extension}")
        shipped.write_bytes(found.model)
        jobs[shipped], predictions[shipped] = sample, found
    assert len(jobs) > MODELS * 0.95
    ran = observe(place_of(paths, sku), jobs)
    wrong: dict[str, list[Disagreement]] = {}
    providers: Counter[str] = Counter()
    for file, found in predictions.items():
        result = compared(found, ran[file], flavor=manifest.flavor)
        providers.update(row.provider for row in result.rows.values())
        if result.disagreements:
            wrong[file.name] = result.disagreements
    assert wrong == {}
    assert all(providers[provider] > 50 for provider in manifest.providers)
