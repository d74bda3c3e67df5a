"""The factory set: what is served of it, and why the rest is not."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from armlet_runtime.serve.interface import TensorInfo
from armlet_runtime.serve.payloads import BadPayload, FactorySet, Verified, folder_problem

from tests.fakes import handmade

X: list[tuple[str, str, list[int | str]]] = [("x", "float", ["n", 3])]
Y: list[tuple[str, str, list[int | str]]] = [("y", "int64", [1])]


def put(root: Path, model: str, data: bytes = b"model", **fields: Any) -> Path:
    return handmade.write(root, model, data, X, Y, **fields)


def made(root: Path, check: Any = lambda _: ()) -> FactorySet:
    return FactorySet(root, handmade.verify_hashes, check)


def refused(root: Path, model: str = "a", check: Any = lambda _: ()) -> tuple[str, ...]:
    with pytest.raises(BadPayload) as caught:
        made(root, check).current(model)
    return caught.value.reasons


def edit(folder: Path, **fields: Any) -> None:
    manifest = json.loads((folder / "payload.json").read_bytes())
    (folder / "payload.json").write_text(json.dumps({**manifest, **fields}))


def test_what_is_served(tmp_path: Path) -> None:
    put(tmp_path, "b")
    folder = put(tmp_path, "a", version="2.0", generation=3)
    (tmp_path / ".unfinished").mkdir()
    (tmp_path / "README").touch()
    assert made(tmp_path).names() == ["a", "b"]
    found = made(tmp_path).current("a")
    assert (found.model, found.version, found.generation, found.folder) == ("a", "2.0", 3, folder)
    assert (found.model_file.read_bytes(), found.sha256) == (b"model", found.manifest["files"][0]["sha256"])
    assert found.payload_sha256 == hashlib.sha256((found.folder / "payload.json").read_bytes()).hexdigest()
    assert found.inputs == (TensorInfo("x", "float", ("n", 3)),)
    assert found.outputs == (TensorInfo("y", "int64", (1,)),)
    assert (found.rejected, folder_problem(tmp_path)) == ((), "")


def test_no_folder(tmp_path: Path) -> None:
    assert made(tmp_path / "none").names() == []
    assert folder_problem(tmp_path / "none") == f"the payloads' folder {tmp_path}/none: No such file or directory"
    assert folder_problem(tmp_path) == f"{tmp_path} holds no payload"
    assert "No such file" in refused(tmp_path)[0]
    (tmp_path / "a").mkdir()
    assert refused(tmp_path) == (f"{tmp_path}/a holds no payload",)


def test_the_newest_that_is_sound_is_served(tmp_path: Path) -> None:
    put(tmp_path, "a", version="1.0", generation=1)
    put(tmp_path, "a", version="0.9", generation=2)
    newest = put(tmp_path, "a", version="3.0", generation=3)
    assert made(tmp_path).current("a").version == "3.0"
    (newest / "model.onnx").write_bytes(b"other")
    found = made(tmp_path).current("a")
    assert found.version == "0.9"
    assert found.rejected == (f"{newest}: model.onnx is not what was signed",)


def test_two_models_of_one_name(tmp_path: Path) -> None:
    put(tmp_path, "a")
    other = put(tmp_path, "b")
    edit(other, model="a")
    assert made(tmp_path).current("a").folder == tmp_path / "a" / "1.0"
    assert refused(tmp_path, "b") == (f'{other}: it is a payload of the model "a", in the folder of "b"',)


def test_two_versions_of_one_generation(tmp_path: Path) -> None:
    two = put(tmp_path, "a", version="2.0", created="2026-01-01T00:00:00Z")
    assert made(tmp_path).current("a").rejected == ()
    for version, created in (("1.0", "2026-01-02T00:00:00Z"), ("3.0", "2026-01-01T00:00:00Z")):
        one = put(tmp_path, "a", version=version, created=created)
        found = made(tmp_path).current("a")
        assert found.folder == two
        assert f"{one}: generation 1 is version 2.0's; pack it with a higher" in found.rejected
    put(tmp_path, "a", version="0.5", generation=2)
    assert made(tmp_path).current("a").version == "0.5"


def test_another_skus_payload(tmp_path: Path) -> None:
    put(tmp_path, "a", operators={"ai.onnx": {"Einsum": []}})
    put(tmp_path, "b")

    def check(manifest: Mapping[str, Any]) -> Sequence[str]:
        return [f"no kernel for {op}" for op in manifest.get("operators", {}).get("ai.onnx", {})]

    assert refused(tmp_path, "a", check) == (f"{tmp_path}/a/1.0: not for this runtime: no kernel for Einsum",)
    assert made(tmp_path, check).current("b").version == "1.0"


@pytest.mark.parametrize(
    "fields",
    [
        {"version": "7"},
        {"files": []},
        {"files": [{"path": "model.onnx", "sha256": None}]},
        {"providers": [{"name": 3}]},
        {"providers": None},
        {"threads": "two"},
        {"golden": None},
        {"inputs": [{"name": "x", "dtype": "float", "shape": [1.5]}]},
        {"generation": "new"},
    ],
)
def test_damaged_manifests(tmp_path: Path, fields: dict[str, Any]) -> None:
    edit(put(tmp_path, "a"), **fields)
    catalogue = FactorySet(
        tmp_path, lambda folder: Verified(json.loads((folder / "payload.json").read_bytes()), ""), lambda _: ()
    )
    with pytest.raises(BadPayload):
        catalogue.current("a")


def test_files_that_are_not_there(tmp_path: Path) -> None:
    folder = put(tmp_path, "a")
    (folder / "model.onnx").unlink()
    assert "No such file" in refused(tmp_path)[0]
    (folder / "payload.json").write_text("{")
    assert refused(tmp_path) == (f"{folder}: payload.json is no JSON",)


def test_a_place_that_cannot_be_looked_at_hides_no_other(tmp_path: Path) -> None:
    put(tmp_path, "a")
    (tmp_path / "b").symlink_to("x" * 300)
    (tmp_path / "a" / "9").symlink_to("x" * 300)
    catalogue = FactorySet(tmp_path, handmade.verify_hashes, lambda _: ())
    assert list(catalogue.names()) == ["a", "b"]
    assert "too long" in catalogue.current("a").rejected[0]
    with pytest.raises(BadPayload, match="too long"):
        catalogue.current("b")
