"""Golden vectors: which samples, how they are stored, and what a model that differs from its source is told."""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest

from armlet.errors import ArmletError, Kind
from armlet.onnx.reference import reference_outputs
from armlet.onnx.samples import Sample
from armlet.payload import golden
from armlet.payload.golden import FLOATS, Tolerance
from armlet.spec.payload import Tensor
from tests.fakes import models

X = Tensor(name="x", dtype="float", shape=("N", 4))
Y = Tensor(name="y", dtype="float", shape=("N", 2))


def sample(*numbers: float, name: str = "s") -> Sample:
    return Sample(name=name, inputs={"x": numpy.array([numbers], numpy.float32)})


@pytest.mark.parametrize(
    ("count", "wanted"), [(1, [0]), (2, [0, 9]), (4, [0, 3, 6, 9]), (10, [*range(10)]), (99, [*range(10)])]
)
def test_the_chosen_are_spread_over_all(count: int, wanted: list[int]) -> None:
    every = [sample(1, 2, 3, 4, name=str(index)) for index in range(10)]
    assert [int(one.name) for one in golden.choose(every, count)] == wanted


def test_elements_are_stored_little_endian_without_a_header() -> None:
    big = Sample(name="s", inputs={"x": numpy.array([[1, 2, 3, 4]], ">f4")})
    outputs = [(numpy.array([[5, 6]], numpy.float32).T.copy().T,)]
    made = golden.vectors([big], outputs, inputs=[X], outputs=[Y], tolerance=FLOATS)
    (entry,) = made.entries
    assert made.content == {
        "golden/0/input-0.bin": numpy.array([1, 2, 3, 4], "<f4").tobytes(),
        "golden/0/output-0.bin": numpy.array([5, 6], "<f4").tobytes(),
    }
    assert (entry.inputs[0].shape, entry.outputs[0].file) == ((1, 4), "golden/0/output-0.bin")
    assert (entry.name, entry.atol, entry.rtol) == ("s", 1e-4, 1e-3)


@pytest.mark.parametrize(
    "bad",
    [numpy.array([[numpy.nan, 1]]), numpy.array([[numpy.inf, 1]]), numpy.array([["a", "b"]]), numpy.zeros((0, 2))],
)
def test_outputs_that_are_no_numbers(bad: numpy.ndarray) -> None:
    with pytest.raises(ArmletError) as caught:
        golden.vectors([sample(1, 2, 3, 4)], [(bad,)], inputs=[X], outputs=[Y], tolerance=FLOATS)
    assert caught.value.kind is Kind.INPUT


def test_samples_are_what_the_model_takes() -> None:
    golden.demand_samples_fit([sample(1, 2, 3, 4)], [X])
    wrong = [
        sample(1, 2, 3),
        sample(1, 2, 3, numpy.nan),
        Sample(name="s", inputs={"z": numpy.zeros((1, 4), numpy.float32)}),
        Sample(name="s", inputs={"x": numpy.zeros((1, 4), numpy.float64)}),
        Sample(name="s", inputs={"x": numpy.zeros((0, 4), numpy.float32)}),
    ]
    for one in wrong:
        with pytest.raises(ArmletError):
            golden.demand_samples_fit([one], [X])
    with pytest.raises(ArmletError, match="text"):
        golden.demand_samples_fit([sample(1, 2, 3, 4)], [Tensor(name="x", dtype="string", shape=(1,))])


def test_a_model_must_give_what_its_source_gives(tmp_path: Path) -> None:
    chosen = [sample(1, 2, 3, 4), sample(-1, 0.5, 0, 2)]
    source, other = models.dense(tmp_path / "a.onnx"), models.dense(tmp_path / "b.onnx", weight=1.002)
    wanted = reference_outputs(source, chosen)
    assert golden.demand_met(source, chosen, wanted, tolerance=FLOATS, quantised=False) == 0
    with pytest.raises(ArmletError, match="golden") as caught:
        golden.demand_met(other, chosen, wanted, tolerance=FLOATS, quantised=False)
    assert caught.value.kind is Kind.GATE
    wide = Tolerance(atol=1e-4, rtol=3e-3)
    assert 0.5 < golden.demand_met(other, chosen, wanted, tolerance=wide, quantised=False) < 1
    # Half of a quantised model's tolerance is the target's.
    with pytest.raises(ArmletError, match="golden"):
        golden.demand_met(other, chosen, wanted, tolerance=wide, quantised=True)


@pytest.mark.parametrize("number", [numpy.nan, numpy.inf])
def test_results_that_are_no_numbers_fail(number: float, tmp_path: Path) -> None:
    broken = models.dense(tmp_path / "a.onnx", weight=number)
    wanted = [(numpy.zeros((1, 2), numpy.float32),)]
    with pytest.raises(ArmletError) as caught:
        golden.demand_met(broken, [sample(1, 2, 3, 4)], wanted, tolerance=FLOATS, quantised=False)
    assert caught.value.kind is Kind.GATE


@pytest.mark.parametrize("wanted", [numpy.zeros((1, 3), numpy.float32), numpy.zeros((1, 2), numpy.float64)])
def test_another_shape_or_type_fails(wanted: numpy.ndarray, tmp_path: Path) -> None:
    model = models.dense(tmp_path / "a.onnx")
    with pytest.raises(ArmletError, match="shape or type"):
        golden.demand_met(model, [sample(0, 0, 0, 0)], [(wanted,)], tolerance=FLOATS, quantised=False)


def test_no_tolerance_at_all_takes_equal_results(tmp_path: Path) -> None:
    model = models.dense(tmp_path / "a.onnx")
    wanted = reference_outputs(model, [sample(0, 0, 0, 0)])
    none = Tolerance(atol=0, rtol=0)
    assert golden.demand_met(model, [sample(0, 0, 0, 0)], wanted, tolerance=none, quantised=False) == 0
