"""Packing for a SKU: what does not fit its runtime is not packed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from armlet.errors import ArmletError, Kind
from armlet.events import Event
from armlet.onnx import fleet
from armlet.paths import Paths
from armlet.payload.pack import pack
from armlet.payload.wish import Delivery, Made, Wish
from armlet.spec.runtime import RuntimeManifest
from tests.fakes import models
from tests.fakes.contracts import fake_runtime

REST = {
    "build_id": "1" * 64,
    "target": {"triple": "t", "arch": "aarch64", "float_abi": "aapcs64", "isa": "armv8-a", "cpu": "cortex-a72"},
    "requires": {"glibc": "2.36", "glibcxx": None, "kernel": "5.15"},
    "files": [],
    "source_set": {"name": "s", "sha256": "0" * 64},
    "toolchain": {"name": "t", "image": "sha256:0", "compiler": "gcc"},
}


def runtime(**changes: Any) -> RuntimeManifest:
    fields = {**fake_runtime(operators=None, element_types=None), **REST, **changes}
    return RuntimeManifest.model_validate_json(json.dumps(fields))


def packed(folder: Path, fits: RuntimeManifest, told: list[Event] | None = None) -> Made:
    model = models.dense(folder / "dense.onnx")
    models.record(model)
    wish = Wish(
        name="dense",
        version="1.0",
        generation=1,
        description="Dense",
        licence="MIT",
        samples=models.samples(folder / "samples", count=20),
    )
    emit = (told if told is not None else []).append
    return pack(model, wish, signer=None, delivery=Delivery(out=folder / "out"), runtime=fits, emit=emit)


def test_what_fits_is_packed_for_the_runtimes_providers(tmp_path: Path) -> None:
    told: list[Event] = []
    full = runtime(flavor="full", providers=["cpu"])
    made = packed(tmp_path, full, told)
    assert [one.name for one in made.manifest.providers] == ["cpu"]
    assert told == []
    file = tmp_path / "runtime.json"
    file.write_text(full.model_dump_json(by_alias=True))
    paths = Paths(root=tmp_path, cache=tmp_path)
    (verdict,) = fleet.judge(paths, made.files["payload"], against=[str(file)])
    assert verdict.fits


MISFITS = {
    "the format": {"flavor": "minimal"},
    "an operator": {"flavor": "reduced", "operators": {"ai.onnx": {}}},
    "the IR version": {"flavor": "full", "onnx_ir_max": 7},
    "the opset": {"flavor": "full", "opsets": {"ai.onnx": 16}},
    "the version": {"flavor": "full", "ort_version": "1.20.0"},
}


@pytest.mark.parametrize("changes", MISFITS.values(), ids=MISFITS)
def test_what_does_not_fit_is_not_packed(changes: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ArmletError) as caught:
        packed(tmp_path, runtime(**changes))
    assert caught.value.kind is Kind.GATE
    assert caught.value.hint
    assert not (tmp_path / "out").exists()


def test_what_may_not_do_as_hoped_is_told(tmp_path: Path) -> None:
    told: list[Event] = []
    packed(tmp_path, runtime(flavor="full", ort_version="1.99.0"), told)
    assert len(told) == 1
