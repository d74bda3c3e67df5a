"""Layers for tests: a project in which a SKU is built, a payload that fits it, and what is emitted of them."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any

from armlet.layers.facts import Facts
from armlet.paths import Paths
from tests.conftest import ROOT
from tests.fakes import payloads
from tests.fakes.built import fake_built
from tests.fakes.contracts import fake_payload

_WHOLE: dict[str, Any] = {
    "inputs": [{"name": "x", "dtype": "float", "shape": [1, 4]}],
    "outputs": [{"name": "y", "dtype": "float", "shape": [1, 2]}],
    "preprocessing": {},
    "threads": None,
    "quantization": None,
    "drift_reference": None,
    "budget": None,
    "source_model": "0" * 64,
}


def project(root: Path) -> Paths:
    paths = fake_built(root)
    for layer in ("meta-onnx", "br2-onnx"):
        if (ROOT / layer).is_dir():
            shutil.copytree(ROOT / layer, root / layer)
    return paths


def payload(folder: Path, **other: Any) -> Path:
    """An archive that fits whatever takes ORT format; ``other`` replaces keys of its payload.json."""
    asked = fake_payload(operators={}, element_types=["float"], providers=[{"name": "cpu", "options": {}}])
    text = payloads.manifest(**{**_WHOLE, **asked, **other})
    path = folder / f"{other.get('model', 'dense')}-{other.get('generation', 1)}.payload"
    path.write_bytes(payloads.packed(payloads.members(text=text)))
    return path


def key(folder: Path) -> Path:
    path = folder / "release.pub"
    path.write_bytes(payloads.public_pem())
    return path


def with_armhf(facts: Facts, sku: str = "demo-a7") -> Facts:
    """The same facts with a second runtime, said to be for 32 bits."""
    (first,) = facts.runtimes
    target = {"triple": "arm-linux-gnueabihf", "arch": "armhf", "float_abi": "hard"}
    target |= {"isa": "armv7-a+neon-vfpv4", "cpu": "cortex-a7"}
    made = first.built.manifest
    other = made.model_copy(update={"sku": sku, "target": made.target.model_copy(update=target)})
    built = dataclasses.replace(first.built, manifest=other)
    second = dataclasses.replace(first, sku=sku, package=f"armlet-runtime-{sku}", built=built)
    return dataclasses.replace(facts, runtimes=(first, second))
