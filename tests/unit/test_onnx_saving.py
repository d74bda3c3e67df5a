"""What saving a model removes and what it leaves alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from armlet.errors import ArmletError, Kind
from armlet.onnx.importing import Options, import_model
from armlet.onnx.model_sources import source_of
from armlet.paths import Paths
from tests.fakes.runner import FakeRunner


def made(number: float = 1) -> Any:
    weights = numpy_helper.from_array(numpy.full((4, 400), number, numpy.float32), "w")
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, None]) for name in "xy"]
    values[0].type.tensor_type.shape.dim[1].dim_value = 4
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", values[:1], values[1:], [weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def kept_outside(folder: Path, paths: Paths, source: str) -> list[Path]:
    """Imports to ``net.onnx``; its data files."""
    options = Options(external_threshold=0)
    import_model(source_of(source, folder), folder / "net.onnx", options, paths, FakeRunner())
    return sorted(folder.glob("net.onnx.*.data"))


def imported(folder: Path, paths: Paths, source: str) -> None:
    import_model(source_of(source, folder), folder / "net.onnx", Options(), paths, FakeRunner())


def test_the_sources_own_data_stay(tmp_path: Path, paths: Paths) -> None:
    onnx.save(made(), str(tmp_path / "in.onnx"))
    (data,) = kept_outside(tmp_path, paths, "in.onnx")
    (tmp_path / "v1.onnx").write_bytes((tmp_path / "net.onnx").read_bytes())
    imported(tmp_path, paths, "v1.onnx")
    assert data.is_file()
    onnx.load(str(tmp_path / "v1.onnx"))


def test_the_replaced_models_data_go_and_the_users_files_stay(tmp_path: Path, paths: Paths) -> None:
    onnx.save(made(), str(tmp_path / "in.onnx"))
    (data,) = kept_outside(tmp_path, paths, "in.onnx")
    users = tmp_path / "net.onnx.0123abcd.data"
    users.write_bytes(b"mine")
    imported(tmp_path, paths, "in.onnx")
    assert not data.exists()
    assert users.read_bytes() == b"mine"


def test_data_that_changed_since_stay(tmp_path: Path, paths: Paths) -> None:
    onnx.save(made(), str(tmp_path / "in.onnx"))
    (data,) = kept_outside(tmp_path, paths, "in.onnx")
    data.write_bytes(b"mine")
    imported(tmp_path, paths, "in.onnx")
    assert data.read_bytes() == b"mine"


@pytest.mark.parametrize("content", ['{"epochs": 3}', "no JSON", None])
def test_what_is_no_record_is_not_written_over(tmp_path: Path, paths: Paths, content: str | None) -> None:
    onnx.save(made(), str(tmp_path / "in.onnx"))
    theirs = tmp_path / "net.onnx.json"
    if content is None:
        theirs.mkdir()
    else:
        theirs.write_text(content)
    with pytest.raises(ArmletError) as caught:
        imported(tmp_path, paths, "in.onnx")
    assert (caught.value.kind, caught.value.where) == (Kind.INPUT, str(theirs))
    assert "--out" in (caught.value.hint or "")
    assert not (tmp_path / "net.onnx").exists()
    assert theirs.is_dir() if content is None else theirs.read_text() == content
