"""Imports that end in one clear error: inputs that are no tensors, sizes that no memory holds, names too long."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from armlet.errors import ArmletError, Kind
from armlet.onnx.importing import Options, import_model
from armlet.onnx.model_sources import input_of, source_of
from armlet.onnx.samples import samples_for
from armlet.paths import Paths
from tests.fakes.runner import FakeRunner


def relu(folder: Path, *shape: int | str) -> None:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", values[:1], values[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "in.onnx")


def refused(folder: Path, paths: Paths, out: str = "m.onnx", **options: Any) -> ArmletError:
    with pytest.raises(ArmletError) as caught:
        import_model(source_of("in.onnx", folder), folder / out, Options(**options), paths, FakeRunner())
    assert caught.value.kind is Kind.INPUT
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize("sequence", [True, False])
def test_inputs_that_are_no_tensors(tmp_path: Path, paths: Paths, sequence: bool) -> None:
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, [1])
    kind = helper.make_sequence_type_proto(tensor) if sequence else helper.make_optional_type_proto(tensor)
    operator = "SequenceLength" if sequence else "OptionalHasElement"
    element = TensorProto.INT64 if sequence else TensorProto.BOOL
    taken = [helper.make_value_info("x", kind)]
    given = [helper.make_tensor_value_info("y", element, [])]
    graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"])], "g", taken, given)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "in.onnx")
    error = refused(tmp_path, paths)
    assert ("(sequence)" if sequence else "(optional)") in error.what
    assert error.where == str(tmp_path / "in.onnx")
    with pytest.raises(ArmletError, match="no tensor"):
        samples_for("m", tmp_path / "in.onnx", {})


def test_sizes_that_are_too_large_to_try(tmp_path: Path, paths: Paths) -> None:
    relu(tmp_path, 1, "n")
    error = refused(tmp_path, paths, inputs=[input_of(f"x=1,{2 * 10**9}")])
    assert f"{4 * 2 * 10**9} bytes" in error.what
    relu(tmp_path, 1, 2**50)
    assert f"{4 * 2**50} bytes" in refused(tmp_path, paths).what


def test_memory_that_is_not_there(tmp_path: Path, paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: Any) -> Any:
        raise MemoryError

    relu(tmp_path, 1, 3)
    monkeypatch.setattr("armlet.onnx.onnx_runs.random_numbers", none_left)
    assert "12 bytes" in refused(tmp_path, paths).what


def test_a_name_that_is_too_long(tmp_path: Path, paths: Paths) -> None:
    relu(tmp_path, 1, 3)
    assert "name of 305 bytes" in refused(tmp_path, paths, out="m" * 300 + ".onnx").what
    longest = tmp_path / ("m" * 195 + ".onnx")
    import_model(source_of("in.onnx", tmp_path), longest, Options(external_threshold=0), paths, FakeRunner())
    assert longest.is_file()
