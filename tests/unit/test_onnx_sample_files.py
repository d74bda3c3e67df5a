"""Samples from files, and records beside models."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import numpy
import pytest

from armlet import digest
from armlet.errors import ArmletError, Kind
from armlet.onnx.record import read_record, record_path, write_record
from armlet.onnx.sample_files import demand_fit, load_samples
from armlet.spec.model_record import ModelRecord, SourceModel


def test_a_folder_of_samples_in_the_order_of_their_names(tmp_path: Path) -> None:
    numpy.savez(tmp_path / "b.npz", x=numpy.ones((1, 2), numpy.float32))
    numpy.savez(tmp_path / "a.npz", x=numpy.zeros((1, 2), numpy.float32), expected=3)
    first, second = load_samples(tmp_path)
    assert (first.name, first.expected, second.name, second.expected) == ("a", 3, "b", None)
    assert set(first.inputs) == {"x"}
    demand_fit((first, second), {"x": (numpy.dtype("float32"), (None, 2))})


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 broken"])
def test_what_is_no_archive(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(ArmletError, match=r"x\.npz"):
        load_samples(tmp_path)


def test_pickled_objects_single_arrays_and_odd_classes_are_refused(tmp_path: Path) -> None:
    numpy.savez(tmp_path / "object.npz", x=numpy.array([{}], dtype=object))
    numpy.save(tmp_path / "single.npy", numpy.ones(3))
    numpy.savez(tmp_path / "class.npz", x=numpy.ones(3), expected=0.5)
    numpy.savez(tmp_path / "only.npz", expected=1)
    for name in ("object.npz", "single.npy", "class.npz", "only.npz", "none.npz"):
        with pytest.raises(ArmletError):
            load_samples(tmp_path / name)
    with pytest.raises(ArmletError):
        load_samples(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("array", "part"),
    [
        (numpy.zeros((0, 3), numpy.float32), "no elements: 0x3"),
        (numpy.asarray([1, numpy.nan], numpy.float32), "(1 of 2)"),
        (numpy.asarray([numpy.inf, numpy.inf], numpy.float16), "(2 of 2)"),
    ],
)
def test_samples_without_numbers_are_refused(tmp_path: Path, array: numpy.ndarray, part: str) -> None:
    numpy.savez(tmp_path / "x.npz", x=array)
    with pytest.raises(ArmletError) as caught:
        load_samples(tmp_path)
    assert part in caught.value.what
    assert caught.value.kind is Kind.INPUT


@pytest.mark.parametrize(
    "shape", ["(100000000000,)", f"({2**40}, {2**40})", "__import__('os')" + "(" * 90, "(-1,)", "(" * 60]
)
def test_headers_that_make_no_sense(tmp_path: Path, shape: str) -> None:
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"1234")
    with pytest.raises(ArmletError) as caught:
        load_samples(tmp_path)
    assert caught.value.kind is Kind.INPUT
    assert "\n" not in caught.value.what


def test_a_pipe_is_no_sample(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.npz")
    with pytest.raises(ArmletError, match="is no file"):
        load_samples(tmp_path)


@pytest.mark.parametrize(
    "array",
    [numpy.ones((1, 3), numpy.float32), numpy.ones((1, 2), numpy.float64), numpy.ones((2,), numpy.float32)],
)
def test_samples_of_another_type_or_shape(tmp_path: Path, array: numpy.ndarray) -> None:
    numpy.savez(tmp_path / "x.npz", x=array)
    with pytest.raises(ArmletError, match="the model takes float32"):
        demand_fit(load_samples(tmp_path), {"x": (numpy.dtype("float32"), (None, 2))})


def test_samples_for_other_inputs(tmp_path: Path) -> None:
    numpy.savez(tmp_path / "x.npz", y=numpy.ones((1, 2), numpy.float32))
    with pytest.raises(ArmletError, match="asks for x"):
        demand_fit(load_samples(tmp_path), {"x": (numpy.dtype("float32"), (None, 2))})


def test_a_record_is_of_one_content(tmp_path: Path) -> None:
    model = tmp_path / "m.onnx"
    model.write_bytes(b"one")
    assert read_record(model) is None
    source = SourceModel(kind="onnx", name="m.onnx", sha256="0" * 64, tools={})
    record = ModelRecord(model=model.name, sha256=digest.of_file(model), created="2026-01-01T00:00:00Z", source=source)
    write_record(model, record)
    assert read_record(model) == record
    model.write_bytes(b"two")
    with pytest.raises(ArmletError, match="belongs to another"):
        read_record(model)
    record_path(model).write_text("{")
    with pytest.raises(ArmletError, match="no record"):
        read_record(model)
