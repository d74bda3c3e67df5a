"""Single kernels of the built libraries, as cores with more and with less than the SKU's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from armlet import pipeline
from armlet.config import resolve
from armlet.events import silent
from armlet.onnx.convert import convert
from armlet.onnx.int8_probes import INT8_PROBES, exact_outputs
from armlet.onnx.samples import Sample, samples_for
from armlet.paths import Paths
from armlet.qemu.place import place_of
from armlet.qemu.run import run_python
from armlet.qemu.runtime import find_runtime
from armlet.qemu.trial import Place, Wanted, attempt
from armlet.spec.cpu import CPUS
from tests.smoked import REAL

pytestmark = REAL


def built(root: Path, sku: str) -> Place:
    paths = Paths.of(root)
    pipeline.build(paths, sku, silent)
    return place_of(paths, resolve(paths, sku), find_runtime(paths, sku))


@pytest.fixture(scope="module")
def a53(root: Path) -> Place:
    return built(root, "demo-a53")


@pytest.fixture(scope="module", params=["demo-a53", "demo-a7"])
def any_place(root: Path, request: pytest.FixtureRequest) -> Place:
    return built(root, request.param)


def on(place: Place, cpu: str) -> Place:
    return replace(place, target=replace(place.target, cpu=CPUS[cpu]))


def worst(place: Place, model: Path, samples: tuple[Sample, ...], outputs: Any) -> float:
    converted = convert(model, model.with_suffix(".ort"), providers=("xnnpack", "cpu"))
    trial = attempt(
        place,
        converted.path,
        name=model.stem,
        conversion="",
        samples=samples,
        wanted=Wanted(outputs=outputs),
        with_numpy=False,
        runs=0,
    )
    assert not trial.refused
    return trial.worst_difference


def save(path: Path, nodes: list[Any], inputs: list[Any], outputs: list[Any], constants: list[Any]) -> Path:
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), str(path))
    return path


@pytest.mark.parametrize("probe", INT8_PROBES, ids=lambda probe: probe.name)
def test_a_newer_core_gets_its_dot_products_from_the_same_library(a53: Place, tmp_path: Path, probe: Any) -> None:
    """MLAS asks at run time. The tests below tell the two apart by what they compute."""
    model = probe.write(tmp_path / "probe.onnx")
    samples = samples_for(probe.name, model, {})
    assert worst(on(a53, "cortex-a76"), model, samples, exact_outputs(model, samples)) <= probe.tolerance


def test_mlas_computes_what_xnnpack_would_take(any_place: Place, tmp_path: Path) -> None:
    """Among them QLinearConv of int8 with int8, wrong on 32-bit ARM without patch 0015 (upstream's issue 16387)."""
    (probe,) = [probe for probe in INT8_PROBES if "QLinearConv" in probe.operators]
    model = probe.write(tmp_path / "probe.onnx")
    samples = samples_for(probe.name, model, {})
    alone = replace(any_place, providers=("cpu",))
    assert worst(alone, model, samples, exact_outputs(model, samples)) <= probe.tolerance


def lowest_weights(folder: Path) -> Path:
    value = helper.make_tensor_value_info
    return save(
        folder / "lowest.onnx",
        [helper.make_node("MatMulInteger", ["x", "w"], ["y"])],
        [value("x", TensorProto.UINT8, [4, 32])],
        [value("y", TensorProto.INT32, [4, 8])],
        [numpy_helper.from_array(numpy.full((32, 8), -128, numpy.int8), "w")],
    )


def test_two_weights_of_minus_128_in_a_row_are_too_much_for_a_core_without_dot_products(
    a53: Place, tmp_path: Path
) -> None:
    """The limit that docs/int8.md states (upstream's issue 31573). Where this fails, it can go from there."""
    model = lowest_weights(tmp_path)
    samples = (Sample(name="zeros", inputs={"x": numpy.zeros((4, 32), numpy.uint8)}),)
    right = [[numpy.zeros((4, 8), numpy.int32)]]
    assert worst(on(a53, "cortex-a76"), model, samples, right) == 0
    assert worst(a53, model, samples, right) == 32 * 2**15


_IN_PLACE = """
import struct, sys
from armlet_runtime import ort
options = ort.SessionOptions()
options.add_session_config_entry("session.use_ort_model_bytes_directly", "1")
options.add_session_config_entry("session.use_ort_model_bytes_for_initializers", "1")
with open(sys.argv[2], "rb") as stream:
    session = ort.InferenceSession(stream.read(), options, ["cpu"], library=sys.argv[1])
zeros = ort.Tensor(bytes(64 * int(sys.argv[4])), sys.argv[3], [64])
assert session.run(None, {"x": zeros})[0].tolist() == list(range(64))
"""


@pytest.mark.parametrize(("kind", "dtype"), [(TensorProto.INT64, "int64"), (TensorProto.FLOAT, "float32")])
def test_initialisers_are_used_in_place_wherever_they_lie(
    any_place: Place, tmp_path: Path, kind: int, dtype: str
) -> None:
    """An ORT-format file has int64 at a multiple of four; 32-bit Arm's vector loads ask for one of eight."""
    value = helper.make_tensor_value_info
    constant = numpy.arange(64).astype(dtype)
    model = save(
        tmp_path / "m.onnx",
        [helper.make_node("Add", ["x", "w"], ["y"])],
        [value("x", kind, [64])],
        [value("y", kind, [64])],
        [numpy_helper.from_array(constant, "w")],
    )
    converted = convert(model, tmp_path / "m.ort", providers=("cpu",))
    assert converted.path.read_bytes().index(constant.tobytes()) % 8 == 4
    size = str(constant.itemsize)
    arguments = ("-c", _IN_PLACE, str(any_place.library), str(converted.path), dtype, size)
    done = run_python(any_place.target, arguments, path=[any_place.device], site_packages=False)
    assert done.code == 0, done.output
