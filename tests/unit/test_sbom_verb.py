"""``inv sbom``: whose bill it shows, where it writes, what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from invoke.exceptions import Exit

from armlet import cli, digest
from armlet.errors import ArmletError
from armlet.paths import Paths
from armlet.sbom import reading
from armlet.verbs import sbom
from tests.bills import cyclonedx_problems
from tests.fakes.recipes import ROOT, FakeProject

BILL = {
    "components": [
        {"name": "onnx", "version": "1.17.0", "type": "library", "licenses": [{"expression": "Apache-2.0"}]},
        {"name": "house", "type": "library", "licenses": [{"license": {"name": "ours"}}], "scope": "excluded"},
        {"name": "lib/x.so", "type": "file"},
    ]
}
FILES = ("sbom.cdx.json", "sbom.spdx.json", "NOTICE")


@pytest.fixture
def project(tmp_path: Path) -> FakeProject:
    made = FakeProject(tmp_path / "project")
    dist = made.paths.dist("demo-a53")
    dist.mkdir(parents=True)
    for name in FILES:
        (dist / name).write_text(json.dumps(BILL))
    sums = "".join(f"{digest.of_file(dist / name)}  {name}\n" for name in FILES)
    (dist / "SHA256SUMS").write_text(sums)
    return made


def test_a_skus_bill_is_what_the_build_wrote(project: FakeProject, tmp_path: Path) -> None:
    dist = project.paths.dist("demo-a53")
    assert sbom.of_sku(project.paths, "demo-a53", None) == [dist / name for name in FILES]
    copies = sbom.of_sku(project.paths, "demo-a53", tmp_path / "out")
    assert [path.name for path in copies] == [f"demo-a53.{name}" for name in FILES]
    assert all(path.read_text() == json.dumps(BILL) for path in copies)


def test_a_bill_that_was_changed_is_refused(project: FakeProject) -> None:
    (project.paths.dist("demo-a53") / "sbom.cdx.json").write_text("{}")
    with pytest.raises(ArmletError, match=r"sbom\.cdx\.json"):
        sbom.of_sku(project.paths, "demo-a53", None)


def test_a_sku_that_is_not_built_or_not_there(project: FakeProject, tmp_path: Path) -> None:
    empty = FakeProject(tmp_path / "other")
    with pytest.raises(ArmletError, match=r"no sbom\.cdx\.json") as told:
        sbom.of_sku(empty.paths, "demo-a53", None)
    assert "./inv build --sku demo-a53" in told.value.hint
    with pytest.raises(ArmletError, match="unknown SKU"):
        sbom.of_sku(project.paths, "demo-a54", None)


def test_a_folder_that_cannot_be_written(project: FakeProject, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ArmletError) as told:
        sbom.of_sku(project.paths, "demo-a53", tmp_path / "file")
    assert str(tmp_path / "file") in str(told.value)


def test_what_is_listed(project: FakeProject) -> None:
    assert reading.listed(project.paths.dist("demo-a53") / "sbom.cdx.json") == [
        {"name": "onnx", "version": "1.17.0", "licence": "Apache-2.0", "scope": "required"},
        {"name": "house", "version": "-", "licence": "ours", "scope": "excluded"},
    ]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"components": [{}]}', '{"components": 1}'])
def test_what_is_no_bill(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(ArmletError, match="no CycloneDX bill"):
        reading.listed(tmp_path / "x.json")


def test_the_services_bill_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "here", lambda: Paths(root=ROOT, cache=tmp_path))
    sbom.sbom.body(None, service=True, out=str(tmp_path / "out"), json=True)
    told = json.loads(capsys.readouterr().out)
    cyclonedx, spdx = map(Path, told["files"])
    assert cyclonedx_problems(cyclonedx.read_text()) == []
    files = {one["fileName"] for one in json.loads(spdx.read_text())["files"]}
    assert "./armlet_runtime/__init__.py" in files


@pytest.mark.parametrize("given", [{}, {"sku": "demo-a53", "service": True}])
def test_one_thing_at_a_time(given: dict[str, object]) -> None:
    with pytest.raises(Exit) as told:
        sbom.sbom.body(None, **given)
    assert "--payload" in (told.value.message or "")
    assert told.value.code == 2
