"""Patches: applied by the real patch, or refused with the name of patch and file."""

from __future__ import annotations

from pathlib import Path

import pytest

from armlet.errors import ArmletError, Kind
from armlet.fetch import apply_patch
from armlet.process import HostRunner

PATCH = """Why: because.

--- a/src/x.c
+++ b/src/x.c
@@ -1,3 +1,3 @@
 one
-two
+TWO
 three
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "mein Baum ü"
    (folder / "src").mkdir(parents=True)
    (folder / "src/x.c").write_text("one\ntwo\nthree\n")
    (tmp_path / "one.patch").write_text(PATCH)
    return folder


def apply(tree: Path) -> None:
    apply_patch(tree, tree.parent / "one.patch", HostRunner(), name="0001-one.patch")


def test_a_patch_is_applied_and_leaves_nothing_else(source: Path) -> None:
    apply(source)
    assert (source / "src/x.c").read_text() == "one\nTWO\nthree\n"
    assert [path.name for path in source.rglob("*") if path.is_file()] == ["x.c"]


def test_fuzz_leaves_no_backup(source: Path) -> None:
    (source / "src/x.c").write_text("zero\nmore\none changed\ntwo\nthree\n")
    apply(source)
    assert "TWO" in (source / "src/x.c").read_text()
    assert [path.name for path in source.rglob("*") if path.is_file()] == ["x.c"]


@pytest.mark.parametrize("content", ["quite\nanother\ntext\n", "one\nTWO\nthree\n", None])
def test_a_patch_that_does_not_apply_names_itself_and_the_file(source: Path, content: str | None) -> None:
    if content is None:
        (source / "src/x.c").unlink()
    else:
        (source / "src/x.c").write_text(content)
    with pytest.raises(ArmletError, match=r"src/x\.c") as caught:
        apply(source)
    assert caught.value.where == "0001-one.patch"
    assert caught.value.kind is Kind.INPUT


def test_a_missing_patch_is_told(source: Path) -> None:
    with pytest.raises(ArmletError, match="no such patch"):
        apply_patch(source, source / "none.patch", HostRunner(), name="none.patch")


def test_a_damaged_patch_is_told(source: Path) -> None:
    (source.parent / "one.patch").write_text("nothing in it\n")
    with pytest.raises(ArmletError, match="does not apply"):
        apply(source)
