"""Wheels through pip: the real pip, and an index of our own in a folder."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from armlet.errors import ArmletError
from armlet.events import Sink, silent
from armlet.fetch import Places, fetch, from_wheel
from armlet.process import Command, Done
from armlet.spec.toolchain import Wheel

ANY = "armlet_example-1.0-py3-none-any.whl"
ARM = "armlet_example-1.0-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"
OLD = "armlet_example-1.0-cp39-cp39-manylinux_2_17_x86_64.whl"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip finds wheels in, beside an index that has nothing."""
    folder = tmp_path / "wheels"
    empty = tmp_path / "simple" / "armlet-example"
    folder.mkdir()
    empty.mkdir(parents=True)
    (empty / "index.html").write_text("<!DOCTYPE html><html><body></body></html>")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "simple").as_uri())
    return folder


def write_wheel(folder: Path, filename: str) -> str:
    """Returns its sha256."""
    tag = "-".join(filename.removesuffix(".whl").split("-")[-3:])
    with zipfile.ZipFile(folder / filename, "w") as archive:
        info = "armlet_example-1.0.dist-info"
        archive.writestr("armlet_example.py", f"TAG = '{tag}'\n")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: armlet-example\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n")
        archive.writestr(f"{info}/RECORD", "")
    return hashlib.sha256((folder / filename).read_bytes()).hexdigest()


def wheel(filename: str, sha256: str) -> Wheel:
    return Wheel(project="armlet-example", version="1.0", filename=filename, sha256=sha256)


@pytest.mark.parametrize("filename", [ANY, ARM, OLD])
def test_a_wheel_comes_for_any_platform_and_python(index: Path, tmp_path: Path, filename: str) -> None:
    sha256 = write_wheel(index, filename)
    (path,) = fetch([from_wheel(wheel(filename, sha256))], tmp_path / "cache", silent, places=Places())
    assert path.name == filename
    assert path.read_bytes() == (index / filename).read_bytes()
    assert sorted(one.name for one in path.parent.iterdir()) == [".lock", filename]


def test_another_content_names_both_hashes_and_keeps_nothing(index: Path, tmp_path: Path) -> None:
    sha256 = write_wheel(index, ANY)
    with pytest.raises(ArmletError) as caught:
        fetch([from_wheel(wheel(ANY, "0" * 64))], tmp_path / "cache", silent, places=Places())
    assert sha256 in caught.value.what
    assert "0" * 64 in caught.value.what
    assert [path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()] == [".lock"]


def test_what_pip_puts_down_is_verified_all_the_same(tmp_path: Path) -> None:
    class FakePip:
        def run(self, command: Command, emit: Sink = silent) -> Done:
            target = Path(command.argv[command.argv.index("--dest") + 1])
            target.mkdir()
            (target / ANY).write_bytes(b"something else")
            return Done(code=0, tail=())

    with pytest.raises(ArmletError, match="wrong content"):
        fetch([from_wheel(wheel(ANY, "0" * 64))], tmp_path, silent, places=Places(), runner=FakePip())


def test_a_mirror_of_ones_own_comes_before_pip(index: Path, tmp_path: Path) -> None:
    class FakeNoPip:
        def run(self, command: Command, emit: Sink = silent) -> Done:
            raise AssertionError("pip is not needed")

    sha256 = write_wheel(index, ANY)
    places = Places(own=(index.as_uri(),))
    (path,) = fetch([from_wheel(wheel(ANY, sha256))], tmp_path / "cache", silent, places=places, runner=FakeNoPip())
    assert path.name == ANY
