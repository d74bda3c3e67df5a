"""The demo's model on the runtime that was really built, on the target's core."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from armlet.paths import Paths
from armlet.qemu.report import SmokeReport
from armlet.qemu.smoke import REPORT
from armlet.qemu.trial import Trial
from tests.smoked import REAL, smoked

pytestmark = REAL

SKUS = ("demo-a53", "demo-a7")
XNN, CPU = "XnnpackExecutionProvider", "CPUExecutionProvider"


@pytest.fixture(scope="module", params=SKUS)
def report(root: Path, request: pytest.FixtureRequest) -> SmokeReport:
    return smoked(root, request.param)


def trial(report: SmokeReport, model: str, *, with_numpy: bool = True) -> Trial:
    return next(found for found in report.trials if (found.model, found.with_numpy) == (model, with_numpy))


@pytest.mark.parametrize("with_numpy", [True, False])
def test_text_is_classified_as_on_x86(report: SmokeReport, with_numpy: bool) -> None:
    answers = trial(report, "text-direction", with_numpy=with_numpy).answers
    assert Counter(answer.expected for answer in answers if answer.expected is not None) == {0: 4, 1: 4}
    assert all(answer.chosen == answer.expected for answer in answers if answer.expected is not None)
    assert max(answer.difference for answer in answers) <= 1e-4


def test_xnnpack_gets_the_convolutions(report: SmokeReport) -> None:
    counts = trial(report, "text-direction").counts()
    assert counts["Conv"] == {XNN: 53}
    assert "FusedConv" not in counts


def test_the_wrong_conversion_falls_back_and_is_told(report: SmokeReport) -> None:
    wrong = trial(report, "text-direction, converted wrongly")
    assert wrong.counts()["FusedConv"] == {CPU: 31}
    (told,) = [check.found for check in report.checks if check.name.startswith(wrong.model)]
    assert told == f"31 of 53 convolutions fell back from {XNN}: FusedConv on {CPU}"


@pytest.mark.parametrize("with_numpy", [True, False])
def test_a_clip_without_lower_bound_lets_negative_numbers_through(report: SmokeReport, with_numpy: bool) -> None:
    probe = trial(report, "clip-without-minimum", with_numpy=with_numpy)
    assert probe.worst_difference <= 1e-6
    # The Clip without any bound is fused, and so no longer a node: the case that upstream gets wrong.
    assert probe.counts() == {"Conv": {XNN: 2}, "Clip": {CPU: 1}, "Transpose": {CPU: 3}}


@pytest.mark.parametrize("with_numpy", [True, False])
def test_the_int8_version_is_right_and_near_the_floats(report: SmokeReport, with_numpy: bool) -> None:
    int8 = trial(report, "text-direction-int8", with_numpy=with_numpy)
    known = [answer for answer in int8.answers if answer.expected is not None]
    assert len(known) == 8
    assert all(answer.chosen == answer.expected for answer in known)
    assert max(answer.difference for answer in known) <= 0.01
    assert int8.near_float_db is not None
    assert int8.near_float_db >= 20


def test_xnnpack_gets_the_int8_convolutions_and_little_is_left_in_float(report: SmokeReport) -> None:
    counts = trial(report, "text-direction-int8").counts()
    assert counts["QLinearConv"] == {XNN: 53}
    assert counts["QLinearAdd"] + counts["QLinearMul"] == {CPU: 52}
    assert not {"Conv", "Add", "Mul", "Clip"} & counts.keys()


def test_products_in_whole_numbers_are_exact(report: SmokeReport) -> None:
    probe = trial(report, "integer-products")
    assert probe.worst_difference == 0
    assert probe.counts()["MatMulInteger"] == {CPU: 3}
    assert probe.counts()["ConvInteger"] == {CPU: 1}


def test_layers_that_round_are_off_by_a_step_at_most(report: SmokeReport) -> None:
    probe = trial(report, "quantised-layers")
    assert probe.worst_difference <= 2**-7
    # XNNPACK leaves to MLAS what mixes unsigned activations and signed weights.
    assert probe.counts()["QLinearConv"] == {XNN: 4, CPU: 2}
    assert probe.counts()["QLinearMatMul"] == {CPU: 3}


def test_the_report_is_beside_the_artefacts(report: SmokeReport, root: Path) -> None:
    data = json.loads((Paths.of(root).dist(report.sku) / REPORT).read_bytes())
    assert data["passed"] is True
    assert data["library_size"] == report.library_size
    assert all(found["emulator_peak_rss_kib"] > 0 for found in data["trials"])
