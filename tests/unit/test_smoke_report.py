"""What a smoke asks of its trials, and how it tells."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest

from armlet.errors import ArmletError, Kind
from armlet.onnx.samples import Sample
from armlet.process import Command, Done
from armlet.qemu.checks import check_trial, check_wrong_conversion, fallback
from armlet.qemu.report import EMULATED, SmokeReport
from armlet.qemu.run import Target, run_on_target, run_python
from armlet.qemu.trial import Answer, Latency, Node, Place, Trial, Wanted, attempt
from armlet.spec.cpu import CPUS
from armlet.spec.sku import Provider
from tests.fakes.runner import FakeRunner

XNN, CPU = "XnnpackExecutionProvider", "CPUExecutionProvider"
CHAIN: tuple[Provider, ...] = ("xnnpack", "cpu")


def nodes(*rows: tuple[str, str, int]) -> tuple[Node, ...]:
    return tuple(
        Node(name=f"{op}-{number}", op_type=op, provider=provider)
        for op, provider, count in rows
        for number in range(count)
    )


GOOD = Trial(
    model="m",
    conversion="for xnnpack, cpu: level basic",
    with_numpy=True,
    numpy="1.24.2",
    ort_version="1.21.0",
    python="3.11.2",
    available_providers=(XNN, CPU),
    nodes=nodes(("Conv", XNN, 19), ("Conv", CPU, 1), ("Add", CPU, 2)),
    answers=(Answer(sample="up", expected=0, chosen=0, reference=0, score=0.9, difference=1e-6),),
    load_ms=3.0,
    latency_ms=Latency(runs=3, min=1.0, p50=2.0, p95=3.0, max=3.0),
    emulator_peak_rss_kib=2048,
)


def failed(trial: Trial) -> list[str]:
    return [check.name for check in check_trial(trial, CHAIN) if not check.passed]


def test_a_good_trial_passes() -> None:
    assert failed(GOOD) == []


@pytest.mark.parametrize(
    ("trial", "name"),
    [
        (replace(GOOD, refused="no kernel for Foo"), "m: loads and runs"),
        (replace(GOOD, answers=(replace(GOOD.answers[0], difference=2e-4),)), "m: agrees with x86"),
        (replace(GOOD, answers=(replace(GOOD.answers[0], difference=float("inf")),)), "m: agrees with x86"),
        (replace(GOOD, answers=(replace(GOOD.answers[0], chosen=1),)), "m: classifies as x86 does"),
        (replace(GOOD, available_providers=(CPU,)), "m: the library has the SKU's providers"),
        (replace(GOOD, nodes=nodes(("Conv", XNN, 8), ("FusedConv", CPU, 2))), "m: convolutions run on xnnpack"),
        (replace(GOOD, with_numpy=False, refused="x"), "m without NumPy: loads and runs"),
        (replace(GOOD, tolerance=1e-7), "m: agrees with x86"),
        (replace(GOOD, near_float_db=9.9), "m: is near the model of floats"),
    ],
)
def test_each_demand_fails_on_its_own(trial: Trial, name: str) -> None:
    assert failed(trial) == [name]
    assert all(check.hint for check in check_trial(trial, CHAIN) if not check.passed)


def test_a_trial_is_judged_by_its_own_tolerance() -> None:
    loose = replace(GOOD, tolerance=0.1, near_float_db=17.0, answers=(replace(GOOD.answers[0], difference=0.09),))
    assert failed(loose) == []


def test_who_ran_what_is_not_asked_of_a_probe_of_kernels() -> None:
    probe = replace(GOOD, nodes=nodes(("QLinearConv", CPU, 3)))
    assert failed(probe) == ["m: convolutions run on xnnpack"]
    assert all(check.passed for check in check_trial(probe, CHAIN, kernels_alone=True))


def test_no_class_is_asked_where_none_is_known() -> None:
    trial = replace(GOOD, answers=(replace(GOOD.answers[0], expected=None, chosen=7),))
    assert failed(trial) == []


def test_what_x86_is_wrong_about_as_well_is_told_and_not_held_against_the_target() -> None:
    trial = replace(GOOD, answers=(GOOD.answers[0], replace(GOOD.answers[0], chosen=1, reference=1)))
    assert failed(trial) == []
    (told,) = (check.found for check in check_trial(trial, CHAIN) if "classifies" in check.name)
    assert told == "1 of 2 samples; x86 is wrong about the rest"


def test_without_xnnpack_the_cpu_provider_may_have_the_convolutions() -> None:
    trial = replace(GOOD, nodes=nodes(("Conv", CPU, 9)))
    assert all(check.passed for check in check_trial(trial, ("cpu",)))


def test_a_fall_back_is_told_with_numbers_and_names() -> None:
    told = fallback(replace(GOOD, nodes=nodes(("Conv", XNN, 22), ("FusedConv", CPU, 31))), CHAIN)
    assert told == f"31 of 53 convolutions fell back from {XNN}: FusedConv on {CPU}"
    assert fallback(GOOD, CHAIN) is None


def test_a_wrong_conversion_must_be_noticed() -> None:
    assert not check_wrong_conversion(GOOD, CHAIN).passed
    fell_back = check_wrong_conversion(replace(GOOD, nodes=nodes(("FusedConv", CPU, 5))), CHAIN)
    assert fell_back.passed
    assert "5 of 5 convolutions fell back" in fell_back.found
    refused = check_wrong_conversion(replace(GOOD, refused="FusedConv(1) not implemented"), CHAIN)
    assert refused.passed
    assert "FusedConv" in refused.found


def report(*trials: Trial) -> SmokeReport:
    return SmokeReport(
        sku="demo",
        cpu="cortex-a53",
        rootfs="Debian bookworm arm64",
        library="libonnxruntime.so.1.21.0",
        library_size=3 << 20,
        beside={"libarm_compute.so.43.0.0": 24 << 20},
        trials=trials,
        checks=tuple(check for trial in trials for check in check_trial(trial, CHAIN)),
    )


def test_the_text_names_providers_numbers_and_what_they_are_worth() -> None:
    text = report(GOOD, replace(GOOD, with_numpy=False, numpy=None, refused="no kernel")).render()
    lines = [line.split() for line in text.splitlines()]
    assert ["nodes", CPU, XNN] in lines
    assert ["Conv", "1", "19"] in lines
    assert ["all", "3", "19"] in lines
    assert "3.00 MiB" in text
    assert f"p50 2.0 ms, p95 3.0 ms, 3 runs ({EMULATED})" in text
    assert "refused: no kernel" in text
    assert "FAIL  m without NumPy: loads and runs" in text


def test_the_text_ends_with_a_verdict() -> None:
    assert report(GOOD).render().splitlines()[-1] == "all 4 checks passed"
    assert report(GOOD, replace(GOOD, refused="x")).render().splitlines()[-1] == "1 of 5 checks failed"


def test_only_a_classifier_has_classes_and_scores() -> None:
    other = replace(GOOD, answers=(replace(GOOD.answers[0], expected=None),))
    heads = [text for text in report(GOOD, other).render().splitlines() if text.startswith("  sample")]
    assert heads == ["  sample  expected  found  score   off x86 by", "  sample  off x86 by"]


def test_the_json_carries_the_same_facts() -> None:
    data = json.loads(json.dumps(report(GOOD).to_json()))
    assert data["schema"] == 1
    assert data["passed"] is True
    assert data["latency_is"] == EMULATED
    assert data["trials"][0]["nodes_by_operator"] == {"Add": {CPU: 2}, "Conv": {XNN: 19, CPU: 1}}
    assert data["trials"][0]["answers"][0]["difference"] == 1e-6
    assert report(replace(GOOD, refused="x")).to_json()["passed"] is False


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Target:
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    return Target(rootfs=tmp_path / "root fs", cpu=CPUS["cortex-a53"])


def test_a_program_runs_as_the_core_of_the_sku(target: Target) -> None:
    runner = FakeRunner()
    run_python(target, ("-c", "pass"), path=[Path("/device")], site_packages=False, runner=runner)
    (command,) = runner.commands
    argv = list(command.argv)
    assert argv[argv.index("-cpu") + 1] == "cortex-a53"
    assert argv[argv.index("-L") + 1] == str(target.rootfs)
    assert argv[-4:] == [str(target.rootfs / "usr/bin/python3"), "-S", "-c", "pass"]
    assert command.env["PYTHONHOME"] == str(target.rootfs / "usr")
    assert command.env["PYTHONPATH"] == "/device"


def test_no_core_that_has_everything(target: Target) -> None:
    anything = replace(target, cpu=replace(target.cpu, qemu="max"))
    with pytest.raises(ArmletError) as caught:
        run_on_target(anything, ("/bin/true",), runner=FakeRunner())
    assert caught.value.kind is Kind.INPUT


@pytest.mark.parametrize(
    ("code", "parts"),
    [
        (-4, ("SIGILL", "an instruction that cortex-a53 does not have")),
        (132, ("SIGILL",)),
        (-11, ("SIGSEGV",)),
        (-6, ("SIGABRT", "without exceptions")),
        (-9, ("SIGKILL",)),
        (124, ("did not end within",)),
    ],
)
def test_a_signal_is_explained(target: Target, code: int, parts: tuple[str, ...]) -> None:
    runner = FakeRunner({"qemu": Done(code=code, tail=("last words",))})
    with pytest.raises(ArmletError) as caught:
        run_on_target(target, ("/bin/true",), runner=runner)
    assert caught.value.kind is Kind.TARGET
    assert all(part in caught.value.what for part in (*parts, "last words"))
    assert caught.value.hint.endswith("docs/smoke.md says how to run it by hand")


def test_an_exit_code_of_its_own_is_the_callers(target: Target) -> None:
    runner = FakeRunner({"qemu": Done(code=7, tail=())})
    assert run_on_target(target, ("/bin/true",), runner=runner).code == 7


def test_a_missing_emulator(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(ArmletError) as caught:
        run_on_target(target, ("/bin/true",), runner=FakeRunner())
    assert caught.value.kind is Kind.HOST
    assert "doctor" in caught.value.hint


REPORT: dict[str, Any] = {
    "numpy": None,
    "ort_version": "1.21.0",
    "python": "3.11.2",
    "available_providers": [CPU],
    "nodes": [{"name": "n", "op_type": "Conv", "provider": CPU, "runs": 1, "us": 5}],
    "results": [
        {"sample": "s", "outputs": [{"name": "y", "dtype": "float32", "shape": [1, 2], "values": [0.25, 0.75]}]}
    ],
    "load_ms": 1.0,
    "latency_ms": None,
    "peak_rss_kib": 1,
}


def writes(content: Any, code: int = 0) -> Callable[[Command], Done]:
    def answer(command: Command) -> Done:
        out = Path(command.argv[command.argv.index("--out") + 1])
        out.write_text(json.dumps(content), encoding="utf-8")
        return Done(code=code, tail=("said this",))

    return answer


def tried(
    target: Target, answer: Any, reference: Any = ((0.25, 0.75),), *, with_numpy: bool = False, **more: Any
) -> Trial:
    place = Place(target=target, library=Path("/l.so"), device=Path("/device"), providers=CHAIN)
    sample = Sample(name="s", inputs={"x": numpy.zeros((1, 2), numpy.float32)}, expected=1)
    return attempt(
        place,
        Path("/m.ort"),
        name="m",
        conversion="c",
        samples=[sample],
        wanted=Wanted(outputs=[[numpy.asarray(reference, numpy.float32)]], **more),
        with_numpy=with_numpy,
        runner=FakeRunner({"armlet_runtime.smoke": answer}),
    )


def test_a_trial_is_read_from_the_targets_report(target: Target) -> None:
    trial = tried(target, writes(REPORT), reference=[[0.25, 0.5]])
    assert trial.answers == (Answer(sample="s", expected=1, chosen=1, reference=1, score=0.75, difference=0.25),)
    assert trial.counts() == {"Conv": {CPU: 1}}
    assert (trial.latency_ms, trial.with_numpy) == (None, False)


def test_an_output_that_is_one_whole_number_is_the_class(target: Target) -> None:
    label = {"name": "label", "dtype": "int64", "shape": [1], "values": [1]}
    trial = tried(target, writes({**REPORT, "results": [{"sample": "s", "outputs": [label]}]}), reference=[1.0])
    assert trial.answers == (Answer(sample="s", expected=1, chosen=1, reference=0, score=1.0, difference=0.0),)


def test_a_trial_has_its_own_tolerance_and_its_distance_from_the_model_of_floats(target: Target) -> None:
    floats = [[numpy.asarray([[0.25, 0.85]])]]
    trial = tried(target, writes(REPORT), [[0.25, 0.7]], floats=floats, tolerance=0.06)
    assert trial.tolerance == 0.06
    assert trial.near_float_db == pytest.approx(10 * math.log10(0.785 / 0.01), abs=1e-4)
    assert tried(target, writes(REPORT)).near_float_db is None


def test_a_trial_with_numpy_that_had_none_is_no_trial(target: Target) -> None:
    with pytest.raises(ArmletError, match="no NumPy") as caught:
        tried(target, writes(REPORT), with_numpy=True)
    assert caught.value.kind is Kind.TARGET
    assert tried(target, writes({**REPORT, "numpy": "2.0"}), with_numpy=True).with_numpy


def test_large_values_are_compared_relatively(target: Target) -> None:
    results = [{"sample": "s", "outputs": [{"name": "y", "dtype": "float32", "shape": [2], "values": [101.0, 1e999]}]}]
    trial = tried(target, writes({**REPORT, "results": results}), reference=[100.0, float("inf")])
    assert trial.worst_difference == pytest.approx(0.01)


@pytest.mark.parametrize("reference", [[[0.25, 0.75, 0.0]], [[float("nan"), 0.75]]])
def test_another_shape_or_a_nan_is_infinitely_far(target: Target, reference: Any) -> None:
    assert tried(target, writes(REPORT), reference=reference).worst_difference == float("inf")


def test_a_refused_model_is_a_result(target: Target) -> None:
    error = {"kind": "OrtError", "code": "NOT_IMPLEMENTED", "message": "no kernel for FusedConv"}
    trial = tried(target, writes({"error": error}, code=6))
    assert trial.refused == "no kernel for FusedConv (NOT_IMPLEMENTED)"


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        (writes({"error": {"kind": "LibraryError", "code": "FAIL", "message": "needs GLIBC_2.38"}}, 6), "GLIBC_2.38"),
        (writes({"error": {"kind": "KeyError", "code": "", "message": "'runs'"}}, 2), "left no report"),
        (Done(code=1, tail=("ModuleNotFoundError: No module named 'x'",)), "No module named"),
    ],
)
def test_no_trial_without_a_report(target: Target, answer: Any, part: str) -> None:
    with pytest.raises(ArmletError) as caught:
        tried(target, answer)
    assert caught.value.kind is Kind.TARGET
    assert part in caught.value.what
