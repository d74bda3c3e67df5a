"""Payloads and keys as other programs see them: openssl, tar, dpkg."""

from __future__ import annotations

from pathlib import Path

import pytest

from armlet.payload.keys import load_signer, new_key
from armlet.payload.pack import pack
from armlet.payload.wish import FORMATS, Delivery, Made, Wish
from armlet.process import Command, Done, HostRunner
from tests.fakes import models


def ran(*argv: str | Path) -> Done:
    return HostRunner().run(Command(argv=tuple(map(str, argv))))


def output(*argv: str | Path) -> str:
    done = ran(*argv)
    assert done.code == 0, done.output
    return done.output


def packed(folder: Path, version: str, generation: int) -> Made:
    key = folder / "release.key"
    if not key.exists():
        new_key("release", folder, passphrase="words")
    model = models.dense(folder / "dense.onnx", external="dense.data")
    models.record(model)
    wish = Wish(
        name="dense",
        version=version,
        generation=generation,
        description="Dense",
        licence="MIT",
        samples=models.samples(folder / "samples"),
    )
    signer = load_signer(key, lambda: "words")
    return pack(model, wish, signer=signer, delivery=Delivery(out=folder / "out", formats=FORMATS))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pack")


@pytest.fixture(scope="module")
def made(folder: Path) -> Made:
    return packed(folder, "1.10.0", 7)


def test_openssl_checks_the_signature(made: Made, folder: Path, tmp_path: Path) -> None:
    place = made.files["folder"]
    changed = tmp_path / "payload.json"
    changed.write_bytes((place / "payload.json").read_bytes() + b"\n")
    check = ("openssl", "pkeyutl", "-verify", "-pubin", "-inkey", folder / "release.pub", "-rawin")
    signature = ("-sigfile", place / "payload.json.sig")
    assert ran(*check, "-in", place / "payload.json", *signature).code == 0
    assert ran(*check, "-in", changed, *signature).code != 0


def test_openssl_makes_the_public_half_of_our_key_and_keys_that_we_take(folder: Path, made: Made) -> None:
    public = output("openssl", "pkey", "-in", folder / "release.key", "-passin", "pass:words", "-pubout")
    assert f"{public}\n" == (folder / "release.pub").read_text()
    output("openssl", "genpkey", "-algorithm", "ed25519", "-out", folder / "theirs.key")
    load_signer(folder / "theirs.key", lambda: "")


def test_tar_unpacks_what_the_device_unpacks(made: Made, tmp_path: Path) -> None:
    output("tar", "--extract", "--file", made.files["payload"], "--directory", tmp_path)
    assert output("diff", "--recursive", tmp_path, made.files["folder"]) == ""


def test_dpkg_reads_the_package(made: Made, tmp_path: Path) -> None:
    listed = output("dpkg-deb", "--contents", made.files["deb"])
    assert "./usr/lib/armlet/models/dense/1.10.0/payload.json.sig" in listed
    assert output("dpkg-deb", "--field", made.files["deb"], "Version") == "7:1.10.0"
    output("dpkg-deb", "--extract", made.files["deb"], tmp_path)
    place = tmp_path / "usr/lib/armlet/models/dense/1.10.0"
    assert output("diff", "--recursive", place, made.files["folder"]) == ""


def test_versions_are_in_the_order_of_their_generations(made: Made, folder: Path) -> None:
    rollback = packed(folder, "1.9.0~rc1", 8)
    versions = [output("dpkg-deb", "--field", one.files["deb"], "Version") for one in (made, rollback)]
    assert ran("dpkg", "--compare-versions", versions[0], "lt", versions[1]).code == 0
    assert ran("dpkg", "--compare-versions", "7:1.10.0", "gt", "7:1.9.0").code == 0
