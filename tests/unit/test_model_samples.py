"""A SKU's ``samples:``: found, part of the ids they decide, and what a model is tried and calibrated on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from armlet.config import resolve
from armlet.digest import of_file
from armlet.errors import ArmletError, Kind
from armlet.onnx.quantise import calibration_digest
from armlet.onnx.sample_files import load_samples
from armlet.onnx.versions import versions
from armlet.paths import Paths
from armlet.spec.sku import Model, Quantise
from armlet.steps import operators
from tests.fakes.recipes import FakeProject

FOLDER = "models/samples"
SHAPE = (1, 4)


def write(folder: Path, *numbers: float, name: str = "x", dtype: Any = numpy.float32) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        arrays: dict[str, Any] = {name: numpy.full(SHAPE, number, dtype)}
        numpy.savez(folder / f"{number}.npz", **arrays)


@pytest.fixture
def project(tmp_path: Path) -> FakeProject:
    """``demo-a53``, whose model has samples and an int8 version."""
    made = FakeProject(tmp_path)
    made.change(made.sku_file, "name: text-direction", f"name: text-direction\n        samples: {FOLDER}")
    write(tmp_path / FOLDER, 0.5)
    return made


def facts(project: FakeProject) -> Mapping[str, Any]:
    """What the id of the step follows from that looks operators up."""
    return operators.STEP.facts(resolve(project.paths, "demo-a53"))


def test_other_samples_are_another_calibration_wherever_they_are(project: FakeProject) -> None:
    first = facts(project)
    assert facts(project) == first
    write(project.root / FOLDER, 0.25)
    assert facts(project) != first


def test_samples_change_no_build_without_an_int8_version(project: FakeProject) -> None:
    text = project.text(project.sku_file)
    start, end = text.index("        quantise:\n"), text.index("    # Room for next month's model")
    project.write(project.sku_file, text[:start] + text[end:])
    first = facts(project)
    write(project.root / FOLDER, 0.25)
    assert facts(project) == first
    project.change(project.sku_file, f"        samples: {FOLDER}\n", "")
    assert facts(project) == first


@pytest.mark.parametrize("content", [None, "empty"])
def test_samples_that_are_not_there_are_told_at_their_line(project: FakeProject, content: str | None) -> None:
    line = project.change(project.sku_file, f"samples: {FOLDER}", "samples: other")
    if content:
        (project.root / "other").mkdir()
    with pytest.raises(ArmletError, match=r"other (cannot be read|has no \*\.npz)") as caught:
        resolve(project.paths, "demo-a53")
    assert (caught.value.kind, caught.value.where) == (Kind.INPUT, f"{project.sku_file}:{line}")


def test_samples_elsewhere_than_in_the_project_are_refused(project: FakeProject) -> None:
    project.change(project.sku_file, f"samples: {FOLDER}", "samples: ../samples")
    with pytest.raises(ArmletError, match="samples"):
        resolve(project.paths, "demo-a53")


def own_model(paths: Paths) -> Model:
    """A matrix product, its batch fixed by the SKU."""
    value = helper.make_tensor_value_info
    weights = numpy_helper.from_array(numpy.linspace(-1, 1, 8, dtype=numpy.float32).reshape(4, 2), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "product",
        [value("x", TensorProto.FLOAT, ["batch", 4])],
        [value("y", TensorProto.FLOAT, ["batch", 2])],
        [weights],
    )
    file = paths.root / "product.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), str(file))
    where: dict[str, Any] = {"path": file.name, "inputs": {"x": SHAPE}, "samples": FOLDER}
    return Model(name="product", licence="MIT", sha256=of_file(file), quantise=Quantise(), **where)


def test_a_model_is_tried_and_calibrated_on_its_samples(tmp_path: Path, paths: Paths) -> None:
    model = own_model(paths)
    write(paths.root / FOLDER, 1.5, -0.5)
    first, second = versions(model, paths, tmp_path)
    wanted = calibration_digest(load_samples(paths.root / FOLDER))
    assert second.quantised is not None
    assert second.quantised.calibration == wanted
    assert [calibration_digest(version.samples()) for version in (first, second)] == [wanted, wanted]
    write(paths.root / FOLDER, 3.0)
    _, other = versions(model, paths, tmp_path / "other")
    assert other.quantised is not None
    assert other.quantised.sha256 != second.quantised.sha256


@pytest.mark.parametrize("given", [{"name": "y"}, {"dtype": numpy.float64}])
def test_samples_that_the_model_does_not_take(tmp_path: Path, paths: Paths, given: dict[str, Any]) -> None:
    model = own_model(paths)
    write(paths.root / FOLDER, 1.5, **given)
    with pytest.raises(ArmletError, match=r"model (asks for|takes)"):
        list(versions(model, paths, tmp_path))
