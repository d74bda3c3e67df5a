"""Packing: what goes into a payload, and what keeps one from being made."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy
import pytest
from armlet_runtime import payload as device

from armlet import digest
from armlet.errors import ArmletError, Kind
from armlet.events import Event
from armlet.onnx.convert import convert
from armlet.payload.keys import Signer, load_signer, new_key
from armlet.payload.pack import pack
from armlet.payload.wish import Delivery, Format, Made, Wish
from armlet.spec.payload import Budget
from tests.fakes import models


@pytest.fixture(scope="module")
def signer(tmp_path_factory: pytest.TempPathFactory) -> Signer:
    return load_signer(new_key("release", tmp_path_factory.mktemp("keys")).private, lambda: "")


@pytest.fixture
def converted(tmp_path: Path) -> Path:
    """An ORT model with its record, the ONNX model it was made from beside it."""
    source = models.dense(tmp_path / "dense.onnx")
    models.record(source)
    made = convert(source, tmp_path / "dense-a53.ort", providers=("xnnpack", "cpu"))
    models.record(made.path, of=source)
    return made.path


def wish(folder: Path, **other: Any) -> Wish:
    usual = Wish(
        name="dense",
        version="1.2.0",
        generation=7,
        description="Two numbers of four",
        licence="Apache-2.0",
        samples=models.samples(folder / "samples"),
    )
    return dataclasses.replace(usual, **other)


def packed(model: Path, signer: Signer | None, *, told: list[Event] | None = None, **other: Any) -> Made:
    out = Delivery(out=model.parent / "out")
    emit = (told if told is not None else []).append
    return pack(model, wish(model.parent, **other), signer=signer, delivery=out, emit=emit)


def refused(model: Path, signer: Signer, **other: Any) -> ArmletError:
    with pytest.raises(ArmletError) as caught:
        packed(model, signer, **other)
    assert caught.value.hint
    assert not [*model.parent.glob("out/*")]
    return caught.value


def read(made: Made, signer: Signer) -> tuple[Mapping[str, Any], dict[str, bytes]]:
    """``payload.json`` and the files, as a device has them."""
    into = made.files["payload"].parent / "unpacked"
    into.mkdir()
    got = device.verify(made.files["payload"], [signer.public], into=into)
    return got.manifest, {entry.path: (into / entry.path).read_bytes() for entry in got.files}


def test_what_is_packed_the_device_takes(converted: Path, signer: Signer) -> None:
    told: list[Event] = []
    budget = Budget(p95_ms=50)
    made = packed(converted, signer, budget=budget, threads=2, golden=2, told=told)
    assert made.files == {"payload": converted.parent / "out" / "dense-1.2.0-g7.payload"}
    manifest, files = read(made, signer)
    assert (manifest["model"], manifest["version"], manifest["generation"]) == ("dense", "1.2.0", 7)
    assert (manifest["format"], manifest["created"]) == ("ort", models.IMPORTED)
    assert manifest["providers"] == [{"name": "xnnpack", "options": {}}, {"name": "cpu", "options": {}}]
    assert manifest["source_model"] == "5" * 64
    assert manifest["budget"] == {"p95_ms": 50, "rss_mb": None}
    assert manifest["operators"]["ai.onnx"].keys() == {"MatMul", "Relu"}
    assert next(iter(files)) == "model.ort"
    assert files["model.ort"] == converted.read_bytes()
    assert len(manifest["golden"]) == 2
    assert manifest["drift_reference"] is None
    assert len(told) == 2, "why there is no drift reference; that it was converted untried"


def test_golden_vectors_are_the_sources_on_the_samples(converted: Path, signer: Signer) -> None:
    manifest, files = read(packed(converted, signer, golden=3), signer)
    assert len(manifest["golden"]) == 3
    weights = numpy.arange(8, dtype=numpy.float32).reshape(4, 2) - 3.5
    for number, entry in enumerate(manifest["golden"]):
        with numpy.load(converted.parent / "samples" / f"{entry['name']}.npz") as archive:
            x = archive["x"]
        assert files[f"golden/{number}/input-0.bin"] == x.tobytes()
        wanted = numpy.maximum(x @ weights, 0)
        got = numpy.frombuffer(files[entry["outputs"][0]["file"]], "<f4").reshape(entry["outputs"][0]["shape"])
        assert numpy.allclose(got, wanted, rtol=1e-6)


def test_equal_input_gives_equal_bytes(
    converted: Path, signer: Signer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    first = packed(converted, signer).files["payload"].read_bytes()
    elsewhere = tmp_path_factory.mktemp("another place")
    shutil.copytree(converted.parent, elsewhere, dirs_exist_ok=True)
    (elsewhere / converted.name).touch()
    assert packed(elsewhere / converted.name, signer).files["payload"].read_bytes() == first


def test_twenty_samples_make_a_drift_reference(converted: Path, signer: Signer) -> None:
    many = models.samples(converted.parent / "many", count=20)
    manifest, _ = read(packed(converted, signer, samples=many), signer)
    assert [one["of"] for one in manifest["drift_reference"]] == ["values", "mean", "std"]
    assert len(manifest["golden"]) == 5


def test_an_onnx_model_with_its_data_outside(tmp_path: Path, signer: Signer) -> None:
    model = models.dense(tmp_path / "dense.onnx", external="dense.onnx.data")
    manifest, files = read(packed(model, signer, created=models.IMPORTED), signer)
    assert [*files][:2] == ["model.onnx", "dense.onnx.data"]
    assert manifest["source_model"] == hashlib.sha256(model.read_bytes()).hexdigest()
    assert [one["name"] for one in manifest["providers"]] == ["cpu"]


@pytest.mark.parametrize("place", ["model.onnx", "Model.ONNX", "golden/0/input-0.bin", "payload.json", "a b"])
def test_data_in_the_way_of_a_payloads_own_files(place: str, tmp_path: Path, signer: Signer) -> None:
    model = models.dense(tmp_path / "dense.onnx", external=place)
    error = refused(model, signer, created=models.IMPORTED)
    assert (error.kind, error.where) == (Kind.GATE, str(model))


def test_unsigned_where_that_is_asked_for(converted: Path) -> None:
    made = packed(converted, None)
    assert made.key is None
    data = made.files["payload"].read_bytes()
    assert device.verify_archive(io.BytesIO(data), None).key is None


def test_a_model_that_is_not_its_sources_is_refused(converted: Path, signer: Signer) -> None:
    other = models.dense(converted.parent / "other.onnx", weight=2)
    assert refused(converted, signer, source=other).kind is Kind.GATE


def test_the_source_must_be_found(converted: Path, signer: Signer) -> None:
    (converted.parent / "dense.onnx").unlink()
    assert "--source" in refused(converted, signer).hint
    converted.with_name(f"{converted.name}.json").unlink()
    assert "--source" in refused(converted, signer, created=models.IMPORTED).hint


def test_a_record_of_another_model_is_refused(converted: Path, signer: Signer) -> None:
    converted.write_bytes(converted.read_bytes() + b"\0" * 64)
    assert refused(converted, signer).kind is Kind.INPUT


def test_the_time_is_chosen_or_the_environments_or_the_imports(
    converted: Path, signer: Signer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert packed(converted, signer).manifest.created == models.IMPORTED
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")
    assert packed(converted, signer, generation=8).manifest.created == "2001-09-09T01:46:40Z"
    chosen = "2020-01-01T00:00:00Z"
    assert packed(converted, signer, generation=9, created=chosen).manifest.created == chosen
    shutil.rmtree(converted.parent / "out")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "today")
    assert refused(converted, signer).kind is Kind.INPUT
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    converted.with_name(f"{converted.name}.json").unlink()
    assert "SOURCE_DATE_EPOCH" in refused(converted, signer, source=converted.with_name("dense.onnx")).hint


WRONG: dict[str, dict[str, Any]] = {
    "a name with capitals": {"name": "Dense"},
    "a name that leaves its folder": {"name": "../x"},
    "a version with a dash": {"version": "1-2"},
    "a version with a slash": {"version": "1/2"},
    "generation 0": {"generation": 0},
    "a description of two lines": {"description": "a\nb"},
    "no licence": {"licence": ""},
    "another day": {"created": "yesterday"},
    "a time before all": {"created": "1950-01-01T00:00:00Z"},
}


@pytest.mark.parametrize("other", WRONG.values(), ids=WRONG)
def test_what_the_author_may_not_say(other: dict[str, Any], converted: Path, signer: Signer) -> None:
    assert refused(converted, signer, **other).kind is Kind.INPUT


def test_more_than_the_limit_is_refused(converted: Path, signer: Signer) -> None:
    total = sum(file.size for file in packed(converted, signer).manifest.files)
    shutil.rmtree(converted.parent / "out")
    assert refused(converted, signer, limit=total - 1).kind is Kind.GATE
    packed(converted, signer, limit=total)


def test_samples_that_the_model_does_not_take(converted: Path, signer: Signer) -> None:
    other = converted.parent / "wrong"
    other.mkdir()
    numpy.savez(other / "a.npz", x=numpy.zeros((1, 5), numpy.float32))
    assert refused(converted, signer, samples=other).kind is Kind.INPUT
    assert refused(converted, signer, samples=converted.parent / "nowhere").kind is Kind.INPUT


def test_a_missing_model(converted: Path, signer: Signer) -> None:
    assert refused(converted.with_name("none.ort"), signer).kind is Kind.INPUT


def test_the_hash_that_is_told_is_that_of_what_is_signed(converted: Path, signer: Signer) -> None:
    made = packed(converted, signer)
    data = made.files["payload"].read_bytes()
    size = int(data[124:135], 8)
    assert made.sha256 == digest.of_bytes(data[512 : 512 + size])
    assert data[512 : 512 + size].endswith(b"}\n")


@pytest.mark.parametrize("formats", [("payload",), ("folder",)])
def test_a_generation_says_one_thing(formats: tuple[Format, ...], converted: Path, signer: Signer) -> None:
    delivery = Delivery(out=converted.parent / "out", formats=formats)
    first = pack(converted, wish(converted.parent), signer=signer, delivery=delivery)
    again = pack(converted, wish(converted.parent), signer=signer, delivery=delivery)
    assert again.sha256 == first.sha256
    for other in ({"description": "something else"}, {"version": "1.3.0"}):
        with pytest.raises(ArmletError, match="is there already, with other content") as caught:
            pack(converted, wish(converted.parent, **other), signer=signer, delivery=delivery)
        assert caught.value.kind is Kind.INPUT
    pack(converted, wish(converted.parent, name="dense-1"), signer=signer, delivery=delivery)
    for path in delivery.out.glob("dense-1-*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    (kept,) = first.files.values()
    assert device.verify(kept, [signer.public]).sha256 == first.sha256


@pytest.mark.parametrize("licence", ["Nonsense", "MIT OR", "Apache 2"])
def test_a_licence_is_an_spdx_expression(licence: str, converted: Path, signer: Signer) -> None:
    with pytest.raises(ArmletError, match="SPDX"):
        packed(converted, signer, licence=licence)
    assert packed(converted, signer, licence="MIT OR LicenseRef-Acme").manifest.licence == "MIT OR LicenseRef-Acme"
