from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from armlet.errors import ArmletError, Kind, host_error
from armlet.events import Note, silent
from armlet.store import Store, replace_tree

ID = "a" * 64


def test_an_output_appears_whole_when_its_step_returns(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.create(ID) as out:
        (out / "file").write_text("x")
        assert store.find(ID) is None
    found = store.find(ID)
    assert found is not None
    assert (found / "file").read_text() == "x"


@pytest.mark.parametrize("failure", [KeyboardInterrupt, RuntimeError, FileNotFoundError(2, "No such file")])
def test_a_failed_step_leaves_nothing_and_its_exception_as_it_is(
    tmp_path: Path, failure: BaseException | type[BaseException]
) -> None:
    store = Store(tmp_path)

    def fail() -> None:
        with store.create(ID) as out:
            (out / "half").write_text("x")
            raise failure

    with pytest.raises(BaseException) as caught:  # noqa: PT011  the very one is compared
        fail()
    assert failure in (caught.value, caught.type)
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


def test_an_unknown_os_error_still_says_what_and_where() -> None:
    error = host_error(OSError(errno.EIO, "Input/output error", "/dev/x"), Path("/elsewhere"))
    assert "Input/output error" in error.what
    assert error.where == "/dev/x"
