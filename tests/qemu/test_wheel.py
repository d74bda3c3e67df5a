"""Upstream's Python wheel, cross-built for real, on the target's core with the rootfs's NumPy."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import packaging
import pytest

from armlet.config import resolve
from armlet.digest import of_file
from armlet.manifest import read_manifest
from armlet.paths import Paths
from armlet.qemu.report import SmokeReport
from armlet.qemu.rootfs import make
from armlet.qemu.run import Target, run_python
from armlet.qemu.trial import Trial
from tests.smoked import HEAVY, smoked

SKU = "reduced-a53"
XNN = "XnnpackExecutionProvider"
pytestmark = HEAVY


@pytest.fixture(scope="module")
def report(root: Path) -> SmokeReport:
    return smoked(root, SKU)


@pytest.fixture(scope="module")
def wheel(report: SmokeReport, root: Path) -> Path:
    (found,) = Paths.of(root).dist(report.sku).glob("*.whl")
    return found


def trial(report: SmokeReport, *, wheel: bool) -> Trial:
    return next(one for one in report.trials if (one.model, one.wheel) == ("text-direction", wheel))


def test_both_ways_give_the_same_answers_on_the_same_provider(report: SmokeReport) -> None:
    through, beside = trial(report, wheel=True), trial(report, wheel=False)
    assert [answer.chosen for answer in through.answers] == [answer.chosen for answer in beside.answers]
    assert through.worst_difference <= 1e-4
    assert through.counts() == beside.counts()
    assert through.counts()["Conv"] == {XNN: 53}
    assert through.ort_version == "1.21.0"


def test_the_wheel_may_be_installed_where_its_tag_says(wheel: Path, root: Path, tmp_path: Path) -> None:
    """pip's own library, run on the target, lists the tag among those that the target takes."""
    resolved = resolve(Paths.of(root), SKU)
    rootfs = make(Paths.of(root), suite=resolved.toolchain.base.suite, architecture=resolved.toolchain.debian_arch)
    out = tmp_path / "tags.json"
    code = (
        "import json, sys; from packaging.tags import sys_tags; from packaging.utils import parse_wheel_filename; "
        f"tags = parse_wheel_filename({wheel.name!r})[3]; "
        f"json.dump([sorted(map(str, tags)), bool(tags & set(sys_tags()))], open({str(out)!r}, 'w'))"
    )
    library = Path(packaging.__file__).parent.parent
    done = run_python(Target(rootfs=rootfs, cpu=resolved.cpu), ("-c", code), path=[library])
    assert done.code == 0, done.tail
    tags, taken = json.loads(out.read_text())
    assert taken
    assert len(tags) == 1
    glibc = read_manifest(wheel.parent / "runtime.json").requires.glibc.replace(".", "_")
    assert tags[0] == f"cp311-cp311-manylinux_{glibc}_aarch64"


def test_the_library_is_not_inside_a_second_time(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert [name for name in names if ".so" in name] == ["onnxruntime/capi/onnxruntime_pybind11_state.so"]


def test_the_manifest_names_the_wheel(wheel: Path) -> None:
    made = read_manifest(wheel.parent / "runtime.json").wheel
    assert made is not None
    assert (made.filename, made.size, made.sha256) == (wheel.name, wheel.stat().st_size, of_file(wheel))
    assert made.cpython == "3.11"


def test_element_types_are_told(report: SmokeReport, root: Path) -> None:
    made = read_manifest(Paths.of(root).dist(report.sku) / "runtime.json")
    assert made.flavor == "reduced"
    assert made.element_types == ("bool", "float", "int8", "int32", "int64", "uint8")
    assert made.operators is not None
    assert "ai.onnx.ml" not in made.operators
