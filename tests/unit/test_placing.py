"""A model as a SKU's runtime meets it, and models that are run one after the other on the target."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy
import onnx
import pytest
from onnx import helper, numpy_helper, save

from armlet import manifest
from armlet.config import resolve
from armlet.errors import ArmletError, Kind
from armlet.onnx.ortfile import is_ort_format
from armlet.onnx.placing import placed
from armlet.onnx.samples import Sample
from armlet.paths import Paths
from armlet.process import Command, Done
from armlet.qemu.inspected import inspect
from armlet.qemu.observe import Observed, Ran, observe
from armlet.qemu.run import Target
from armlet.qemu.trial import Place
from armlet.registrations import ONNX_DOMAIN
from armlet.spec.cpu import CPUS
from armlet.spec.runtime import Kernels, RuntimeManifest
from armlet.verbs.model_inspect import told
from tests.conftest import ROOT
from tests.fakes.artefacts import fake_artefact
from tests.fakes.placed_models import model_of
from tests.fakes.recipes import FakeProject
from tests.fakes.runner import FakeRunner, done

NODE = {"name": "n", "op_type": "Conv", "provider": "X", "us": 5, "output_bytes": 8, "output_shapes": [[1, 2]]}
FLOAT = Kernels(since_versions=(1, 6, 11, 13), takes=({"T": ("double", "float")},))


@pytest.fixture
def minimal(tmp_path: Path) -> RuntimeManifest:
    resolved = resolve(FakeProject(tmp_path / "project").paths, "demo-a53")
    made = manifest.assemble(
        resolved,
        fake_artefact(),
        build_id="b" * 64,
        kernel="3.7.0",
        operators={ONNX_DOMAIN: {"Conv": (FLOAT,), "Gemm": (FLOAT,), "Relu": (FLOAT,), "Sigmoid": (FLOAT,)}},
        image="sha256:" + "1" * 64,
        compiler="gcc",
    )
    return made.model_copy(update={"source_set": made.source_set.model_copy(update={"name": "onnxruntime-1.21.0"})})


def like(minimal: RuntimeManifest, **changes: Any) -> RuntimeManifest:
    return minimal.model_copy(update=changes)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"]), helper.make_node("Sigmoid", ["a"], ["y"])]
    made = model_of(nodes, (1, 4, "h", 8), {"w": numpy.ones((4, 4, 3, 3), numpy.float32)})
    save(made, str(tmp_path / "m.onnx"))
    return tmp_path / "m.onnx"


def test_a_minimal_runtime_gets_ort_format_and_others_the_model_itself(minimal: RuntimeManifest, model: Path) -> None:
    small = placed(model, minimal, ROOT, shapes={"x": (1, 4, 8, 8)})
    large = placed(model, like(minimal, flavor="full", operators=None), ROOT, shapes={"x": (1, 4, 8, 8)})
    assert (small.extension, is_ort_format(small.model), small.level) == (".ort", True, "basic")
    assert (large.extension, is_ort_format(large.model)) == (".onnx", False)
    for found in (small, large):
        assert [one.provider for one in found.placements] == ["xnnpack", "cpu"]
        assert all(one.node.name for one in found.placements)
    free = placed(model, minimal, ROOT)
    assert [one.provider for one in free.placements] == ["cpu", "cpu"]


def test_a_node_without_a_kernel_is_told(minimal: RuntimeManifest, model: Path) -> None:
    without = like(minimal, operators={ONNX_DOMAIN: {"Conv": (FLOAT,)}})
    _, sigmoid = placed(model, without, ROOT).placements
    assert (sigmoid.provider, sigmoid.trouble) == ("none", "the runtime has no kernel for Sigmoid 13 of float")
    ints = like(
        minimal, operators={ONNX_DOMAIN: {"Sigmoid": (Kernels(since_versions=(13,), takes=({"T": ("int32",)},)),)}}
    )
    assert placed(model, ints, ROOT).placements[1].provider == "none"


def test_what_a_reduced_runtime_fuses_needs_kernels_too(minimal: RuntimeManifest, tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["a"], name="gemm", alpha=0.5),
        helper.make_node("Relu", ["a"], ["y"], name="relu"),
    ]
    constants = {"w": numpy.ones((3, 4), numpy.float32), "b": numpy.ones(4, numpy.float32)}
    save(model_of(nodes, (2, 3), constants), str(tmp_path / "m.onnx"))
    gemm, _ = placed(tmp_path / "m.onnx", like(minimal, flavor="reduced"), ROOT).placements
    assert "makes com.microsoft:FusedGemm 1 of it" in gemm.trouble
    gemm, _ = placed(tmp_path / "m.onnx", like(minimal, flavor="full", operators=None), ROOT).placements
    assert not gemm.trouble


def test_ort_format_is_read_for_a_minimal_runtime_alone(minimal: RuntimeManifest, model: Path, tmp_path: Path) -> None:
    ready = tmp_path / "m.ort"
    ready.write_bytes(placed(model, minimal, ROOT, shapes={"x": (1, 4, 8, 8)}).model)
    assert [one.provider for one in placed(ready, minimal, ROOT).placements] == ["xnnpack", "cpu"]
    for runtime, shapes in ((like(minimal, flavor="full"), None), (minimal, {"x": (1, 4, 8, 8)})):
        with pytest.raises(ArmletError, match="in ORT format already") as caught:
            placed(ready, runtime, ROOT, shapes=shapes)
        assert caught.value.kind is Kind.INPUT
    with pytest.raises(ArmletError, match="cannot read the model"):
        placed(tmp_path / "none.onnx", minimal, ROOT)


def quantised(folder: Path) -> Path:
    """QDQ around GlobalAveragePool, which ONNX Runtime makes one operator of, and ReduceMean, which it leaves."""
    scales = {"s": numpy.float32(0.1), "z": numpy.int8(0)}
    nodes = []
    for before, after, made in (("x", "a", "GlobalAveragePool"), ("a", "y", "ReduceMean")):
        nodes += [
            helper.make_node("QuantizeLinear", [before, "s", "z"], [f"{made}_q"]),
            helper.make_node("DequantizeLinear", [f"{made}_q", "s", "z"], [f"{made}_d"]),
            helper.make_node(made, [f"{made}_d"], [f"{made}_o"], name=made),
            helper.make_node("QuantizeLinear", [f"{made}_o", "s", "z"], [f"{made}_p"]),
            helper.make_node("DequantizeLinear", [f"{made}_p", "s", "z"], [after]),
        ]
    save(model_of(nodes, (1, 4, 8, 8), scales), str(folder / "q.onnx"))
    return folder / "q.onnx"


@pytest.mark.parametrize(
    ("takes", "provider"), [(({},), "cpu"), (None, "cpu"), ((), "none"), (({"T": ("float",)},), "none")]
)
def test_a_kernel_without_constraints_takes_every_type(
    minimal: RuntimeManifest, tmp_path: Path, takes: Any, provider: str
) -> None:
    kernels = {"QLinearGlobalAveragePool": (Kernels(since_versions=(1,), takes=takes),)}
    found = placed(quantised(tmp_path), like(minimal, operators={"com.microsoft": kernels}), ROOT).placements
    pool = next(one for one in found if one.node.op == "QLinearGlobalAveragePool")
    assert (pool.node.domain, pool.provider) == ("com.microsoft", provider)


def test_what_is_quantised_with_an_operator_is_left_with_it(minimal: RuntimeManifest, tmp_path: Path) -> None:
    model = onnx.load(quantised(tmp_path))
    model.graph.node[0].input[0] = "conv"
    model.graph.node.insert(0, helper.make_node("Conv", ["x", "w"], ["conv"]))
    model.graph.initializer.extend([numpy_helper.from_array(numpy.ones((4, 4, 1, 1), numpy.float32), "w")])
    save(model, str(tmp_path / "q.onnx"))
    found = placed(tmp_path / "q.onnx", like(minimal, flavor="full", operators=None), ROOT).placements
    assert [one.provider for one in found].count("xnnpack") == 1
    reasons = {one.node.outputs[0]: one.reasons.get("xnnpack") for one in found}
    assert reasons["ReduceMean_o"] == "it has no rule for this operator"
    assert reasons["ReduceMean_d"] == "it is quantised with ReduceMean 13: it has no rule for this operator"
    assert not any("fused" in (reason or "") for reason in reasons.values())


def test_a_sku_that_is_not_built_is_told_from_its_recipe(tmp_path: Path, model: Path) -> None:
    for folder in ("recipes", "toolchains"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    paths = Paths(root=tmp_path, cache=tmp_path / "cache")
    found = inspect(paths, model, "demo-a53", shapes={"x": (1, 4, 8, 8)})
    assert (found.built, found.flavor, found.level) == (False, "minimal", "basic")
    assert [line.provider for line in found.nodes] == ["xnnpack", "cpu"]
    assert "demo-a53 is not built" in told(found, whole=False)
    with pytest.raises(ArmletError, match="nothing is built for demo-a53"):
        inspect(paths, model, "demo-a53", shapes={"x": (1, 4, 8, 8)}, verify=True)


class TestObserve:
    @pytest.fixture
    def place(self, tmp_path: Path) -> Place:
        target = Target(rootfs=tmp_path, cpu=CPUS["cortex-a53"])
        return Place(target=target, library=tmp_path / "lib.so", device=tmp_path, providers=("xnnpack", "cpu"))

    def runner(self, deaths: dict[str, Done]) -> FakeRunner:
        """A target that runs jobs until one is deadly."""

        def run(command: Command) -> Done:
            jobs, out = (Path(word) for word in command.argv[-2:])
            for job in json.loads(jobs.read_text()):
                name = Path(job["model"]).stem
                if name in deaths:
                    return deaths[name]
                line = {"error": "no kernel"} if name == "refused" else {"nodes": [NODE]}
                with out.open("a") as stream:
                    stream.write(json.dumps(line) + "\n")
            return done()

        return FakeRunner({"many.py": run})

    def test_one_that_ends_the_program_ends_only_its_own(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("armlet.qemu.run._emulator", lambda _arch: "qemu")
        models = {Path(f"{name}.ort"): Sample(name="s", inputs={}) for name in ("a", "dead", "refused", "odd", "z")}
        runner = self.runner({"dead": done(139), "odd": done(3)})
        found = observe(place, models, runner=runner)
        ran = Observed(nodes=(Ran(name="n", op="Conv", provider="X", us=5, output_bytes=8, output_shapes=((1, 2),)),))
        assert (found[Path("a.ort")], found[Path("z.ort")]) == (ran, ran)
        assert "SIGSEGV" in found[Path("dead.ort")].refused
        assert found[Path("refused.ort")].refused == "no kernel"
        assert found[Path("odd.ort")].refused == "the program ended with 3"
        assert len(runner.commands) == 3

    def test_a_target_that_does_nothing_is_an_error(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("armlet.qemu.run._emulator", lambda _arch: "qemu")
        with pytest.raises(ArmletError, match="did nothing") as caught:
            observe(place, {Path("a.ort"): Sample(name="s", inputs={})}, runner=FakeRunner())
        assert caught.value.kind is Kind.TARGET
