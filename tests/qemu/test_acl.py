"""The Arm Compute Library on the target's core: built for real, beside ONNX Runtime and XNNPACK."""

from __future__ import annotations

from pathlib import Path

import pytest

from armlet import manifest, pipeline
from armlet.events import silent
from armlet.paths import Paths
from armlet.qemu.report import SmokeReport
from armlet.qemu.smoke import smoke

SKU = "vision-a72-acl"
LIBRARY = "libarm_compute.so.43.0.0"
pytestmark = [
    pytest.mark.heavy,
    pytest.mark.qemu,
    pytest.mark.build,
    pytest.mark.docker,
    pytest.mark.timeout(5400),
]


@pytest.fixture(scope="module")
def report(root: Path) -> SmokeReport:
    """The smoke of the built SKU: it raises where a check fails."""
    paths = Paths.of(root)
    pipeline.build(paths, SKU, silent)
    return smoke(paths, SKU)


def test_acl_gets_the_convolutions(report: SmokeReport) -> None:
    counts = next(trial for trial in report.trials if trial.model == "text-direction").counts()
    assert counts == {}


def test_fused_convolutions_are_right(report: SmokeReport) -> None:
    (trial,) = [trial for trial in report.trials if trial.model == "text-direction, converted for the CPU provider"]
    assert trial.counts() == {}
    assert trial.worst_difference <= 1e-4


def test_the_library_travels_and_what_it_needs_is_told(report: SmokeReport, root: Path) -> None:
    assert list(report.beside) == [LIBRARY]
    made = manifest.read_manifest(Paths.of(root).dist(SKU) / manifest.FILE)
    assert f"lib/{LIBRARY}" in {file.path for file in made.files}
    assert {"libstdc++.so.6", "libgcc_s.so.1"} <= set(made.requires.libraries)
    assert "libarm_compute.so.43" not in made.requires.libraries
    assert made.requires.glibcxx is not None
