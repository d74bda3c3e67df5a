"""A layer written over an older one: edits stay, what is not generated any more goes, the rest is as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from armlet.errors import ArmletError, Kind
from armlet.layers.tree import MANIFEST, NEW, File, Written, write


def files(**texts: str) -> dict[str, File]:
    """``a__b`` is the file ``b`` in the folder ``a``."""
    return {name.replace("__", "/"): File.text(text) for name, text in texts.items()}


def snapshot(out: Path) -> dict[str, tuple[bytes, int]]:
    return {
        path.relative_to(out).as_posix(): (path.read_bytes(), path.stat().st_mode & 0o777)
        for path in sorted(out.rglob("*"))
        if path.is_file()
    }


def test_the_same_again_changes_nothing(tmp_path: Path) -> None:
    wanted = {**files(conf__layer="one"), "init": File.text("#!/bin/sh\n", 0o755)}
    assert write(tmp_path, "yocto", wanted).written == ["conf/layer", "init"]
    before, times = snapshot(tmp_path), {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert write(tmp_path, "yocto", wanted) == Written(same=["conf/layer", "init"])
    assert snapshot(tmp_path) == before
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == times
    assert before["init"][1] == 0o755


def test_two_places_get_the_same_tree(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / name, "yocto", files(b="2", a__c="1"))
    assert snapshot(tmp_path / "one") == snapshot(tmp_path / "two")


def test_what_is_not_generated_any_more_goes_with_its_folder(tmp_path: Path) -> None:
    write(tmp_path, "yocto", files(sku__a="1", sku__b="2", other="3"))
    (tmp_path / "sku/own").write_text("the user's")
    assert write(tmp_path, "yocto", files(other="3")).removed == ["sku/a", "sku/b"]
    assert snapshot(tmp_path).keys() == {MANIFEST, "other", "sku/own"}
    (tmp_path / "sku/own").unlink()
    write(tmp_path, "yocto", files(sku__a="1"))
    write(tmp_path, "yocto", files(other="3"))
    assert not (tmp_path / "sku").exists()


def test_an_edit_stays_and_what_is_new_lies_beside_it(tmp_path: Path) -> None:
    write(tmp_path, "yocto", files(a="1"))
    (tmp_path / "a").write_text("mine")
    same = write(tmp_path, "yocto", files(a="1"))
    assert (same.kept, same.offered) == (["a"], [])
    changed = write(tmp_path, "yocto", files(a="2"))
    assert (changed.kept, changed.offered) == (["a"], ["a"])
    assert ((tmp_path / "a").read_text(), (tmp_path / f"a{NEW}").read_text()) == ("mine", "2")
    before = snapshot(tmp_path)
    write(tmp_path, "yocto", files(a="2"))
    assert snapshot(tmp_path) == before
    # Who has merged it and removed it is not shown the same again, but the next one.
    (tmp_path / f"a{NEW}").unlink()
    assert write(tmp_path, "yocto", files(a="2")).offered == []
    assert write(tmp_path, "yocto", files(a="3")).offered == ["a"]


def test_an_edit_that_is_taken_back_is_generated_again(tmp_path: Path) -> None:
    write(tmp_path, "yocto", files(a="1"))
    (tmp_path / "a").write_text("mine")
    write(tmp_path, "yocto", files(a="2"))
    (tmp_path / "a").write_text("2")
    assert write(tmp_path, "yocto", files(a="3")).written == ["a"]
    assert snapshot(tmp_path).keys() == {MANIFEST, "a"}


def test_an_edited_file_outlives_what_it_was_for(tmp_path: Path) -> None:
    write(tmp_path, "yocto", files(a="1", b="1"))
    (tmp_path / "a").write_text("mine")
    write(tmp_path, "yocto", files(a="2", b="1"))
    told = write(tmp_path, "yocto", files(b="1"))
    assert (told.kept, told.removed) == (["a"], [])
    assert snapshot(tmp_path).keys() == {MANIFEST, "a", "b"}
    assert write(tmp_path, "yocto", files(b="1")).kept == []


def test_a_file_that_was_there_before_is_the_users(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    assert write(tmp_path, "yocto", {"README.md": File.text("generated")}).offered == ["README.md"]
    assert (tmp_path / "README.md").read_text() == "mine"


def test_an_interrupted_run_leaves_no_edits_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "yocto", files(a="1", b="1"))
    monkeypatch.setattr("armlet.layers.tree._take", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, "yocto", files(a="2"))
    monkeypatch.undo()
    told = write(tmp_path, "yocto", files(a="3"))
    assert (told.written, told.removed, told.kept) == (["a"], ["b"], [])


@pytest.mark.parametrize("text", ["", "[]", '{"files": {"../x": ["1"]}, "builder": "yocto"}', '{"files": {}}'])
def test_a_list_that_cannot_be_read_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(ArmletError) as raised:
        write(tmp_path, "yocto", files(a="1"))
    assert raised.value.kind is Kind.INPUT
    assert snapshot(tmp_path).keys() == {MANIFEST}


def test_another_builders_layer_is_left_alone(tmp_path: Path) -> None:
    write(tmp_path, "buildroot", files(a="1"))
    with pytest.raises(ArmletError) as raised:
        write(tmp_path, "yocto", files(b="1"))
    assert raised.value.kind is Kind.INPUT
    assert snapshot(tmp_path).keys() == {MANIFEST, "a"}


def test_the_list_has_every_hash(tmp_path: Path) -> None:
    write(tmp_path, "yocto", files(a="1"))
    write(tmp_path, "yocto", files(a="2"))
    (hashes,) = json.loads((tmp_path / MANIFEST).read_text())["files"].values()
    assert len(hashes) == 1
