"""``model.check``: which files are meant, what is said of them, and how it ends."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from armlet_runtime.contract import Problem

from armlet.cli import each_with_its_flag
from armlet.errors import ArmletError, Kind
from armlet.onnx import fleet
from armlet.onnx.fleet import Verdict, judge, payload_document
from armlet.paths import Paths
from armlet.verbs.model_check import told
from tests.fakes import payloads
from tests.fakes.contracts import fake_payload, fake_runtime


def built(paths: Paths, sku: str, **changes: Any) -> Path:
    folder = paths.dist(sku)
    folder.mkdir(parents=True)
    (folder / "runtime.json").write_text(json.dumps(fake_runtime(sku=sku, **changes)))
    return folder


@pytest.fixture
def payload(tmp_path: Path) -> Path:
    folder = tmp_path / "payload"
    folder.mkdir()
    (folder / "payload.json").write_text(json.dumps(fake_payload()))
    return folder


@pytest.fixture
def dist(paths: Paths) -> Path:
    built(paths, "good")
    built(paths, "old", ort_version="1.20.0")
    built(paths, "own", operators={"ai.onnx": {}})
    return paths.root / "dist"


def answer(verdicts: list[Verdict]) -> dict[str, list[str]]:
    return {one.sku: [problem.kind for problem in one.problems] for one in verdicts}


ALL = {"good": [], "old": ["min_runtime"], "own": ["operator"] * 3}


def test_without_a_name_all_that_is_built_is_meant(paths: Paths, dist: Path, payload: Path) -> None:
    assert answer(judge(paths, payload)) == ALL


def test_skus_and_patterns_add_up_and_each_file_counts_once(
    paths: Paths, dist: Path, payload: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(paths.root)
    assert answer(judge(paths, payload, skus=["old"], against=["dist/*/runtime.json", "dist/o*"])).keys() == ALL.keys()
    for against in (
        ["dist"],
        ["dist/*"],
        [str(dist / "*" / "runtime.json")],
        sorted(map(str, dist.iterdir())),
        ["**/runtime.json"],
    ):
        assert answer(judge(paths, payload, against=against)) == ALL
    assert answer(judge(paths, payload, skus=["own", "good"])) == {"own": ALL["own"], "good": []}


def test_a_payload_may_be_a_folder_its_manifest_or_an_archive(paths: Paths, dist: Path, payload: Path) -> None:
    manifest = payload / "payload.json"
    archive = payload.parent / "m.payload"
    archive.write_bytes(payloads.archive(text=payloads.manifest(**fake_payload())))
    for form in (payload, manifest, archive):
        assert answer(judge(paths, form)) == ALL


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("p.payload", b""),
        ("p.payload", b"x" * 2000),
        ("p.json", b""),
        ("p.json", b"\xff"),
        ("p.json", b"[" * 10**6),
        ("p.json", b"{"),
        ("p.ort", b"\0\0\0\0ORTM" + b"\xff" * 50),
        ("p.ort", b""),
        ("p.onnx", b"nothing of the kind"),
    ],
)
def test_a_payload_that_is_none_is_the_users_input(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ArmletError) as caught:
        payload_document(tmp_path / name)
    assert caught.value.kind is Kind.INPUT
    assert caught.value.hint
    assert str(tmp_path / name) in str(caught.value)


def test_an_archive_that_no_device_would_read_is_refused(tmp_path: Path) -> None:
    whole = payloads.archive(text=payloads.manifest(**fake_payload()))
    path = tmp_path / "m.payload"
    for data, part in (
        (whole[:-2000], "ends within"),
        (payloads.packed([payloads.member("../payload.json", b"{}")]), "a path out of its folder"),
        (payloads.packed([payloads.member("model.ort", b"")]), "it holds model.ort where payload.json should be"),
    ):
        path.write_bytes(data)
        with pytest.raises(ArmletError, match=part) as caught:
            payload_document(path)
        assert caught.value.kind is Kind.INPUT


@pytest.mark.parametrize("name", ["payload.json", "m.onnx", "m.ort", "p.armlet"])
def test_a_pipe_is_not_waited_for(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(ArmletError, match="is no file") as caught:
        payload_document(tmp_path / name)
    assert caught.value.kind is Kind.INPUT


def test_a_runtime_json_that_is_a_pipe_is_not_waited_for(tmp_path: Path, paths: Paths, payload: Path) -> None:
    os.mkfifo(tmp_path / "runtime.json")
    with pytest.raises(ArmletError, match="is no file"):
        judge(paths, payload, against=[str(tmp_path)])


def test_what_is_not_there_is_told(paths: Paths, payload: Path) -> None:
    with pytest.raises(ArmletError, match="nothing is built") as caught:
        judge(paths, payload)
    assert "./inv build" in caught.value.hint
    with pytest.raises(ArmletError, match="nothing is built for gateway") as caught:
        judge(paths, payload, skus=["gateway"])
    assert caught.value.hint == "./inv build --sku gateway"
    with pytest.raises(ArmletError, match=r"no runtime\.json is there"):
        judge(paths, payload, against=["nowhere/*/runtime.json"])
    with pytest.raises(ArmletError, match="cannot be read: no such file"):
        payload_document(payload / "missing")
    assert caught.value.kind is Kind.INPUT


@pytest.mark.parametrize("damage", [b"", b"{", b"\0", b"[" * 10**6])
def test_a_damaged_runtime_json_is_named(paths: Paths, dist: Path, payload: Path, damage: bytes) -> None:
    (dist / "old" / "runtime.json").write_bytes(damage)
    with pytest.raises(ArmletError, match="is no JSON") as caught:
        judge(paths, payload)
    assert caught.value.where == str(dist / "old" / "runtime.json")
    assert caught.value.kind is Kind.INPUT


def test_a_runtime_json_of_another_kind_is_a_row_of_its_own(paths: Paths, dist: Path, payload: Path) -> None:
    (dist / "old" / "runtime.json").write_text("[1]")
    assert answer(judge(paths, payload)) == {**ALL, "old": ["schema"]}


def test_a_runtime_json_that_is_no_file_is_named(paths: Paths, dist: Path, payload: Path) -> None:
    (dist / "odd" / "runtime.json").mkdir(parents=True)
    for asked in ({"skus": ["odd"]}, {"against": [str(dist / "odd")]}):
        with pytest.raises(ArmletError, match=r"nothing is built for odd|cannot be read: is a directory"):
            judge(paths, payload, **asked)


def test_one_runtime_is_shown_with_every_problem_and_remedy(paths: Paths, dist: Path, payload: Path) -> None:
    (own,) = judge(paths, payload, skus=["own"])
    text = told([own])
    assert all(one.what in text and one.remedy in text for one in own.problems)
    assert "3 problems" in text
    assert told(judge(paths, payload, skus=["good"])) == "good: fits"


def test_a_fleet_is_a_table_with_the_first_problem_of_each(paths: Paths, dist: Path, payload: Path) -> None:
    verdicts = judge(paths, payload)
    rows = told(verdicts).splitlines()[2:]
    assert [row.split()[:2] for row in rows] == [["good", "fits"], ["old", "1"], ["own", "3"]]
    assert verdicts[2].problems[0].what in rows[2]
    assert verdicts[2].problems[1].what not in rows[2]


def test_a_warning_fits_and_is_shown(paths: Paths, payload: Path) -> None:
    built(paths, "new", ort_version="1.23.0")
    verdicts = judge(paths, payload, skus=["new"])
    assert verdicts[0].fits
    assert "1.23.0" in told(verdicts)
    assert "fits" in told(verdicts).splitlines()[0]
    fleet.demand(verdicts)


def test_a_misfit_is_a_gate_that_failed(paths: Paths, dist: Path, payload: Path) -> None:
    with pytest.raises(ArmletError) as caught:
        fleet.demand(judge(paths, payload))
    assert caught.value.kind is Kind.GATE
    assert "old, own" in caught.value.what
    fleet.demand(judge(paths, payload, skus=["good"]))


def test_programs_get_every_problem_by_name(paths: Paths, dist: Path, payload: Path) -> None:
    found = json.loads(json.dumps([one.to_json() for one in judge(paths, payload)]))
    assert [(one["sku"], one["fits"]) for one in found] == [("good", True), ("old", False), ("own", False)]
    assert found[1]["problems"][0].keys() == set(Problem._fields)
    assert found[1]["runtime"] == str(dist / "old" / "runtime.json")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("model.check p --against a b --json", "model.check p --against a --against b --json"),
        ("model.check p --against=a b", "model.check p --against=a --against b"),
        ("model.check p --against a --sku s t", "model.check p --against a --sku s t"),
        ("model.check p --against a --against b", "model.check p --against a --against b"),
        ("build --sku a", "build --sku a"),
        ("model.check p --against", "model.check p --against"),
    ],
)
def test_a_pattern_that_the_shell_expanded_is_one_flag(given: str, meant: str) -> None:
    assert each_with_its_flag(tuple(given.split())) == tuple(meant.split())
