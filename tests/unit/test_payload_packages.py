"""Payloads as packages: what is in them, the same bytes twice, and the order of their versions."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from armlet_runtime import payload as device

from armlet import nfpm
from armlet.errors import ArmletError, Kind
from armlet.nfpm import Package, PackageFormat
from armlet.payload.keys import Signer, load_signer, new_key
from armlet.payload.pack import pack
from armlet.payload.packages import package_name, package_version
from armlet.payload.wish import FORMATS, Delivery, Made, Wish
from armlet.sbom import cyclonedx, spdx
from armlet.sbom.others import payload as bill
from tests.bills import cyclonedx_problems, spdx_problems
from tests.fakes import models
from tests.package_files import files, members

NAME = "armlet-model-dense-net"
PLACE = "usr/lib/armlet/models/dense_net/1.2.0~rc1"


@pytest.fixture(scope="module")
def signer(tmp_path_factory: pytest.TempPathFactory) -> Signer:
    return load_signer(new_key("release", tmp_path_factory.mktemp("keys")).private, lambda: "")


def packed(folder: Path, signer: Signer, *, generation: int = 7, **other: Any) -> Made:
    model = models.dense(folder / "dense.onnx")
    models.record(model)
    licence = folder / "LICENCE"
    licence.write_text("Do what you like — with care.\n")
    wish = Wish(
        name="dense_net",
        version="1.2.0~rc1",
        generation=generation,
        description="Costs $5: ${HOME}, $PATH and 'quotes'",
        licence="MIT",
        samples=models.samples(folder / "samples"),
    )
    delivery = Delivery(out=folder / "out", formats=FORMATS, licence_file=licence, maintainer="Zoë <zoe@invalid>")
    return pack(model, wish, signer=signer, delivery=dataclasses.replace(delivery, **other))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, signer: Signer) -> Made:
    return packed(tmp_path_factory.mktemp("pack"), signer)


@pytest.mark.parametrize("kind", ["deb", "ipk"])
def test_a_package_holds_the_payload_and_its_licence(
    kind: PackageFormat, made: Made, signer: Signer, tmp_path: Path
) -> None:
    parts = members(made.files[kind].read_bytes())
    assert [*parts] == ["debian-binary", "control.tar.gz", "data.tar.gz"]
    inside = {name.removeprefix("./"): value for name, value in files(parts["data.tar.gz"]).items()}
    document, changes = (f"usr/share/doc/{NAME}/{name}" for name in ("copyright", "changelog.gz"))
    assert all(name.startswith(f"{PLACE}/") for name in inside.keys() - {document, changes})
    for name, (content, info) in inside.items():
        assert (info.mode, info.uid, info.gid, info.mtime) == (0o644, 0, 0, 1769860800)
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    assert device.verify(tmp_path / PLACE, [signer.public]).sha256 == made.sha256
    assert "MIT" in (tmp_path / document).read_text()
    assert (tmp_path / document).read_text().endswith("— with care.\n")


@pytest.mark.parametrize("kind", ["deb", "ipk"])
def test_a_package_says_what_it_is(kind: PackageFormat, made: Made) -> None:
    parts = members(made.files[kind].read_bytes())
    control = files(parts["control.tar.gz"])["./control"][0].decode()
    fields = dict(line.split(": ", 1) for line in control.splitlines() if ": " in line)
    assert fields["Package"] == NAME
    assert fields["Version"] == "7:1.2.0~rc1"
    assert fields["Architecture"] == "all"
    assert fields["Maintainer"] == "Zoë <zoe@invalid>"
    assert fields["Description"] == "Costs $5: ${HOME}, $PATH and 'quotes'"
    assert made.files[kind].name == f"{NAME}_1.2.0~rc1-g7_all.{kind}"


@pytest.mark.parametrize("kind", ["deb", "ipk"])
def test_versions_side_by_side_have_names_of_their_own(kind: PackageFormat, signer: Signer, tmp_path: Path) -> None:
    parts = members(packed(tmp_path, signer, beside=True).files[kind].read_bytes())
    control = files(parts["control.tar.gz"])["./control"][0].decode().splitlines()
    assert f"Package: {NAME}-1.2.0-rc1" in control
    assert f"Conflicts: {NAME} (= 7:1.2.0~rc1)" in control


def test_everything_is_the_same_twice(made: Made, signer: Signer, tmp_path: Path) -> None:
    again = packed(tmp_path, signer)
    archives = {kind: path for kind, path in made.files.items() if path.is_file()}
    assert archives.keys() == {"payload", "deb", "ipk", "rpm", "apk"}
    for kind, path in archives.items():
        assert again.files[kind].read_bytes() == path.read_bytes(), kind


def test_the_folder_is_the_payload_and_may_be_made_anew(made: Made, signer: Signer, tmp_path: Path) -> None:
    folder = made.files["folder"]
    assert folder.name == "dense_net-1.2.0~rc1-g7"
    assert device.verify(folder, [signer.public]).sha256 == made.sha256
    again = packed(tmp_path, signer).files["folder"]
    (again / "extra").touch()
    assert packed(tmp_path, signer).files["folder"] == again
    assert device.verify(again, [signer.public]).sha256 == made.sha256
    assert {path.name for path in again.parent.iterdir()} == {path.name for path in made.files.values()}


def test_a_generation_that_no_package_can_have(made: Made) -> None:
    with pytest.raises(ArmletError) as caught:
        package_version(made.manifest.model_copy(update={"generation": 2**31}))
    assert caught.value.kind is Kind.INPUT
    assert package_name("a_b.c") == "armlet-model-a-b.c"


WRONG: dict[str, dict[str, Any]] = {
    "a generation that is too large": {"generation": 2**31},
    "a licence that is not there": {"licence_file": Path("nowhere")},
    **{
        f"maintainer {text!a}": {"maintainer": text}
        for text in ("A <a@b>\nDepends: evil", "A\rDepends: evil", "A\n", "A\x1b[2J", "A\u2028B", "")
    },
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_what_no_package_can_be_made_of_leaves_nothing(wrong: dict[str, Any], signer: Signer, tmp_path: Path) -> None:
    with pytest.raises(ArmletError) as caught:
        packed(tmp_path, signer, **wrong)
    assert caught.value.kind is Kind.INPUT
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("there", [False, True])
def test_a_package_that_fails_takes_away_what_is_new(
    there: bool, signer: Signer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if there:
        packed(tmp_path, signer, formats=("payload",))
    before = {path: path.read_bytes() for path in tmp_path.glob("out/*")}
    assert bool(before) is there

    def failing(target: Path, kind: str, *_: Any, **__: Any) -> None:
        if kind == "ipk":
            raise ArmletError("the disk is full", hint="free some", kind=Kind.HOST)
        target.write_bytes(b"")

    monkeypatch.setattr(nfpm, "write_package", failing)
    with pytest.raises(ArmletError, match="full"):
        packed(tmp_path, signer)
    assert {path: path.read_bytes() for path in tmp_path.glob("out/*")} == before
    assert (tmp_path / "out").exists() is there


@pytest.mark.parametrize("field", ["name", "version", "epoch", "description", "licence", "maintainer"])
def test_no_text_writes_fields_of_its_own(field: str, tmp_path: Path) -> None:
    usual: dict[str, Any] = dict.fromkeys(("name", "version", "description", "licence", "maintainer"), "1")
    for package in (
        Package(**{**usual, field: "1\nDepends: evil"}, created="2026-01-31T12:00:00Z", entries={}),
        Package(**usual, created="2026-01-31T12:00:00Z", entries={}, depends=("a\nDepends: evil",)),
    ):
        with pytest.raises(ArmletError) as caught:
            nfpm.write_package(tmp_path / "a.deb", "deb", package)
        assert caught.value.kind is Kind.INPUT
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(("licence", "kind"), [("Apache-2.0", "expression"), ("ask our lawyers", "license")])
def test_a_bill_of_materials(made: Made, tmp_path: Path, licence: str, kind: str) -> None:
    (tmp_path / "payload").mkdir()
    (tmp_path / "payload/model.ort").write_bytes(b"model")
    found = bill(made.manifest.model_copy(update={"licence": licence}), tmp_path / "payload")
    text = cyclonedx.text(found)
    assert cyclonedx_problems(text) == []
    assert spdx_problems(spdx.text(found), tmp_path) == []
    root = json.loads(text)["metadata"]["component"]
    assert root["type"] == "machine-learning-model"
    assert kind in root["licenses"][0]
    assert [one.path for one in found.files] == ["model.ort"]
