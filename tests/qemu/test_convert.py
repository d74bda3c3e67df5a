"""Conversion for real: the same bytes on every processor, and models that the runtimes of the SKUs run or refuse."""

from __future__ import annotations

import itertools
import platform
import site
import sys
from pathlib import Path

import numpy
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from armlet import pipeline
from armlet.allow_list import missing
from armlet.digest import of_file
from armlet.errors import ArmletError, Kind
from armlet.events import silent
from armlet.onnx.convert import convert
from armlet.onnx.int8_probes import INT8_PROBES
from armlet.onnx.libraries import library
from armlet.onnx.models import obtain
from armlet.onnx.proposal import propose
from armlet.onnx.record import read_record
from armlet.paths import Paths
from armlet.process import Command, HostRunner
from armlet.qemu.conversion import convert_for
from armlet.recipes import SKUS
from armlet.spec.sku import Model, Provider
from tests.smoked import HEAVY

OTHER_PROCESSORS = {
    # Without AVX, and so with none of the kernels and layouts that this machine would choose.
    "x86_64": ("qemu-x86_64-static", "Nehalem"),
    "aarch64": ("qemu-aarch64-static", "cortex-a53"),
}
CHAINS: tuple[tuple[Provider, ...], ...] = (("xnnpack", "cpu"), ("cpu",))
SCRIPT = f"""
import sys
from pathlib import Path
from armlet.onnx.convert import convert
for model in Path(sys.argv[1]).iterdir():
    for providers in {CHAINS}:
        convert(model, Path(sys.argv[2], model.stem + "-".join(providers) + ".ort"), providers=providers)
"""
OCR = {
    "det": ("ch_PP-OCRv4_det_infer.onnx", "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9"),
    "rec": ("ch_PP-OCRv4_rec_infer.onnx", "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b"),
}
"""PP-OCR's models in the wheel that text-direction comes from, and their hashes."""
SHAPES = {"det": (1, 3, 320, 320), "rec": (1, 3, 48, 320)}
RUNNING_OCR = ("demo-a53", "demo-a7", "legacy-a7", "reduced-a53")


def block(path: Path) -> Path:
    """A convolution with its normalisation and activation, and a dense layer: what the optimisers compute with."""
    random = numpy.random.default_rng(0)
    constants = {
        "w": random.standard_normal((16, 3, 3, 3), numpy.float32),
        **{name: random.uniform(0.5, 2, 16).astype(numpy.float32) for name in ("scale", "bias", "mean", "var")},
        "d": random.standard_normal((16, 4), numpy.float32),
        "e": random.standard_normal(4, numpy.float32),
    }
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
            helper.make_node("BatchNormalization", ["c", "scale", "bias", "mean", "var"], ["n"]),
            helper.make_node("Relu", ["n"], ["r"]),
            helper.make_node("GlobalAveragePool", ["r"], ["g"]),
            helper.make_node("Flatten", ["g"], ["f"]),
            helper.make_node("MatMul", ["f", "d"], ["m"]),
            helper.make_node("Add", ["m", "e"], ["y"]),
        ],
        "block",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 32, 32])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    return path


@pytest.mark.qemu
def test_another_processor_converts_to_the_same_bytes(tmp_path: Path, root: Path) -> None:
    models = tmp_path / "models"
    models.mkdir()
    block(models / "block.onnx")
    for probe in INT8_PROBES:
        probe.write(models / f"{probe.name}.onnx")
    emulator, core = OTHER_PROCESSORS[platform.machine()]
    interpreter = str(Path(sys.executable).resolve())
    argv = (emulator, "-cpu", core, interpreter, "-c", SCRIPT, str(models), str(tmp_path / "there"))
    path = ":".join([str(root), *site.getsitepackages()])
    done = HostRunner().run(Command(argv=argv, cwd=root, env={"PYTHONPATH": path}))
    assert done.code == 0, done.output
    for model, providers in itertools.product(models.iterdir(), CHAINS):
        name = f"{model.stem}{'-'.join(providers)}.ort"
        here = convert(model, tmp_path / "here" / name, providers=providers)
        assert of_file(tmp_path / "there" / name) == here.sha256
        assert domains(here.path) <= {"", "com.microsoft"}


def domains(model: Path) -> set[str]:
    """Of the operators in an ORT-format file itself."""
    session = library("onnxruntime.tools.ort_format_model.ort_flatbuffers_py.fbs.InferenceSession").InferenceSession
    graph = session.GetRootAs(model.read_bytes(), 0).Model().Graph()
    return {graph.Nodes(place).Domain().decode() for place in range(graph.NodesLength())}


def ocr(root: Path, name: str) -> Path:
    paths = Paths.of(root)
    (known,) = SKUS.load(paths, "demo-a53").runtime.operators.models
    assert known.wheel is not None
    member, sha256 = OCR[name]
    wheel = known.wheel.model_copy(update={"member": f"rapidocr_onnxruntime/models/{member}"})
    return obtain(Model(name=name, licence=known.licence, sha256=sha256, wheel=wheel), paths)


@pytest.mark.build
@pytest.mark.parametrize("sku", ["demo-a53", "reduced-a53"])
def test_the_skus_allow_what_detection_and_recognition_ask_for(root: Path, sku: str) -> None:
    paths = Paths.of(root)
    models = [ocr(root, name) for name in OCR]
    shapes = {model: {"x": SHAPES[name]} for name, model in zip(OCR, models, strict=True)}
    runtime = SKUS.load(paths, sku).runtime
    others = [SKUS.load(paths, name).runtime for name in RUNNING_OCR]
    alike = [one for one in others if (one.flavor, one.providers) == (runtime.flavor, runtime.providers)]
    assert runtime in alike
    # With the shapes fixed and left open, for the optimisers make different operators of the two.
    for given in (shapes, {}):
        found = propose(paths, sku, models, shapes=given)
        assert len(found.entries[0].items) > 20
        assert [missing(found.entries, one.operators.allow) for one in alike] == [()] * len(alike)
        assert found.new_types == ()


@pytest.mark.build
@pytest.mark.docker
@pytest.mark.qemu
@pytest.mark.timeout(5400)
def test_a_built_runtime_takes_one_model_and_refuses_another(root: Path, tmp_path: Path) -> None:
    paths = Paths.of(root)
    pipeline.build(paths, "demo-a53", silent)
    done = convert_for(paths, block(tmp_path / "block.onnx"), "demo-a53")
    assert done.trial is not None
    assert {node.provider for node in done.trial.nodes if node.op_type == "Conv"} == {"XnnpackExecutionProvider"}
    record = read_record(done.converted.path)
    assert record is not None
    assert record.conversion is not None
    assert record.conversion.loaded

    graph = helper.make_graph(
        [helper.make_node("Erf", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
    )
    refused = tmp_path / "refused" / "erf.onnx"
    refused.parent.mkdir()
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), str(refused))
    with pytest.raises(ArmletError, match="Erf") as caught:
        convert_for(paths, refused, "demo-a53")
    assert caught.value.kind is Kind.TARGET
    assert [path.name for path in refused.parent.iterdir()] == ["erf.onnx"]


@pytest.mark.parametrize(
    ("sku", "name"),
    [pytest.param(sku, name, marks=HEAVY, id=f"{sku}-{name}") for sku in RUNNING_OCR for name in OCR],
)
def test_detection_and_recognition_run(root: Path, tmp_path: Path, sku: str, name: str) -> None:
    paths = Paths.of(root)
    pipeline.build(paths, sku, silent)
    out = tmp_path / (f"{name}.onnx" if sku == "reduced-a53" else f"{name}.ort")
    done = convert_for(paths, ocr(root, name), sku, out=out, shapes={"x": SHAPES[name]})
    assert done.trial is not None
    assert 0 < done.trial.worst_difference < 1e-4
