from __future__ import annotations

import errno
import os
import shutil
import threading
from pathlib import Path

import pytest

from armlet.errors import ArmletError, Kind, host_error
from armlet.events import Note, silent
from armlet.store import Store, holds_copy, replace_tree

ID = "a" * 64


def test_an_output_appears_whole_when_its_step_returns(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.create(ID) as out:
        (out / "file").write_text("x")
        assert store.find(ID) is None
    found = store.find(ID)
    assert found is not None
    assert (found / "file").read_text() == "x"


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), RuntimeError(), FileNotFoundError(2, "No such file")])
def test_a_failed_step_leaves_nothing_and_its_exception_as_it_is(tmp_path: Path, failure: BaseException) -> None:
    store = Store(tmp_path)

    def fail() -> None:
        with store.create(ID) as out:
            (out / "half").write_text("x")
            raise failure

    with pytest.raises(type(failure)) as caught:
        fail()
    assert caught.value is failure
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_the_hosts_fault_and_leaves_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path)

    def fill() -> None:
        with store.create(ID):
            raise OSError(errno.ENOSPC, "No space left on device", "/somewhere")

    with pytest.raises(ArmletError) as caught:
        fill()
    assert caught.value.kind is Kind.HOST
    assert "space" in caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_swept_after_a_day(tmp_path: Path) -> None:
    old, young = tmp_path / ".staging-old", tmp_path / ".staging-young"
    old.mkdir()
    young.mkdir()
    os.utime(old, (0, 0))
    Store(tmp_path).sweep()
    assert not old.exists()
    assert young.exists()


def test_what_a_killed_process_left_of_a_step_goes_when_it_runs_again(tmp_path: Path) -> None:
    left, others = (tmp_path / f".staging-{step[:16]}-killed" for step in (ID, "b" * 64))
    left.mkdir()
    others.mkdir()
    with Store(tmp_path).create(ID):
        assert not left.exists()
    assert others.exists()


def test_a_second_build_of_the_same_step_waits_for_the_first(tmp_path: Path) -> None:
    store = Store(tmp_path)
    notes: list[str] = []
    order: list[str] = []
    told = threading.Event()

    def second() -> None:
        def note(event: object) -> None:
            assert isinstance(event, Note)
            notes.append(event.text)
            told.set()

        with store.lock(ID, note):
            order.append("second")

    with store.lock(ID, silent):
        thread = threading.Thread(target=second)
        thread.start()
        assert told.wait(10)
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]
    assert ID[:12] in notes[0]


@pytest.mark.parametrize("damage", ["removed", "cut short", "written to", "added", "a file in its place", "no seal"])
def test_a_damaged_output_counts_as_not_there_and_is_made_again(tmp_path: Path, damage: str) -> None:
    store = Store(tmp_path)
    folder = tmp_path / ID

    def make() -> None:
        with store.create(ID) as out:
            (out / "lib").mkdir()
            (out / "lib" / "library").write_text("whole")
            os.utime(out / "lib" / "library", (0, 0))
            (out / "link").symlink_to("nowhere")

    make()
    library = folder / "lib" / "library"
    if damage == "removed":
        library.unlink()
    elif damage == "cut short":
        library.write_text("wh")
        os.utime(library, (0, 0))
    elif damage == "written to":
        library.write_text("wrong")
    elif damage == "added":
        (folder / "stranger").touch()
    elif damage == "no seal":
        (tmp_path / f".{ID}.seal").unlink()
    else:
        shutil.rmtree(folder)
        folder.touch()
    assert store.find(ID) is None
    make()
    assert store.find(ID) == folder
    assert library.read_text() == "whole"
    assert not (folder / "stranger").exists()


def test_a_copy_that_finds_no_room_says_so_and_leaves_the_old_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = tmp_path / "new", tmp_path / "dist" / "sku"
    (source / "lib").mkdir(parents=True)
    (source / "lib" / "library").write_text("new")
    target.mkdir(parents=True)
    (target / "old").touch()

    def full(source: str, target: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", source)

    monkeypatch.setattr(shutil, "copy2", full)
    with pytest.raises(ArmletError, match="No space left on device") as caught:
        replace_tree(source, target)
    assert "space" in caught.value.hint
    assert caught.value.where.startswith(str(target.parent))
    assert [path.name for path in target.parent.rglob("*")] == ["sku", "old"]


def test_what_a_killed_copy_left_beside_the_target_goes_and_other_folders_stay(tmp_path: Path) -> None:
    source, dist = tmp_path / "new", tmp_path / "dist"
    source.mkdir()
    for name in (".sku~old", ".sku-b~new", "sku-b"):
        (dist / name).mkdir(parents=True)
    replace_tree(source, dist / "sku")
    assert sorted(path.name for path in dist.iterdir()) == [".sku-b~new", "sku", "sku-b"]


def test_a_tree_is_replaced_as_a_whole(tmp_path: Path) -> None:
    source, target = tmp_path / "new", tmp_path / "dist" / "sku"
    source.mkdir()
    (source / "library").write_text("new")
    (source / "link").symlink_to("library")
    target.mkdir(parents=True)
    (target / "stale").write_text("old")
    replace_tree(source, target)
    assert sorted(path.name for path in target.iterdir()) == ["library", "link"]
    assert (target / "link").is_symlink()
    assert [path.name for path in target.parent.iterdir()] == ["sku"]


@pytest.mark.parametrize("code", [errno.EISDIR, errno.ENOTDIR, errno.EEXIST])
def test_something_else_in_a_files_place_is_to_be_moved_away(code: int) -> None:
    assert "move that away" in host_error(OSError(code, os.strerror(code), "/cache/x"), Path("/cache")).hint


def test_an_unknown_os_error_still_says_what_and_where() -> None:
    error = host_error(OSError(errno.EIO, "Input/output error", "/dev/x"), Path("/elsewhere"))
    assert "Input/output error" in error.what
    assert error.where == "/dev/x"


def spoilt(folder: Path, how: str) -> None:
    library = folder / "lib" / "library"
    if how == "gone":
        library.unlink()
    elif how == "longer":
        library.write_text("new and more")
    elif how == "written to":
        times = library.stat()
        library.write_text("wen")
        os.utime(library, (times.st_atime, times.st_mtime + 5))
    elif how == "a link elsewhere":
        (folder / "link").unlink()
        (folder / "link").symlink_to("lib/elsewhere")
    elif how == "a folder in its place":
        library.unlink()
        library.mkdir()


@pytest.mark.parametrize("how", ["", "gone", "longer", "written to", "a link elsewhere", "a folder in its place"])
def test_a_copy_that_was_changed_is_told_from_one_that_was_not(tmp_path: Path, how: str) -> None:
    source, copy = tmp_path / "source", tmp_path / "copy"
    (source / "lib").mkdir(parents=True)
    (source / "lib" / "library").write_text("new")
    (source / "link").symlink_to("lib/library")
    assert not holds_copy(copy, source)
    replace_tree(source, copy)
    (copy / "report").write_text("somebody's own")
    spoilt(copy, how)
    assert holds_copy(copy, source) is (how == "")
