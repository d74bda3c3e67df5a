"""Converting for a SKU: what is kept, what is not, and what the record says. QEMU is faked."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from armlet.digest import of_file
from armlet.errors import ArmletError, Kind
from armlet.events import Event, Note
from armlet.onnx.record import read_record, record_path, write_record
from armlet.onnx.samples import Sample
from armlet.onnx.tolerances import FLOATS, INT8
from armlet.paths import Paths
from armlet.qemu import conversion as module
from armlet.qemu import inspected
from armlet.qemu.conversion import convert_for
from armlet.qemu.inspected import inspect
from armlet.qemu.run import Target
from armlet.qemu.runtime import Runtime
from armlet.qemu.trial import Answer, Node, Place, Trial
from armlet.spec.cpu import CPUS
from armlet.spec.model_record import ModelRecord, Parity, SourceModel
from tests.fakes.recipes import FakeProject
from tests.unit.test_smoke_models import MANIFEST

SKU = "demo-a53"
SHAPE = {"x": (1, 3, 8, 8)}


class Bench:
    """The target, faked: what it was given, and what it will say."""

    def __init__(self) -> None:
        self.model = b""
        self.samples: tuple[Sample, ...] = ()
        self.tolerance = 0.0
        self.answer = Trial(model="m", conversion="c", with_numpy=True)

    def attempt(self, place: Place, model: Path, **given: Any) -> Trial:
        self.model, self.samples, self.tolerance = model.read_bytes(), given["samples"], given["wanted"].tolerance
        return replace(self.answer, tolerance=self.tolerance)

    def differs(self, by: float) -> None:
        answer = Answer(sample="random numbers 1", expected=None, chosen=0, reference=0, score=0.0, difference=by)
        self.answer = replace(self.answer, answers=(answer,))


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return FakeProject(tmp_path / "project").paths


@pytest.fixture
def bench(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """``demo-a53`` as if it were built."""
    manifest = MANIFEST.model_copy(update={"flavor": "minimal", "providers": ("xnnpack", "cpu")})
    built = Runtime(manifest=manifest, library=paths.root / "lib.so", wheel=None)
    place = Place(
        target=Target(rootfs=paths.root, cpu=CPUS["cortex-a53"]),
        library=built.library,
        device=paths.root,
        providers=("xnnpack", "cpu"),
    )
    made = Bench()
    monkeypatch.setattr(module, "find_runtime", lambda *_: built)
    monkeypatch.setattr(inspected, "find_runtime", lambda *_: built)
    monkeypatch.setattr(module, "place_of", lambda *_: place)
    monkeypatch.setattr(module, "attempt", made.attempt)
    return made


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return conv(tmp_path / "model.onnx")


def conv(path: Path, *, shape: tuple[Any, ...] = ("n", 3, "h", "w"), op: str = "Relu", filters: int = 4) -> Path:
    weights = numpy.linspace(-1, 1, filters * 3 * 3 * 3, dtype=numpy.float32).reshape(filters, 3, 3, 3)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node(op, ["c"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weights, "w")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), str(path))
    return path


def beside(model: Path) -> set[str]:
    return {path.name for path in model.parent.iterdir() if path.is_file()} - {model.name}


def test_a_sequence_is_refused_before_anything_runs(paths: Paths, bench: Bench, tmp_path: Path) -> None:
    nodes = [helper.make_node("SequenceConstruct", ["x"], ["y"])]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])]
    outputs = [helper.make_tensor_sequence_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    made = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), str(made))
    with pytest.raises(ArmletError, match='its output "y" is sequence, and payloads have tensors alone') as caught:
        convert_for(paths, made, SKU)
    assert (caught.value.kind, bench.model, beside(made)) == (Kind.INPUT, b"", set())
    with pytest.raises(ArmletError, match='its output "y" is sequence'):
        inspect(paths, made, SKU, verify=True)


def test_what_passed_is_kept_with_its_record(paths: Paths, bench: Bench, model: Path) -> None:
    done = convert_for(paths, model, SKU, shapes=SHAPE)
    out = model.with_name("model-demo-a53.ort")
    assert done.converted.path == out
    assert beside(model) == {out.name, record_path(out).name}
    assert bench.model == out.read_bytes()
    assert (done.converted.sha256, done.converted.size) == (of_file(out), out.stat().st_size)
    record = read_record(out)
    assert record is not None
    assert (record.model, record.source.kind, record.source.sha256) == (out.name, "onnx", of_file(model))
    kept = record.conversion
    assert kept is not None
    assert (kept.sku, kept.level, kept.providers, kept.loaded) == (SKU, "basic", ("xnnpack", "cpu"), True)
    assert (kept.inputs, kept.input_sha256, kept.ort_version) == (SHAPE, of_file(model), "1.21.0")


def test_the_record_of_an_imported_model_is_carried_on(paths: Paths, bench: Bench, model: Path) -> None:
    source = SourceModel(kind="torch", name="net:make", sha256="3" * 64, tools={"torch": "2.5.1"})
    parity = Parity(samples=1, tolerance=1e-4, worst=0, output="y", sample="s", index=(0,), wanted=0, got=0)
    told = ModelRecord(
        model=model.name,
        sha256=of_file(model),
        created="2026-01-31T12:00:00Z",
        source=source,
        parity=parity,
        warnings=("a batch is hard-coded",),
    )
    write_record(model, told)
    record = read_record(convert_for(paths, model, SKU, load_test=False).converted.path)
    assert record is not None
    assert (record.source, record.parity, record.created) == (source, parity, told.created)
    assert record.warnings[0] == told.warnings[0]
    assert "free channel, height or width" in record.warnings[1]


def test_a_tolerance_that_was_stated_holds(paths: Paths, bench: Bench, model: Path) -> None:
    bench.differs(5e-4)
    with pytest.raises(ArmletError):
        convert_for(paths, model, SKU, shapes=SHAPE)
    convert_for(paths, model, SKU, shapes=SHAPE, tolerance=1e-3)
    parity = Parity(samples=1, tolerance=1e-3, worst=5e-4, output="y", sample="s", index=(0,), wanted=0, got=0)
    source = SourceModel(kind="onnx", name="m", sha256="3" * 64, tools={})
    imported = ModelRecord(
        model=model.name, sha256=of_file(model), created="2026-01-31T12:00:00Z", source=source, parity=parity
    )
    write_record(model, imported)
    convert_for(paths, model, SKU, shapes=SHAPE)
    assert bench.tolerance == 1e-3


def scaler(path: Path) -> Path:
    graph = helper.make_graph(
        [helper.make_node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", offset=[1.0], scale=[2.0])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])],
    )
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("ai.onnx.ml", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), str(path))
    return path


def refused(bench: Bench) -> None:
    bench.answer = replace(bench.answer, refused="Could not find an implementation for Relu(6) (NOT_IMPLEMENTED)")


@pytest.mark.parametrize(
    ("spoil", "what", "hint"),
    [
        (
            refused,
            "demo-a53 refuses model-demo-a53.ort: Could not find an implementation for Relu",
            "inv sku.operators",
        ),
        (lambda bench: bench.differs(2e-4), "differs from this machine's ONNX Runtime by 0.0002", "qemu.smoke"),
        (lambda bench: bench.differs(float("inf")), "differs from this machine's ONNX Runtime by inf", "qemu.smoke"),
    ],
)
def test_what_failed_is_not_kept(
    paths: Paths, bench: Bench, model: Path, spoil: Callable[[Bench], None], what: str, hint: str
) -> None:
    spoil(bench)
    with pytest.raises(ArmletError) as caught:
        convert_for(paths, model, SKU, shapes=SHAPE)
    assert caught.value.kind is Kind.TARGET
    assert what in caught.value.what
    assert hint in caught.value.hint
    assert beside(model) == set()


def test_a_domain_that_the_flavor_lacks_asks_for_another_flavor(paths: Paths, bench: Bench, tmp_path: Path) -> None:
    """sku.operators would refuse to add such an operator."""
    refused(bench)
    with pytest.raises(ArmletError) as caught:
        convert_for(paths, scaler(tmp_path / "scaler.onnx"), SKU)
    assert "another flavor" in caught.value.hint
    assert "sku.operators" not in caught.value.hint


def test_what_was_there_stays_when_the_new_one_fails(paths: Paths, bench: Bench, model: Path) -> None:
    out = convert_for(paths, model, SKU, shapes=SHAPE).converted.path
    before = {name: of_file(model.parent / name) for name in beside(model)}
    refused(bench)
    with pytest.raises(ArmletError):
        convert_for(paths, conv(model, op="Sigmoid"), SKU, shapes=SHAPE)
    assert {name: of_file(model.parent / name) for name in beside(model)} == before
    assert read_record(out) is not None


def test_floats_and_int8_are_judged_each_their_way(paths: Paths, bench: Bench, model: Path, tmp_path: Path) -> None:
    bench.differs(5e-5)
    convert_for(paths, model, SKU, shapes=SHAPE)
    assert bench.tolerance == FLOATS
    int8 = quantised(tmp_path / "int8.onnx")
    bench.differs(0.04)
    convert_for(paths, int8, SKU)
    assert bench.tolerance == INT8


def quantised(path: Path) -> Path:
    scale, zero = numpy.asarray(0.1, numpy.float32), numpy.asarray(0, numpy.int8)
    graph = helper.make_graph(
        [
            helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
            helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
        [numpy_helper.from_array(scale, "s"), numpy_helper.from_array(zero, "z")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), str(path))
    return path


def test_convolutions_that_fell_back_are_told(paths: Paths, bench: Bench, model: Path) -> None:
    node = Node(name="c", op_type="Conv", provider="CPUExecutionProvider")
    bench.answer = replace(bench.answer, nodes=(node,))
    events: list[Event] = []
    done = convert_for(paths, model, SKU, shapes=SHAPE, emit=events.append)
    assert any("1 of 1 convolutions fell back" in concern for concern in done.converted.concerns)
    assert any(isinstance(event, Note) and "fell back" in event.text for event in events)


def test_a_free_batch_is_tried_with_one(paths: Paths, bench: Bench, tmp_path: Path) -> None:
    convert_for(paths, conv(tmp_path / "m.onnx", shape=("n", 3, 8, 8)), SKU)
    assert [sample.inputs["x"].shape for sample in bench.samples] == [(1, 3, 8, 8)] * 3
    free = onnx.load(str(tmp_path / "m.onnx")).graph.input[0].type.tensor_type.shape.dim[0]
    assert free.dim_param == "n"


def test_other_free_dimensions_ask_for_a_shape_or_samples(paths: Paths, bench: Bench, model: Path) -> None:
    with pytest.raises(ArmletError, match="free dimensions") as caught:
        convert_for(paths, model, SKU)
    assert caught.value.kind is Kind.INPUT
    assert "--shape x=1,3,?,?" in caught.value.hint
    assert "--samples" in caught.value.hint
    assert beside(model) == set()


def test_samples_come_from_files(paths: Paths, bench: Bench, model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "samples"
    folder.mkdir()
    numpy.savez(folder / "one.npz", x=numpy.ones((2, 3, 5, 5), numpy.float32))
    convert_for(paths, model, SKU, samples=folder)
    assert [(sample.name, sample.inputs["x"].shape) for sample in bench.samples] == [("one", (2, 3, 5, 5))]
    numpy.savez(folder / "two.npz", x=numpy.ones((2, 3, 5, 5)))
    with pytest.raises(ArmletError, match="is float64"):
        convert_for(paths, model, SKU, samples=folder)


def test_a_sku_that_is_not_built_cannot_try_a_model(paths: Paths, model: Path) -> None:
    with pytest.raises(ArmletError, match="nothing is built for demo-a53, so no model can be tried") as caught:
        convert_for(paths, model, SKU, shapes=SHAPE)
    assert caught.value.kind is Kind.INPUT
    assert "./inv build --sku demo-a53" in caught.value.hint
    assert "--no-load-test" in caught.value.hint
    assert beside(model) == set()


def test_untried_it_is_converted_by_the_source_set(paths: Paths, model: Path) -> None:
    done = convert_for(paths, model, SKU, shapes=SHAPE, load_test=False)
    assert done.trial is None
    assert json.loads(done.record.read_bytes())["conversion"]["loaded"] is False
    project = FakeProject(paths.root)
    project.change(project.source_set_file, "ai.onnx: 22", "ai.onnx: 12")
    project.change(project.sku_file, "[11, 18]", "[11, 12]")
    project.change(project.sku_file, "[10, 17]", "[10, 12]")
    with pytest.raises(ArmletError, match="and this runtime implements up to 12"):
        convert_for(paths, model, SKU, shapes=SHAPE, load_test=False)


@pytest.mark.parametrize(
    ("out", "part"),
    [("m.onnx", "models are named \\*.ort"), ("folder.ort", "is a folder"), ("model", "models are named")],
)
def test_a_place_that_does_not_fit(paths: Paths, model: Path, tmp_path: Path, out: str, part: str) -> None:
    (tmp_path / "folder.ort").mkdir()
    with pytest.raises(ArmletError, match=part) as caught:
        convert_for(paths, model, SKU, out=tmp_path / out, load_test=False)
    assert caught.value.kind is Kind.INPUT


def test_a_model_is_not_written_over_itself(paths: Paths, model: Path) -> None:
    project = FakeProject(paths.root)
    project.change(project.sku_file, "flavor: minimal", "flavor: reduced")
    before = of_file(model)
    with pytest.raises(ArmletError, match="is the model itself"):
        convert_for(paths, model, SKU, out=model, load_test=False)
    assert of_file(model) == before


def test_external_data_travels_with_the_model(paths: Paths, model: Path, tmp_path: Path) -> None:
    project = FakeProject(paths.root)
    project.change(project.sku_file, "flavor: minimal", "flavor: reduced")
    outside = tmp_path / "outside.onnx"
    conv(model, filters=40)
    onnx.save_model(onnx.load(str(model)), str(outside), save_as_external_data=True, location="w.bin", size_threshold=0)
    out = tmp_path / "shipped" / "net.onnx"
    done = convert_for(paths, outside, SKU, out=out, load_test=False)
    data = done.converted.data
    assert data is not None
    assert beside(out) == {data.name, "net.onnx.json"}
    record = read_record(out)
    assert record is not None
    assert record.external == {data.name: of_file(data)}
    (weights,) = onnx.load(str(out)).graph.initializer
    assert (numpy_helper.to_array(weights) == numpy_helper.to_array(onnx.load(str(model)).graph.initializer[0])).all()
    convert_for(paths, model, SKU, out=out, load_test=False)
    assert beside(out) == {"net.onnx.json"}


def test_what_else_lies_beside_the_target_stays(paths: Paths, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "shipped" / "net.onnx"
    out.parent.mkdir()
    users = out.with_name("net.onnx.0123abcd.data")
    users.write_bytes(b"mine")
    project = FakeProject(paths.root)
    project.change(project.sku_file, "flavor: minimal", "flavor: reduced")
    convert_for(paths, model, SKU, out=out, load_test=False)
    assert users.read_bytes() == b"mine"
    record = out.with_name("net.onnx.json")
    record.write_text("{}")
    with pytest.raises(ArmletError, match="is no record"):
        convert_for(paths, model, SKU, out=out, load_test=False)
    assert record.read_text() == "{}"
