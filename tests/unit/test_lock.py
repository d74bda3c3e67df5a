"""Locking: the entries that are written come from the files, and everything else stays as it was."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from armlet.errors import ArmletError
from armlet.events import Event, Note, silent
from armlet.fetch import Patience, Places, fetch, from_component
from armlet.fetch.lock import Change, lock, lock_new
from armlet.fetch.upstream import parse_facts
from armlet.paths import Paths
from armlet.recipes import SOURCE_SETS
from tests.fakes.mirror import FakeMirror

PATIENCE = Patience(connect=1, silence=0.5, attempts=2, pause=0.01)

SET = """\
# What this is.
schema: 1
name: onnxruntime-1.0.0
version: "1.0.0"
# Read from the header.
ort_format: [1, 1]
onnx_ir_max: 1
opsets:
  ai.onnx: 1
  ai.onnx.ml: 1
  # Never changes.
  com.microsoft: 1

components:
  - name: onnxruntime
    version: "1.0.0"
    licence: MIT
    debian: pool/o/onnxruntime_1.0.0.orig.tar.gz
  # Found by hand.
  - name: onnx
    version: "0.9"
    licence: Apache-2.0
    debian: pool/o/onnx_0.9.orig.tar.gz
    sha256: f000000000000000000000000000000000000000000000000000000000000000
    size: 1 # wrong
    cmake: X
"""

FILES = {
    "onnxruntime": {
        "onnxruntime/core/flatbuffers/ort_format_version.h": (
            "// comment\\nconstexpr const int kOrtModelVersion = 6;\n"
            "constexpr std::array kSupported{\n    kOrtModelVersion - 1,\n    kOrtModelVersion,\n};\n"
        ),
        "onnxruntime/core/session/environment.cc": "AddDomainToVersion(onnxruntime::kMSDomain, 1, 1);\n",
    },
    "onnx": {
        "onnx/onnx.in.proto": "  IR_VERSION_2023_5_5 = 0x0000000000000009;\n  IR_VERSION = 0x000000000000000A;\n",
        "onnx/defs/schema.h": (
            "last_release_version_map_[ONNX_DOMAIN] = 22;\nlast_release_version_map_[AI_ONNX_ML_DOMAIN] = 5;\n"
        ),
    },
}


def tarball(component: str) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name, text in FILES[component].items():
            info = tarfile.TarInfo(f"{component}-x/{name}")
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    return stream.getvalue()


ORT, ONNX = tarball("onnxruntime"), tarball("onnx")


@pytest.fixture
def mirror() -> Iterator[FakeMirror]:
    files = {
        "pool/o/onnxruntime_1.0.0.orig.tar.gz": ORT,
        "pool/o/onnx_0.9.orig.tar.gz": ONNX,
        "pool/o/onnxruntime_2.0.0.orig.tar.gz": ORT,
        "pool/n/onnx_1.0+dfsg.orig.tar.gz": ONNX,
    }
    with FakeMirror(files=files).serving() as serving:
        yield serving


@pytest.fixture
def project(tmp_path: Path) -> Paths:
    paths = Paths(root=tmp_path / "project", cache=tmp_path / "cache")
    (paths.root / "recipes/sources").mkdir(parents=True)
    (paths.root / "recipes/sources/onnxruntime-1.0.0.yaml").write_text(SET)
    return paths


def here(*mirrors: FakeMirror) -> Places:
    return Places(debian=tuple(mirror.url for mirror in mirrors))


def test_hash_size_address_and_formats_are_written_and_the_rest_stays(project: Paths, mirror: FakeMirror) -> None:
    path = lock(project, "onnxruntime-1.0.0", silent, places=here(mirror), patience=PATIENCE)
    made = SOURCE_SETS.load(project, "onnxruntime-1.0.0")
    ort, onnx = made.components
    for component, data in ((ort, ORT), (onnx, ONNX)):
        assert component.sha256 == hashlib.sha256(data).hexdigest()
        assert component.snapshot == hashlib.sha1(data).hexdigest()
        assert component.size == len(data)
    assert (made.ort_format, made.onnx_ir_max) == ((5, 6), 10)
    assert made.opsets == {"ai.onnx": 22, "ai.onnx.ml": 5, "com.microsoft": 1}
    assert (onnx.licence, onnx.cmake) == ("Apache-2.0", "X")
    text = path.read_text()
    order = ["# What this is.", "# Read from the header.", "# Never changes.", "# Found by hand.", "- name: onnx\n"]
    assert [text.index(piece) for piece in order] == sorted(text.index(piece) for piece in order)
    assert 'version: "1.0.0"' in text
    assert sorted(one.name for one in path.parent.iterdir()) == [path.name]


def test_locking_twice_changes_nothing(project: Paths, mirror: FakeMirror) -> None:
    path = lock(project, "onnxruntime-1.0.0", silent, places=here(mirror), patience=PATIENCE)
    before = path.read_text()
    lock(project, "onnxruntime-1.0.0", silent, places=here(mirror), patience=PATIENCE)
    assert path.read_text() == before


def test_a_long_line_stays_one(project: Paths, mirror: FakeMirror) -> None:
    path = project.root / "recipes/sources/onnxruntime-1.0.0.yaml"
    line = f"    - targets: /({'|'.join(str(number) for number in range(200))})\\.c$ # why"
    path.write_text(SET.replace("components:\n", f"acceleration:\n  skip:\n{line}\n\ncomponents:\n"))
    lock(project, "onnxruntime-1.0.0", silent, places=here(mirror), patience=PATIENCE)
    assert line in path.read_text().splitlines()


def test_what_was_locked_is_in_the_cache(project: Paths, mirror: FakeMirror) -> None:
    lock(project, "onnxruntime-1.0.0", silent, places=here(mirror), patience=PATIENCE)
    mirror.seen.clear()
    made = SOURCE_SETS.load(project, "onnxruntime-1.0.0")
    fetch([from_component(one) for one in made.components], project.downloads, silent, places=Places())
    assert mirror.seen == []
    assert not list(project.downloads.glob(".lock-*"))


def test_a_changed_hash_is_told(project: Paths, mirror: FakeMirror) -> None:
    events: list[Event] = []
    lock(project, "onnxruntime-1.0.0", events.append, places=here(mirror), patience=PATIENCE)
    notes = [event.text for event in events if isinstance(event, Note)]
    assert any(note.startswith("onnx: sha256 was f00") and hashlib.sha256(ONNX).hexdigest() in note for note in notes)


def test_places_that_differ_are_refused(project: Paths, mirror: FakeMirror) -> None:
    with FakeMirror(files={**mirror.files, "pool/o/onnx_0.9.orig.tar.gz": b"other"}).serving() as other:
        with pytest.raises(ArmletError, match="places differ") as caught:
            lock(project, "onnxruntime-1.0.0", silent, places=here(mirror, other), patience=PATIENCE)
        assert hashlib.sha256(b"other").hexdigest() in caught.value.what
        assert hashlib.sha256(ONNX).hexdigest() in caught.value.what
    assert (project.root / "recipes/sources/onnxruntime-1.0.0.yaml").read_text() == SET


def test_a_file_that_nobody_has_is_not_locked(project: Paths, mirror: FakeMirror) -> None:
    del mirror.files["pool/o/onnx_0.9.orig.tar.gz"]
    with pytest.raises(ArmletError, match=r"cannot lock onnx_0\.9\.orig\.tar\.gz"):
        lock(project, "onnxruntime-1.0.0", silent, places=here(mirror), patience=PATIENCE)
    assert (project.root / "recipes/sources/onnxruntime-1.0.0.yaml").read_text() == SET


def test_a_licence_must_be_given(project: Paths, mirror: FakeMirror) -> None:
    path = project.root / "recipes/sources/onnxruntime-1.0.0.yaml"
    path.write_text(SET.replace("    licence: MIT\n", ""))
    with pytest.raises(ArmletError, match=r"licence: is missing") as caught:
        lock(project, "onnxruntime-1.0.0", silent, places=here(mirror), patience=PATIENCE)
    assert caught.value.where.startswith("recipes/sources/onnxruntime-1.0.0.yaml:")


@pytest.mark.parametrize(
    "text",
    [
        *("", "5\n", "a: [", "schema: 1\n", "components: 3\n", "components:\n  - 5\n", "components:\n  - name: x\n"),
        "components:\n  - {name: x, version: '1', debian: 5}\n",
        "components:\n  - {name: x, version: '1', urls: 5}\n",
    ],
)
def test_an_unsound_file_is_told(project: Paths, text: str) -> None:
    (project.root / "recipes/sources/onnxruntime-1.0.0.yaml").write_text(text)
    with pytest.raises(ArmletError) as caught:
        lock(project, "onnxruntime-1.0.0", silent, places=Places(), patience=PATIENCE)
    assert caught.value.where == "recipes/sources/onnxruntime-1.0.0.yaml"


def test_a_new_version_is_made_from_an_old_one(project: Paths, mirror: FakeMirror) -> None:
    change = Change(version="2.0.0", versions={"onnx": "1.0"}, debian={"onnx": "pool/n/onnx_1.0+dfsg.orig.tar.gz"})
    lock_new(project, "onnxruntime-1.0.0", change, silent, places=here(mirror), patience=PATIENCE)
    made = SOURCE_SETS.load(project, "onnxruntime-2.0.0")
    assert made.version == "2.0.0"
    assert [(one.version, one.debian) for one in made.components] == [
        ("2.0.0", "pool/o/onnxruntime_2.0.0.orig.tar.gz"),
        ("1.0", "pool/n/onnx_1.0+dfsg.orig.tar.gz"),
    ]
    assert (project.root / "recipes/sources/onnxruntime-1.0.0.yaml").read_text() == SET


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (Change(version="1.0.0"), "is there already"),
        (Change(version="2.0.0", versions={"onyx": "2"}), "no component"),
        (Change(version="9.9.9"), "cannot lock"),
    ],
)
def test_a_new_version_that_cannot_be_made_leaves_no_file(
    project: Paths, mirror: FakeMirror, change: Change, told: str
) -> None:
    with pytest.raises(ArmletError, match=told):
        lock_new(project, "onnxruntime-1.0.0", change, silent, places=here(mirror), patience=PATIENCE)
    assert [path.name for path in (project.root / "recipes/sources").iterdir()] == ["onnxruntime-1.0.0.yaml"]


def test_a_version_that_is_no_part_of_the_old_path_needs_a_path(project: Paths, mirror: FakeMirror) -> None:
    path = project.root / "recipes/sources/onnxruntime-1.0.0.yaml"
    path.write_text(SET.replace('version: "0.9"', 'version: "v0.9"'))
    with pytest.raises(ArmletError, match="pool path of onnx") as caught:
        lock_new(
            project,
            "onnxruntime-1.0.0",
            Change(version="2.0.0", versions={"onnx": "1.0"}),
            silent,
            places=here(mirror),
            patience=PATIENCE,
        )
    assert "--debian onnx=" in caught.value.hint


def test_facts_that_cannot_be_read_are_left_out() -> None:
    assert parse_facts({}) == {}
    assert parse_facts({"onnx/onnx.in.proto": "IR_VERSION = 0x0B;"}) == {"onnx_ir_max": 11}


def test_a_change_is_read_from_a_command_line() -> None:
    made = Change.of("2.0.0", versions=["onnx=1.0"], debian=["onnx=pool/x=y"])
    assert made == Change(version="2.0.0", versions={"onnx": "1.0"}, debian={"onnx": "pool/x=y"})


@pytest.mark.parametrize("version", ["", "../x", "1.2 3"])
def test_a_version_that_cannot_name_a_set_is_refused(version: str) -> None:
    with pytest.raises(ArmletError, match="is no version"):
        Change.of(version)


@pytest.mark.parametrize("text", ["onnx", "=1.0", "onnx="])
def test_a_change_without_name_or_value_is_refused(text: str) -> None:
    with pytest.raises(ArmletError, match="names no component"):
        Change.of("2.0.0", versions=[text])
