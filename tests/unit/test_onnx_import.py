"""Importing ONNX models: what is written, what is proved, what is warned of."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from armlet import digest
from armlet.errors import ArmletError, Kind
from armlet.onnx.exporting import Run
from armlet.onnx.importing import Imported, Options, import_model
from armlet.onnx.model_sources import Input, input_of, source_of
from armlet.onnx.normalise import wish_of
from armlet.onnx.parity import Session, demand_close, worst_of
from armlet.onnx.quantising import quantise_file
from armlet.onnx.reading import read
from armlet.onnx.record import read_record, record_path
from armlet.paths import Paths
from armlet.spec.sku import Quantise
from armlet.verbs.model_import import as_json, told
from tests.fakes.contracts import fake_manifest
from tests.fakes.runner import FakeRunner
from tests.unit.test_conversion import scaler


def model(*, shape: tuple[Any, ...] = ("N", 3, 4, 4), reshape: tuple[int, ...] | None = None, opset: int = 13) -> Any:
    weights = numpy.random.default_rng(0).standard_normal((8, 3, 3, 3)).astype(numpy.float32)
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], doc_string="/home/somebody/train.py:12")]
    out = "c"
    constants = [numpy_helper.from_array(weights, "w")]
    if reshape:
        nodes.append(helper.make_node("Reshape", ["c", "to"], ["r"]))
        constants.append(numpy_helper.from_array(numpy.asarray(reshape, numpy.int64), "to"))
        out = "r"
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(out, TensorProto.FLOAT, [None] * (len(reshape) if reshape else 4))],
        constants,
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    made.metadata_props.add(key="made on", value="a machine")
    return made


def imported(folder: Path, paths: Paths, made: Any, **options: Any) -> Imported:
    (folder / "in.onnx").write_bytes(made.SerializeToString())
    source = source_of("in.onnx", folder)
    return import_model(source, folder / "out" / "m.onnx", Options(**options), paths, FakeRunner())


def test_an_onnx_model_and_its_record(tmp_path: Path, paths: Paths) -> None:
    done = imported(tmp_path, paths, model(shape=("?", 3, 4, 4)))
    record = read_record(done.path)
    assert record is not None
    assert record == done.record
    assert record.sha256 == digest.of_file(done.path)
    assert (record.source.kind, record.source.name) == ("onnx", "in.onnx")
    assert record.source.sha256 == digest.of_file(tmp_path / "in.onnx")
    assert record.parity is not None
    assert (record.parity.samples, record.parity.tolerance) == (4, 1e-4)
    assert record.parity.worst < 1e-5
    written = onnx.load(str(done.path))
    assert written.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert b"somebody" not in done.path.read_bytes()
    assert not written.metadata_props
    assert done.inputs == {"x": "float batch x 3 x 4 x 4"}
    assert str(tmp_path) not in record_path(done.path).read_text()
    assert json.loads(json.dumps(as_json(done)))["record"]["model"] == "m.onnx"
    assert str(done.path) in told(done).splitlines()[0]


def test_the_worst_element_shows_how_it_differs(tmp_path: Path, paths: Paths) -> None:
    done = imported(tmp_path, paths, model())
    assert done.record.parity is not None
    for worst, got, shown in ((1e-9, 0.123456789, True), (0.0, 0.123456788, False)):
        parity = done.record.parity.model_copy(update={"worst": worst, "got": got, "wanted": 0.123456788})
        text = told(replace(done, record=done.record.model_copy(update={"parity": parity})))
        assert ("0.123456789 instead of 0.123456788" in text) is shown
        assert ("worst element" in text) is shown


def test_equal_sources_give_equal_models(tmp_path: Path, paths: Paths) -> None:
    first = imported(tmp_path, paths, model()).path.read_bytes()
    assert imported(tmp_path, paths, model()).path.read_bytes() == first


def test_a_batch_that_has_a_name_keeps_it(tmp_path: Path, paths: Paths) -> None:
    assert imported(tmp_path, paths, model()).inputs == {"x": "float N x 3 x 4 x 4"}


def test_a_batch_that_only_looks_free_becomes_a_number(tmp_path: Path, paths: Paths) -> None:
    done = imported(tmp_path, paths, model(shape=("", 3, 4, 4), reshape=(1, 32)))
    assert done.inputs == {"x": "float 1 x 3 x 4 x 4"}
    assert any("hard-coded" in warning for warning in done.record.warnings)
    assert any("batch of 1" in note for note in done.notes)


def test_a_hard_coded_batch_is_warned_of(tmp_path: Path, paths: Paths) -> None:
    done = imported(tmp_path, paths, model(shape=(2, 3, 4, 4)))
    assert done.record.warnings == ('the batch is hard-coded: the input "x" is 2x3x4x4',)


def test_another_opset_where_it_is_asked_for(tmp_path: Path, paths: Paths) -> None:
    assert imported(tmp_path, paths, model()).opset == 13
    assert imported(tmp_path, paths, model(), opset=17).opset == 17


def test_an_ir_version_that_is_newer_than_it_need_be(tmp_path: Path, paths: Paths) -> None:
    made = model()
    made.ir_version = 11
    (tmp_path / "in.onnx").write_bytes(made.SerializeToString())
    with pytest.raises(ArmletError, match="IR"):
        Session(read(tmp_path / "in.onnx"), tmp_path)
    done = imported(tmp_path, paths, made)
    assert onnx.load(str(done.path)).ir_version == 10
    assert any("11" in note for note in done.notes)


def test_the_users_samples_are_compared_too(tmp_path: Path, paths: Paths) -> None:
    folder = tmp_path / "samples"
    folder.mkdir()
    for number in range(2):
        numpy.savez(folder / f"{number}.npz", x=numpy.full((1, 3, 4, 4), number, numpy.float32), expected=1)
    done = imported(tmp_path, paths, model(), samples=folder)
    assert done.record.parity is not None
    assert done.record.parity.samples == 6
    numpy.savez(folder / "2.npz", x=numpy.zeros((1, 3, 4), numpy.float32))
    with pytest.raises(ArmletError, match="the model takes float32"):
        imported(tmp_path, paths, model(), samples=folder)


def test_free_dimensions_want_a_size_to_try(tmp_path: Path, paths: Paths) -> None:
    made = model(shape=("N", 3, "h", "w"))
    with pytest.raises(ArmletError) as caught:
        imported(tmp_path, paths, made)
    assert "--input x=1,3,64,64" in caught.value.hint
    done = imported(tmp_path, paths, made, inputs=[Input(name="x", shape=(1, 3, 9, 7))])
    assert done.inputs == {"x": "float N x 3 x h x w"}


def test_preprocessing_goes_inside_and_into_the_record(tmp_path: Path, paths: Paths) -> None:
    wish = wish_of("mean=0.5 std=0.2 layout=nhwc input=uint8")
    done = imported(tmp_path, paths, model(), normalise=wish)
    assert done.inputs == {"x": "uint8 N x 4 x 4 x 3"}
    (baked,) = done.record.preprocessing.inside
    assert (baked.input, baked.dtype, baked.layout, baked.mean) == ("x", "uint8", "nhwc", (0.5,))


def test_preprocessing_that_does_not_come_out_right_is_refused(
    tmp_path: Path, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "armlet.onnx.baked_parity.in_numpy", lambda frames, baked, model: frames.transpose(0, 3, 1, 2) * 1.0
    )
    with pytest.raises(ArmletError, match="the model with its preprocessing inside differs by"):
        imported(tmp_path, paths, model(), normalise=wish_of("mean=0.5 layout=nhwc"))
    assert not (tmp_path / "out" / "m.onnx").exists()


def test_large_weights_lie_beside_the_model(tmp_path: Path, paths: Paths) -> None:
    made = model()
    made.graph.initializer[0].CopyFrom(
        helper.make_tensor("w", TensorProto.FLOAT, [32, 3, 3, 3], numpy.arange(864, dtype=numpy.float32))
    )
    done = imported(tmp_path, paths, made, external_threshold=0.003)
    ((name, sha256),) = done.record.external.items()
    assert digest.of_file(done.path.with_name(name)) == sha256
    assert done.size == done.path.stat().st_size + done.path.with_name(name).stat().st_size
    # Read by ours and by ONNX Runtime, from the file.
    assert (numpy_helper.to_array(read(done.path).graph.initializer[0]).ravel() == numpy.arange(864)).all()
    import onnxruntime

    onnxruntime.InferenceSession(str(done.path), providers=["CPUExecutionProvider"])
    again = imported(tmp_path, paths, made, external_threshold=40)
    assert not again.record.external
    assert sorted(path.name for path in done.path.parent.iterdir()) == ["m.onnx", "m.onnx.json"]


def text_model() -> Any:
    node = helper.make_node("Identity", ["t"], ["y"])
    values = [helper.make_tensor_value_info(name, TensorProto.STRING, [2]) for name in ("t", "y")]
    graph = helper.make_graph([node], "g", values[:1], values[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def by_data() -> Any:
    node = helper.make_node("NonZero", ["x"], ["y"])
    values = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3])]
    out = [helper.make_tensor_value_info("y", TensorProto.INT64, [2, None])]
    graph = helper.make_graph([node], "g", values, out)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.mark.parametrize(("make", "part"), [(text_model, "text (t, y)"), (by_data, "(NonZero)")])
def test_operators_that_trouble_runtimes_are_warned_of(
    tmp_path: Path, paths: Paths, make: Callable[[], Any], part: str
) -> None:
    (warning,) = imported(tmp_path, paths, make()).record.warnings
    assert part in warning


@pytest.mark.parametrize("flavor", ["minimal", "reduced"])
def test_what_the_sku_lacks(tmp_path: Path, paths: Paths, monkeypatch: pytest.MonkeyPatch, flavor: str) -> None:
    with pytest.raises(ArmletError, match="no runtime to compare with"):
        imported(tmp_path, paths, model(), sku="s")
    conv = {"since_versions": [11], "takes": [{"T": ["float"]}]}
    runtime = fake_manifest(
        sku="s", onnx_ir_max=7, opsets={"ai.onnx": 12}, flavor=flavor, operators={"ai.onnx": {"Conv": [conv]}}
    )
    monkeypatch.setattr("armlet.onnx.importing.manifest_of", lambda sku, paths: runtime)
    newer = imported(tmp_path, paths, model(), sku="s").record.warnings
    assert [any(part in one for one in newer) for part in ("IR version 8", "opset 13", "Conv")] == [True, True, False]
    lacking = imported(tmp_path, paths, by_data(), sku="s").record.warnings
    assert any("no kernel of NonZero: rebuild s with operators + NonZero" in one for one in lacking)


def test_a_domain_that_the_flavor_lacks_asks_for_another_flavor(
    tmp_path: Path, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = fake_manifest(sku="s", flavor="minimal", providers=["cpu"], opsets={"ai.onnx": 20})
    monkeypatch.setattr("armlet.onnx.importing.manifest_of", lambda sku, paths: runtime)
    told = " ".join(imported(tmp_path, paths, onnx.load(str(scaler(tmp_path / "s.onnx"))), sku="s").record.warnings)
    assert "no operators of the domain ai.onnx.ml: build s with another flavor" in told
    assert "operators +" not in told


def test_kernels_of_other_types_than_the_models_are_warned_of(
    tmp_path: Path, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    conv = {"since_versions": [11], "takes": [{"T": ["double"]}]}
    runtime = fake_manifest(sku="s", flavor="minimal", providers=["cpu"], operators={"ai.onnx": {"Conv": [conv]}})
    monkeypatch.setattr("armlet.onnx.importing.manifest_of", lambda sku, paths: runtime)
    (warning,) = imported(tmp_path, paths, model(), sku="s").record.warnings
    assert "T = float" in warning
    assert "cast around Conv" in warning


def test_a_model_that_is_not_converted_is_imported_with_a_warning(
    tmp_path: Path, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise ArmletError("ONNX Runtime refuses the model", hint="try another", kind=Kind.INPUT)

    monkeypatch.setattr("armlet.onnx.importing.manifest_of", lambda sku, paths: fake_manifest(sku="s"))
    monkeypatch.setattr("armlet.onnx.import_warnings.convert", refuse)
    assert imported(tmp_path, paths, model(), sku="s").record.warnings == (
        "on s: ONNX Runtime refuses the model: try another",
    )


def test_nothing_is_written_where_something_fails(
    tmp_path: Path, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk at the last of the files, and Ctrl-C there: neither leaves anything."""
    for error in (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), KeyboardInterrupt()):
        with monkeypatch.context() as patched:

            def fail(*_: Any, error: BaseException = error) -> None:
                raise error

            patched.setattr("armlet.onnx.record.write_whole", fail)
            with pytest.raises((ArmletError, KeyboardInterrupt)):
                imported(tmp_path, paths, model(), external_threshold=0)
        assert [*(tmp_path / "out").iterdir()] == []


def test_a_full_disk_is_the_hosts_fault(tmp_path: Path, paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ArmletError) as caught:
        imported(tmp_path, paths, model())
    assert caught.value.kind is Kind.HOST
    assert [*(tmp_path / "out").iterdir()] == []


def test_the_source_is_not_written_over(tmp_path: Path, paths: Paths) -> None:
    (tmp_path / "in.onnx").write_bytes(model().SerializeToString())
    for out, part in (("in.onnx", "the source itself"), ("m.ort", "named *.onnx")):
        with pytest.raises(ArmletError) as caught:
            import_model(source_of("in.onnx", tmp_path), tmp_path / out, Options(), paths, FakeRunner())
        assert part in caught.value.what


def test_an_int8_version_goes_on_where_the_models_record_ends(tmp_path: Path, paths: Paths) -> None:
    done = imported(tmp_path, paths, model())
    numpy.savez(tmp_path / "s.npz", x=numpy.random.default_rng(0).standard_normal((1, 3, 4, 4)).astype(numpy.float32))
    file = quantise_file(done.path, tmp_path / "int8.onnx", tmp_path / "s.npz", Quantise())
    made = file.made
    record = read_record(made.path)
    assert record is not None
    assert (record.source, record.parity) == (done.record.source, None)
    assert record.quantization is not None
    assert record.quantization.near_float_db == round(file.near_float_db, 1) > 20
    assert (made.weighted, made.in_float, file.right) == (1, (), None)
    assert (record.quantization.per_channel, record.quantization.calibration) == (True, made.calibration)
    assert "QuantizeLinear" in {node.op_type for node in onnx.load(str(made.path)).graph.node}
    numpy.savez(tmp_path / "s.npz", x=numpy.zeros((1, 3, 4, 5), numpy.float32))
    with pytest.raises(ArmletError, match="the model takes"):
        quantise_file(done.path, tmp_path / "int8.onnx", tmp_path / "s.npz", Quantise())
    with pytest.raises(ArmletError, match="the model itself"):
        quantise_file(done.path, done.path, tmp_path / "s.npz", Quantise())


class TestParity:
    def worst(self, wanted: Any, got: Any) -> Any:
        return worst_of(Run(name="s", inputs={}, outputs=(wanted,)), (got,), ("y",), Path("m"))

    def test_small_numbers_are_compared_as_they_are_and_large_ones_by_their_size(self) -> None:
        found = self.worst(numpy.array([[0.5, 1000.0]]), numpy.array([[0.501, 1000.5]]))
        assert (found.index, round(found.difference, 6)) == ((0, 0), 0.001)
        assert self.worst(numpy.array([1000.0]), numpy.array([1001.0])).difference == 0.001

    def test_what_is_no_number_must_be_none_on_both_sides(self) -> None:
        nan, inf = numpy.array([numpy.nan, numpy.inf, 1.0]), numpy.array([1.0, 1.0, 1.0])
        assert self.worst(nan, nan).difference == 0
        assert self.worst(nan, inf).difference == float("inf")
        assert self.worst(inf, nan).difference == float("inf")

    def test_texts_and_columns(self) -> None:
        assert self.worst(numpy.array(["a", "b"]), numpy.array(["a", "c"], object)).index == (1,)
        assert self.worst(numpy.array([1.0, 2.0]), numpy.array([[1.0], [2.0]])).difference == 0
        with pytest.raises(ArmletError, match="has the shapes"):
            self.worst(numpy.ones((2, 3)), numpy.ones((3, 2)))

    def test_the_worst_element_is_named(self) -> None:
        worst = self.worst(numpy.array([[0.0, 0.0]]), numpy.array([[0.0, 0.5]]))
        with pytest.raises(ArmletError) as caught:
            demand_close([worst], 1e-4, Path("m"), of="it")
        assert caught.value.kind is Kind.INPUT
        assert "y[0, 1] is 0.5 instead of 0 on s" in caught.value.what
        assert demand_close([worst], 0.5, Path("m"), of="it").index == (0, 1)


class TestSources:
    @pytest.mark.parametrize(
        ("text", "kind", "name", "stem"),
        [
            ("a.onnx", "onnx", "a.onnx", "a"),
            ("d/a.pt", "torchscript", "a.pt", "a"),
            ("a.pt2", "pt2", "a.pt2", "a"),
            ("a.KERAS", "keras", "a.KERAS", "a"),
            ("a.h5", "keras", "a.h5", "a"),
            ("a.pkl", "sklearn", "a.pkl", "a"),
            ("a.joblib", "sklearn", "a.joblib", "a"),
            ("saved/", "savedmodel", "saved", "saved"),
            ("pkg.mod:make", "torch", "pkg.mod:make", "make"),
            ("d/code.py:make", "torch", "code.py:make", "make"),
        ],
    )
    def test_kinds(self, tmp_path: Path, text: str, kind: str, name: str, stem: str) -> None:
        (tmp_path / "d").mkdir()
        (tmp_path / "saved").mkdir()
        (tmp_path / "saved" / "saved_model.pb").touch()
        (tmp_path / "d" / "code.py").touch()
        if ":" not in text and not text.endswith("/"):
            (tmp_path / text).touch()
        found = source_of(text, tmp_path)
        assert (found.kind, found.name, found.stem) == (kind, name, stem)

    @pytest.mark.parametrize("text", ["none.onnx", "a.txt", "folder", "none.py:make", "a.onnx:1"])
    def test_what_is_no_source(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "a.txt").touch()
        (tmp_path / "folder").mkdir()
        with pytest.raises(ArmletError) as caught:
            source_of(text, tmp_path)
        assert caught.value.kind is Kind.INPUT
        assert caught.value.hint
        assert source_of("a.txt", tmp_path, "sklearn").kind == "sklearn"

    def test_inputs(self) -> None:
        assert input_of("x=1,3,8,8") == Input(name="x", shape=(1, 3, 8, 8))
        assert input_of("serving:0=1,3:uint8") == Input(name="serving:0", shape=(1, 3), dtype="uint8")
        for text in ("x", "=1", "x=a", "x=0", "x=1:complex", "x=-1", "x=1,"):
            with pytest.raises(ArmletError):
                input_of(text)

    def test_a_pickle_is_refused_without_trust(self, tmp_path: Path, paths: Paths) -> None:
        (tmp_path / "a.pkl").write_bytes(b"\x80\x04.")
        with pytest.raises(ArmletError) as caught:
            import_model(source_of("a.pkl", tmp_path), tmp_path / "a.onnx", Options(), paths, FakeRunner())
        assert "--trust" in caught.value.hint
