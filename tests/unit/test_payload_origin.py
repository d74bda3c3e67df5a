"""Where a model comes from: its source, its data files."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from armlet import digest
from armlet.errors import ArmletError
from armlet.onnx.record import write_record
from armlet.payload.origin import external_files, find_source
from armlet.spec.model_record import ModelRecord, Quantization
from tests.fakes import models

INT8 = Quantization(format="qdq", activation="int8", weight="int8", per_channel=True, calibration="6" * 64)


def quantised(model: Path, record: ModelRecord) -> ModelRecord:
    changed = record.model_copy(update={"quantization": INT8})
    write_record(model, changed)
    return changed


def test_an_imported_model_is_its_own_source(tmp_path: Path) -> None:
    model = models.dense(tmp_path / "a.onnx")
    assert find_source(model, None) == model
    assert find_source(model, models.record(model)) == model


def test_a_converted_one_came_from_the_file_with_that_hash(tmp_path: Path) -> None:
    source, other = models.dense(tmp_path / "b.onnx"), models.dense(tmp_path / "a.onnx", weight=2)
    models.record(other)
    converted = models.dense(tmp_path / "c.onnx", weight=3)
    assert find_source(converted, models.record(converted, of=source)) == source


def test_an_int8_one_came_from_the_import_of_the_same_source(tmp_path: Path) -> None:
    source = models.dense(tmp_path / "a.onnx")
    models.record(source)
    int8 = models.dense(tmp_path / "a-int8.onnx", weight=2)
    assert find_source(int8, quantised(int8, models.record(int8))) == source
    converted = models.dense(tmp_path / "a-int8-sku.onnx", weight=3)
    assert find_source(converted, quantised(converted, models.record(converted, of=int8))) == source


def test_an_int8_one_came_from_the_very_file_that_its_record_names(tmp_path: Path) -> None:
    source = models.dense(tmp_path / "a.onnx")
    int8 = models.dense(tmp_path / "a-int8.onnx", weight=2)
    record = models.record(int8)
    named = record.source.model_copy(update={"kind": "onnx", "sha256": digest.of_file(source)})
    assert find_source(int8, quantised(int8, record.model_copy(update={"source": named}))) == source


def test_two_that_fit_are_not_chosen_between(tmp_path: Path) -> None:
    int8 = models.dense(tmp_path / "int8.onnx")
    record = quantised(int8, models.record(int8))
    for name, weight in (("a.onnx", 2), ("b.onnx", 3)):
        models.record(models.dense(tmp_path / name, weight=weight))
    with pytest.raises(ArmletError, match=r"a\.onnx, b\.onnx"):
        find_source(int8, record)


def test_data_files_are_found_by_the_names_that_the_model_calls_them(tmp_path: Path) -> None:
    assert external_files(models.dense(tmp_path / "a.onnx")) == ()
    model = models.dense(tmp_path / "b.onnx", external="b.onnx.data")
    assert external_files(model) == ("b.onnx.data",)
    (tmp_path / "b.onnx.data").rename(tmp_path / "c")
    with pytest.raises(ArmletError, match=r"b\.onnx\.data"):
        external_files(model)
    (tmp_path / "b.onnx.data").symlink_to("c")
    with pytest.raises(ArmletError, match=r"b\.onnx\.data"):
        external_files(model)


@pytest.mark.parametrize("place", ["../x", "/etc/passwd", "sub/../../x"])
def test_data_files_elsewhere_are_refused(place: str, tmp_path: Path) -> None:
    model = models.dense(tmp_path / "b.onnx", external="b.onnx.data")
    (tmp_path.parent / "x").write_bytes(b"secret")
    parsed = onnx.load(str(model), load_external_data=False)
    for entry in parsed.graph.initializer[0].external_data:
        entry.value = place if entry.key == "location" else entry.value
    model.write_bytes(parsed.SerializeToString())
    with pytest.raises(ArmletError):
        external_files(model)


def test_what_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "x.onnx").write_bytes(b"\xff" * 64)
    with pytest.raises(ArmletError):
        external_files(tmp_path / "x.onnx")
