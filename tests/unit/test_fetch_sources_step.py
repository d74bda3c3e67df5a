"""The step that unpacks and patches the sources, on a source set small enough to look at."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from armlet import digest
from armlet.config import Resolved
from armlet.errors import ArmletError
from armlet.events import silent
from armlet.paths import Paths
from armlet.spec.source_set import Component
from armlet.steps.base import Work
from armlet.steps.sources import STEP

OURS = b"""Why: because.

--- a/core/x.cc
+++ b/core/x.cc
@@ -1 +1 @@
-min()
+lowest()
"""
UPSTREAMS = """--- a/CMakeLists.txt
+++ b/CMakeLists.txt
@@ -1 +1 @@
-old
+new
"""


def tarball(files: dict[str, str]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:xz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    return stream.getvalue()


ARCHIVES = {
    "onnxruntime": tarball({"ort/core/x.cc": "min()\n", "ort/cmake/patches/flat.patch": UPSTREAMS}),
    "flat": tarball({"CMakeLists.txt": "old\n", "docs/x": "docs\n"}),
    "boost": tarball({"boost/libs/mp11/include/m.hpp": "m\n", "boost/libs/other/o.hpp": "o\n"}),
}
KEYS: dict[str, dict[str, Any]] = {
    "onnxruntime": {"patches": ("0001-ours.patch",)},
    "flat": {"strip": 0, "patches": ("onnxruntime:cmake/patches/flat.patch",)},
    "boost": {"keep": ("libs/mp11",), "subdir": "libs/mp11"},
}


def component(name: str, **changes: Any) -> Component:
    data = ARCHIVES[name]
    sha256 = hashlib.sha256(data).hexdigest()
    keys: dict[str, Any] = {"debian": f"pool/{name}.tar.xz", "licence": "MIT", **KEYS[name], **changes}
    return Component(name=name, version="1", sha256=sha256, size=len(data), **keys)


def resolved(*components: Component, ours: bytes = OURS) -> Resolved:
    made = SimpleNamespace(
        components=components, source_set=SimpleNamespace(version="1"), patches={"0001-ours.patch": ours}
    )
    return cast(Resolved, made)


# ONNX Runtime last: the step itself must see to it that its patches are there in time.
ALL = (component("flat"), component("boost"), component("onnxruntime"))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    own = tmp_path / "mirror"
    own.mkdir()
    for name, data in ARCHIVES.items():
        (own / f"{name}.tar.xz").write_bytes(data)
    monkeypatch.setenv("ARMLET_MIRRORS", own.as_uri())
    monkeypatch.setenv("ARMLET_DEBIAN_MIRROR", (tmp_path / "none").as_uri())
    return tmp_path / "cache"


def run(cache: Path, out: Path, made: Resolved) -> Path:
    out.mkdir()
    work = SimpleNamespace(resolved=made, paths=Paths(root=cache, cache=cache), out=out, emit=silent)
    STEP.run(cast(Work, work))
    return out


def test_every_component_gets_a_folder_patched_and_cut_down(cache: Path, tmp_path: Path) -> None:
    out = run(cache, tmp_path / "out", resolved(*ALL))
    files = {path.relative_to(out).as_posix(): path.read_text() for path in out.rglob("*") if path.is_file()}
    assert files == {
        "onnxruntime/core/x.cc": "lowest()\n",
        "onnxruntime/cmake/patches/flat.patch": UPSTREAMS,
        "flat/CMakeLists.txt": "new\n",
        "flat/docs/x": "docs\n",
        "boost/libs/mp11/include/m.hpp": "m\n",
    }


def test_two_runs_give_the_same_tree_times_included(cache: Path, tmp_path: Path) -> None:
    trees = []
    for name in ("one", "two"):
        out = run(cache, tmp_path / name, resolved(*ALL))
        paths = sorted(path for path in out.rglob("*"))
        files = [path for path in paths if path.is_file()]
        stats = [(path.relative_to(out), path.stat().st_mode, path.stat().st_mtime_ns) for path in paths]
        trees.append((digest.of_files(files, root=out), stats))
    assert trees[0] == trees[1]


def test_a_patch_that_does_not_apply_stops_the_step(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(ArmletError, match=r"core/x\.cc") as caught:
        run(cache, tmp_path / "out", resolved(*ALL, ours=OURS.replace(b"-min()", b"-max()")))
    assert caught.value.where == "0001-ours.patch"


def test_a_subdir_that_is_not_there_stops_the_step(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(ArmletError, match="no folder libs/nine"):
        run(cache, tmp_path / "out", resolved(*ALL[::2], component("boost", subdir="libs/nine")))


@pytest.mark.parametrize(
    "other",
    [
        resolved(*ALL, ours=OURS + b"\n"),
        resolved(*ALL[1:]),
        resolved(component("flat", patches=()), *ALL[1:]),
        resolved(*ALL[:2], component("onnxruntime", strip=0)),
    ],
)
def test_what_changes_the_output_changes_the_facts(other: Resolved) -> None:
    assert digest.of_value(STEP.facts(other)) != digest.of_value(STEP.facts(resolved(*ALL)))


def test_where_a_file_comes_from_does_not_change_the_facts() -> None:
    moved = component(
        "flat",
        debian="pool/elsewhere/flat.tar.xz",
        licence="Apache-2.0",
        urls=("https://x.example/y",),
        purl="pkg:generic/flat@{version}",
    )
    assert STEP.facts(resolved(moved, *ALL[1:])) == STEP.facts(resolved(*ALL))
