"""What a smoke leaves in ``dist``, and what it says of a build that is not current. QEMU is faked."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from armlet import pipeline
from armlet.digest import of_file
from armlet.errors import ArmletError, Kind
from armlet.events import Event, Note
from armlet.onnx.libraries import library
from armlet.paths import Paths
from armlet.qemu import smoke as module
from armlet.qemu.run import Target
from armlet.qemu.runtime import Runtime
from armlet.qemu.trial import Place, Trial
from armlet.spec import runtime as spec
from armlet.spec.cpu import CPUS
from armlet.spec.runtime import RuntimeManifest
from tests.fakes.recipes import FakeProject

SKU = "demo-a53"
PROBES = ("clip-without-minimum", "integer-products")
PLAIN = f"""\
schema: 1
name: {SKU}
description: models that are named like probes
toolchain: aarch64-bookworm
cpu: cortex-a53
runtime:
  source_set: onnxruntime-1.21.0
  flavor: full
  providers: [cpu]
  python: capi
  operators:
    models:
"""


def write_model(file: Path, factor: float) -> str:
    """Writes a model that is told from others by its factor; returns its sha256."""
    onnx, helper, numpy = library("onnx"), library("onnx.helper"), library("numpy")
    weight = library("onnx.numpy_helper").from_array(numpy.asarray([factor], numpy.float32), "w")
    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in ("x", "y"))
    graph = helper.make_graph([helper.make_node("Mul", ["x", "w"], ["y"])], "g", [x], [y], [weight])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(made.SerializeToString())
    return of_file(file)


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    """A project whose SKU has two models named like probes, each in a file ``model.onnx``; the target is faked."""
    project = FakeProject(tmp_path)
    text = PLAIN
    for number, name in enumerate(PROBES, start=2):
        file = f"models/{name}/model.onnx"
        sha256 = write_model(project.root / file, number)
        text += f"      - {{name: {name}, licence: MIT, sha256: {sha256}, path: {file}}}\n"
    project.write(project.sku_file, text + 'floors: {glibc: "2.36"}\nbudgets: {library_mib: 20}\n')
    built = Runtime(manifest=MANIFEST, library=project.root / "lib.so", wheel=None)
    built.library.write_bytes(b"ELF")
    monkeypatch.setattr(module, "find_runtime", lambda *_: built)
    target = Target(rootfs=project.root / "rootfs", cpu=CPUS["cortex-a53"])
    place = Place(target=target, library=built.library, device=project.root / "device", providers=("cpu",))
    monkeypatch.setattr(module, "place_of", lambda *_: place)
    monkeypatch.setattr(module, "attempt", lambda *_, **given: good(given["name"]))
    return project.paths


def good(name: str) -> Trial:
    return Trial(model=name, conversion="c", with_numpy=True, available_providers=("CPUExecutionProvider",))


MANIFEST = RuntimeManifest(
    sku=SKU,
    build_id="1" * 64,
    ort_version="1.21.0",
    ort_format_version=(4, 6),
    onnx_ir_max=10,
    opsets={"ai.onnx": 22},
    flavor="full",
    target=spec.Target(triple="t", arch="aarch64", float_abi="aapcs64", isa="armv8-a", cpu="cortex-a53"),
    requires=spec.Requires(glibc="2.36", glibcxx=None, kernel="5.15"),
    providers=("cpu",),
    operators=None,
    files=(),
    source_set=spec.SourceSetRef(name="s", sha256="0" * 64),
    toolchain=spec.ToolchainRef(name="t", image="sha256:0", compiler="gcc"),
)


def factor(file: Path) -> float:
    (weight,) = library("onnx").load(str(file)).graph.initializer
    return float(library("onnx.numpy_helper").to_array(weight)[0])


def test_a_model_named_like_a_probe_stays_the_skus(paths: Paths) -> None:
    report = module.smoke(paths, SKU)
    # Each model with NumPy and without, and then the probes of those names.
    ran = Counter(trial.model for trial in report.trials)
    assert [ran[name] for name in PROBES] == [2 + 2, 2 + 1]
    kept = paths.dist(SKU) / module.MODELS
    assert {file.stem: factor(file) for file in kept.iterdir()} == {PROBES[0]: 2, PROBES[1]: 3}


def test_the_models_are_there_when_the_target_crashes(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object, **__: object) -> Trial:
        raise ArmletError("ended with SIGILL", hint="", kind=Kind.TARGET)

    monkeypatch.setattr(module, "attempt", crash)
    with pytest.raises(ArmletError, match="SIGILL"):
        module.smoke(paths, SKU)
    assert factor(paths.dist(SKU) / module.MODELS / f"{PROBES[0]}.onnx") == 2


@pytest.mark.parametrize(("planned", "current"), [("1" * 64, True), ("2" * 64, False), (None, None)])
def test_a_build_of_other_recipes_is_run_and_told(paths: Paths, planned: str | None, current: bool | None) -> None:
    events: list[Event] = []
    report = module.smoke(paths, SKU, events.append, planned=planned)
    told = [event.text for event in events if isinstance(event, Note) and "other recipes" in event.text]
    assert told == ([f"dist/{SKU} was built from other recipes: ./inv build --sku {SKU}"] if current is False else [])
    assert json.loads((paths.dist(SKU) / module.REPORT).read_bytes())["current"] is current
    assert ("other recipes" in report.render()) is (current is False)


def test_the_planned_id_follows_the_recipes(paths: Paths) -> None:
    before = pipeline.planned_id(paths, SKU)
    assert pipeline.planned_id(paths, SKU) == before
    file = paths.root / FakeProject.sku_file
    file.write_text(file.read_text().replace("library_mib: 20", "library_mib: 21"))
    assert pipeline.planned_id(paths, SKU) != before
