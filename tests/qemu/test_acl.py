"""The Arm Compute Library on the target's core: built for real, beside ONNX Runtime and XNNPACK."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper, save

from armlet import manifest
from armlet.config import resolve
from armlet.onnx.convert import convert
from armlet.onnx.reading import Limits
from armlet.paths import Paths
from armlet.qemu.report import SmokeReport
from armlet.qemu.rootfs import make
from armlet.qemu.run import Target, run_python
from armlet.qemu.runtime import find_runtime
from tests.smoked import HEAVY, smoked

SKU = "vision-a72-acl"
LIBRARY = "libarm_compute.so.43.0.0"
ACL, XNN, CPU = "ACLExecutionProvider", "XnnpackExecutionProvider", "CPUExecutionProvider"
pytestmark = HEAVY


@pytest.fixture(scope="module")
def report(root: Path) -> SmokeReport:
    return smoked(root, SKU)


def counts(report: SmokeReport, model: str) -> dict[str, dict[str, int]]:
    trial = next(trial for trial in report.trials if trial.model == model)
    return {name: dict(row) for name, row in trial.counts().items()}


def test_what_acl_takes_and_what_falls_back(report: SmokeReport) -> None:
    found = counts(report, "text-direction")
    taken = {name: row[ACL] for name, row in found.items() if ACL in row}
    assert taken == {"Conv": 53, "Gemm": 1, "GlobalAveragePool": 10, "MaxPool": 1, "Relu": 15}
    assert found["Softmax"] == {XNN: 1}
    assert found["HardSigmoid"] == {CPU: 9}


def test_fused_convolutions_are_right(report: SmokeReport) -> None:
    name = "text-direction, converted for the CPU provider"
    # With Relu on ACL; with HardSigmoid or Clip left to the CPU provider.
    assert counts(report, name)["FusedConv"] == {ACL: 15, CPU: 16}
    (check,) = [check for check in report.checks if check.name == f"{name}: agrees with x86"]
    assert check.passed


def test_the_library_travels_and_what_it_needs_is_told(report: SmokeReport, root: Path) -> None:
    assert list(report.beside) == [LIBRARY]
    made = manifest.read_manifest(Paths.of(root).dist(SKU) / manifest.FILE)
    assert f"lib/{LIBRARY}" in {file.path for file in made.files}
    assert {"libstdc++.so.6", "libgcc_s.so.1"} <= set(made.requires.libraries)
    assert "libarm_compute.so.43" not in made.requires.libraries
    assert made.requires.glibcxx is not None


def write_models(folder: Path) -> None:
    """``mutable``: a convolution whose weights are an input. ``net``: a batch of images that are not square."""
    random = numpy.random.default_rng(0)

    def value(name: str, *shape: int) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    def constant(name: str, *shape: int) -> Any:
        return numpy_helper.from_array(random.standard_normal(shape).astype("float32"), name)

    average: dict[str, Any] = {"kernel_shape": [3, 2], "strides": [1, 2], "pads": [1, 0, 1, 0], "count_include_pad": 1}
    mutable = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"])],
        "mutable",
        [value("x", 1, 2, 5, 7), value("w", 3, 2, 3, 3)],
        [value("y", 1, 3, 3, 5)],
    )
    net = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
            helper.make_node("MaxPool", ["c"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
            helper.make_node("AveragePool", ["p"], ["q"], **average),
            helper.make_node("Flatten", ["q"], ["f"]),
            helper.make_node("Gemm", ["f", "g", "b"], ["y"], transB=1),
        ],
        "net",
        [value("x", 3, 2, 8, 14)],
        [value("y", 3, 5)],
        [constant("w", 4, 2, 3, 3), constant("g", 5, 48), constant("b", 5)],
    )
    limits = Limits(opsets={"ai.onnx": 22, "com.microsoft": 1}, onnx_ir_max=10)
    for graph in (mutable, net):
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 12)], ir_version=8)
        save(model, folder / f"{graph.name}.onnx")
        convert(
            folder / f"{graph.name}.onnx",
            folder / f"{graph.name}.ort",
            providers=("acl", "xnnpack", "cpu"),
            shapes={},
            limits=limits,
        )
    x = random.standard_normal((3, 2, 8, 14)).astype("float32")
    numpy.save(folder / "x.npy", x)
    numpy.save(folder / "y.npy", onnxruntime.InferenceSession(str(folder / "net.onnx")).run(None, {"x": x})[0])


def test_sessions_share_the_process_and_errors_are_errors(report: SmokeReport, root: Path, tmp_path: Path) -> None:
    """What patches 0007, 0009, 0010 and 0011 are for, and that an exception does not end the process."""
    write_models(tmp_path)
    paths, resolved = Paths.of(root), resolve(Paths.of(root), SKU)
    target = Target(rootfs=make(paths, suite=resolved.toolchain.base.suite), cpu=resolved.cpu)
    script = str(root / "tests/qemu/acl_sessions.py")
    library = str(find_runtime(paths, SKU).library)
    done = run_python(target, (script, library, str(tmp_path)), path=(root / "device",))
    assert done.code == 0, done.tail
    found = json.loads(next(line for line in done.tail if line.startswith("{")))
    assert "mutable weights" in found["refused"]
    assert found["providers"] == {"Conv": ACL, "MaxPool": ACL, "AveragePool": ACL, "Flatten": CPU, "Gemm": ACL}
    assert len(found["differences"]) == 3 + 4 * 20 + 5 * 2
    assert max(found["differences"]) <= 1e-4
