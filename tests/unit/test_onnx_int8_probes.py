"""The models that put 8-bit kernels to the test."""

from __future__ import annotations

from pathlib import Path

import numpy
import onnx
import pytest
from onnx import numpy_helper

from armlet.onnx.int8_probes import INT8_PROBES, Int8Probe, exact_outputs
from armlet.onnx.reference import reference_outputs
from armlet.onnx.samples import samples_for


@pytest.mark.parametrize("probe", INT8_PROBES, ids=lambda probe: probe.name)
def test_a_probes_right_answers_are_those_of_this_machine(tmp_path: Path, probe: Int8Probe) -> None:
    file = probe.write(tmp_path / "m.onnx")
    samples = samples_for(probe.name, file, {})
    exact, found = exact_outputs(file, samples), reference_outputs(file, samples)
    assert len(exact) == len(samples) > 1
    for ours, theirs in zip(exact, found, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            assert one.shape == other.shape
            assert numpy.abs(one.astype(float) - other).max() <= probe.tolerance
            assert one.size == 1 or len(numpy.unique(one)) > 8


@pytest.mark.parametrize("probe", INT8_PROBES, ids=lambda probe: probe.name)
def test_a_probe_states_its_operators_and_is_the_same_every_time(tmp_path: Path, probe: Int8Probe) -> None:
    one, other = probe.write(tmp_path / "a.onnx"), probe.write(tmp_path / "b.onnx")
    assert one.read_bytes() == other.read_bytes()
    assert {node.op_type for node in onnx.load(str(one)).graph.node} == probe.operators


@pytest.mark.parametrize("probe", INT8_PROBES, ids=lambda probe: probe.name)
def test_the_weights_of_a_probe_go_to_the_ends_but_for_the_lowest(tmp_path: Path, probe: Int8Probe) -> None:
    tensors = onnx.load(str(probe.write(tmp_path / "m.onnx"))).graph.initializer
    arrays = [array for array in map(numpy_helper.to_array, tensors) if array.ndim > 1]
    ends = {(str(array.dtype), int(array.min()), int(array.max())) for array in arrays}
    assert ends == {("int8", -127, 127), ("uint8", 0, 255)}
