"""Folders that somebody names as a vendor's SDK."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from armlet import sdks
from armlet.errors import ArmletError, Kind
from armlet.yamlfile import parse

VARIABLE = "RKNPU_DDK_PATH"
HEADER, LIBRARY = "include/rknpu/rknpu_pub.h", "lib64/librknpu_ddk.so"


@pytest.fixture
def sdk(tmp_path: Path) -> Path:
    place = tmp_path / "sdk"
    for name in (HEADER, LIBRARY):
        (place / name).parent.mkdir(parents=True)
        (place / name).write_text(name)
    return place


def told(place: object, root: Path, *, by_variable: bool = False) -> str:
    """All that is wrong with a folder, in one line each; told in the line of its key, or of the providers."""
    text = "runtime:\n  providers: [rknpu, cpu]\n"
    if not by_variable:
        text += f"  sdks:\n    rknpu-ddk: {place}\n"
    environment = {VARIABLE: str(place)} if by_variable else {}
    _, problems = sdks.found(parse(text, file="sku.yaml"), root, environment)
    assert {one.where for one in problems} <= {"sku.yaml:2" if by_variable else "sku.yaml:4"}
    assert all(VARIABLE in one.what for one in problems if by_variable)
    assert all(one.what.startswith("runtime.sdks.rknpu-ddk: ") for one in problems if not by_variable)
    assert all(one.hint for one in problems)
    return "\n".join(one.what for one in problems)


def a_project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.mark.parametrize("by_variable", [False, True])
@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("~nosuchuser/x", "cannot be read: could not determine home directory"),
        ("/" + "y" * 300, "cannot be read: file name too long"),
        ("/", f"is no rknpu-ddk: it lacks {HEADER}"),
        ("/dev/null", "is no rknpu-ddk: it is no folder"),
    ],
)
def test_a_place_that_can_be_no_sdk_is_told(tmp_path: Path, place: str, problem: str, by_variable: bool) -> None:
    found = told(place, a_project(tmp_path), by_variable=by_variable)
    assert problem in found
    assert len(found.splitlines()) == 1
    assert len(found) < 500


@pytest.mark.parametrize("place", ["/", "/usr/../usr", ".", ".."])
def test_a_folder_that_holds_all_sorts_of_things_is_told(tmp_path: Path, place: str) -> None:
    root = a_project(tmp_path)
    for folder in (root, tmp_path):
        (folder / "lib").mkdir()
    sku = parse(f"runtime:\n  providers: [vsinpu, cpu]\n  sdks:\n    vivante: {place}\n", file="sku.yaml")
    _, problems = sdks.found(sku, root, {})
    (problem,) = (one for one in problems if one.what.startswith("runtime.sdks.vivante: "))
    assert "is no vivante: it is a folder of the system" in problem.what
    assert problem.where == "sku.yaml:4"


def _folder(sdk: Path) -> None:
    (sdk / LIBRARY).unlink()
    (sdk / LIBRARY).mkdir()


def _fifo(sdk: Path) -> None:
    (sdk / LIBRARY).unlink()
    os.mkfifo(sdk / LIBRARY)


def _leaving(sdk: Path) -> None:
    (sdk / "lib64/else.so").symlink_to("../../outside.so")


def _absolute(sdk: Path) -> None:
    (sdk / "lib64/else.so").symlink_to(sdk / LIBRARY)


def _by_way_of_another(sdk: Path) -> None:
    (sdk / "lib64/a").symlink_to("b")
    (sdk / "lib64/b").symlink_to("/etc")


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (_folder, f"is no rknpu-ddk: it lacks {LIBRARY}"),
        (_fifo, f"is no rknpu-ddk: it lacks {LIBRARY}"),
        (_leaving, "lib64/else.so -> ../../outside.so"),
        (_absolute, "has a link that leaves the folder"),
        (_by_way_of_another, "has a link that leaves the folder"),
    ],
)
def test_what_the_build_would_not_find_is_told(
    sdk: Path, tmp_path: Path, spoil: Callable[[Path], None], problem: str
) -> None:
    root = a_project(tmp_path)
    assert told(sdk, root) == ""
    spoil(sdk)
    assert problem in told(sdk, root)


def test_links_inside_are_taken(sdk: Path, tmp_path: Path) -> None:
    (sdk / "lib64/libx.so").symlink_to("../lib64/librknpu_ddk.so")
    (sdk / "lib").symlink_to("lib64")
    assert told(sdk, a_project(tmp_path)) == ""


def test_a_file_that_this_user_may_not_read_is_told(sdk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "librknpu_ddk.so")
    assert f"cannot be read: permission denied: {LIBRARY}" in told(sdk, a_project(tmp_path))


def test_a_folder_inside_that_this_user_may_not_read_is_told(
    sdk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (sdk / "lib64/more").mkdir()
    scandir = os.scandir

    def refusing(path: str) -> object:
        if str(path).endswith("more"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    assert "cannot be read: permission denied" in told(sdk, a_project(tmp_path))
    with pytest.raises(ArmletError) as caught:
        sdks.content(sdk)
    assert caught.value.kind is Kind.INPUT
    assert caught.value.where == str(sdk)


def test_names_that_are_no_utf8_count(sdk: Path, tmp_path: Path) -> None:
    before = sdks.content(sdk)
    odd = sdk / os.fsdecode(b"caf\xe9.h")
    odd.write_text("")
    first = sdks.content(sdk)
    odd.rename(sdk / os.fsdecode(b"caf\xe8.h"))
    assert len({before, first, sdks.content(sdk)}) == 3
    (sdk / os.fsdecode(b"l\xe9")).symlink_to(os.fsdecode(b"/caf\xe9"))
    assert "l\\xe9 -> /caf\\xe9" in told(sdk, a_project(tmp_path))
