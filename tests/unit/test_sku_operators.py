"""The allow-list that models ask for: what the optimisers leave and make, with the reason for each operator."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from armlet import config
from armlet.allow_list import as_written
from armlet.errors import ArmletError, Kind
from armlet.events import Event, Note
from armlet.onnx.proposal import Proposal, propose
from armlet.recipes import SKUS
from armlet.steps.operators import allowed
from armlet.verbs import shapes
from tests.fakes.recipes import FakeProject

SKU = "demo-a53"


@pytest.fixture
def project(tmp_path: Path) -> FakeProject:
    """Its SKU allows nothing of what the models here ask for, but Relu."""
    made = FakeProject(tmp_path / "project")
    text = made.text(made.sku_file)
    start, end = text.index("    # Room for next month"), text.index("# The oldest rootfs")
    made.write(
        made.sku_file,
        f"{text[:start]}    allow:\n      - opsets: [11, 18]\n        operators:\n          - Relu\n\n{text[end:]}",
    )
    return made


def dense(folder: Path, *, opset: int = 13, shape: tuple[Any, ...] = ("n", 8), activation: str = "Relu") -> Path:
    """``activation(x @ w + b)``: one Gemm once it is optimised."""
    weights = numpy.linspace(-1, 1, 8 * 8, dtype=numpy.float32).reshape(8, 8)
    return saved(
        folder / f"dense-{opset}.onnx",
        [
            helper.make_node("MatMul", ["x", "w"], ["m"]),
            helper.make_node("Add", ["m", "b"], ["a"]),
            helper.make_node(activation, ["a"], ["y"]),
        ],
        shape,
        {"w": weights, "b": weights[0]},
        opset=opset,
    )


def conv(folder: Path) -> Path:
    weights = numpy.linspace(-1, 1, 4 * 3 * 3 * 3, dtype=numpy.float32).reshape(4, 3, 3, 3)
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Relu", ["c"], ["y"])]
    return saved(folder / "conv.onnx", nodes, (1, 3, 8, 8), {"w": weights})


def saved(
    path: Path,
    nodes: list[Any],
    shape: tuple[Any, ...],
    constants: Mapping[str, Any],
    *,
    opset: int = 13,
    out: int = TensorProto.FLOAT,
) -> Path:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", out, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 1)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=8), str(path))
    return path


def reasons(found: Proposal) -> dict[str, str]:
    return {item.name: item.why for entry in found.entries for item in entry.items}


def new(found: Proposal) -> dict[str, tuple[int, int]]:
    return {item.name: entry.opsets for entry in found.new for item in entry.items}


def test_what_the_optimisers_make_is_named_with_who_makes_it(project: FakeProject, tmp_path: Path) -> None:
    found = propose(project.paths, SKU, [dense(tmp_path, shape=(1, 8))])
    assert reasons(found) == {
        "Gemm": "dense-13: made by MatMulAddFusion, level basic (float)",
        "Relu": "dense-13 (float)",
    }
    assert new(found) == {"Gemm": (13, 13)}
    text = found.render()
    assert "- Relu  # dense-13 (float); allowed already\n" in text
    assert "# not kept: FusedGemm: made at level all, and models are converted at level basic: XNNPACK takes" in text


def test_a_chain_of_the_cpu_alone_gets_what_is_fused_for_it(project: FakeProject, tmp_path: Path) -> None:
    project.change(project.sku_file, "[xnnpack, cpu]", "[cpu]")
    found = propose(project.paths, SKU, [conv(tmp_path)])
    assert reasons(found) == {"FusedConv": "conv: made by ConvActivationFusion, level all (float)"}
    assert [(entry.domain, entry.opsets) for entry in found.entries] == [("com.microsoft", (1, 1))]


def test_a_runtime_that_optimises_by_itself_is_given_every_level(project: FakeProject, tmp_path: Path) -> None:
    project.change(project.sku_file, "flavor: minimal", "flavor: reduced")
    assert set(reasons(propose(project.paths, SKU, [conv(tmp_path)]))) == {"Conv", "Relu", "FusedConv"}


def test_a_free_batch_is_looked_at_with_one_as_well(project: FakeProject, tmp_path: Path) -> None:
    events: list[Event] = []
    three = dense(tmp_path, shape=("n", 5, 8))
    assert {"MatMul", "Add", "Gemm", "Reshape"} <= set(
        reasons(propose(project.paths, SKU, [three], emit=events.append))
    )
    assert events == []
    propose(project.paths, SKU, [dense(tmp_path, shape=("n", "t", 8))], emit=events.append)
    assert [event.text for event in events if isinstance(event, Note) and "--shape" in event.text] != []


def test_ranges_cover_all_models_and_what_is_asked_for(project: FakeProject, tmp_path: Path) -> None:
    models = [dense(tmp_path, opset=13), dense(tmp_path, opset=17)]
    assert set(new(propose(project.paths, SKU, models)).values()) == {(13, 17)}
    assert set(new(propose(project.paths, SKU, models, opsets=(11, 15))).values()) == {(11, 17)}
    found = propose(project.paths, SKU, models, allow=["Erf", "com.microsoft:Gelu"], opsets=(11, 18))
    assert {name: new(found)[name] for name in ("Erf", "Gelu")} == {"Erf": (11, 18), "Gelu": (1, 1)}
    assert reasons(found)["Erf"] == "asked for"


def test_written_twice_is_written_once_and_nothing_is_lost(project: FakeProject, tmp_path: Path) -> None:
    before = project.text(project.sku_file)
    models = [dense(tmp_path), conv(tmp_path)]
    found = propose(project.paths, SKU, models, allow=["com.microsoft:FusedConv"], opsets=(11, 18), write=True)
    assert found.written == SKUS.path(project.paths, SKU)
    after = project.text(project.sku_file)
    kept = iter(after.splitlines())
    assert all(line in kept for line in before.splitlines())
    rules = config.resolve(project.paths, SKU).sku.runtime.operators.allow
    assert allowed(rules)["ai.onnx"][11] == {"Conv", "Gemm", "Relu"}
    assert allowed(rules)["com.microsoft"] == {1: {"FusedConv"}}
    again = propose(project.paths, SKU, models, allow=["com.microsoft:FusedConv"], opsets=(11, 18), write=True)
    assert (again.new, again.written) == ((), None)
    assert project.text(project.sku_file) == after


def test_element_types_are_added_where_the_sku_names_some(project: FakeProject, tmp_path: Path) -> None:
    project.change(project.sku_file, "    allow:", "    types: [float, int8, int32]\n    allow:")
    nodes = [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.DOUBLE)]
    model = saved(tmp_path / "cast.onnx", nodes, (2,), {}, out=TensorProto.DOUBLE)
    found = propose(project.paths, SKU, [model])
    assert found.new_types == ("double",)
    assert "# add to types: double\n" in found.render()
    propose(project.paths, SKU, [model], write=True)
    assert config.resolve(project.paths, SKU).sku.runtime.operators.types == ("float", "int8", "int32", "double")


def test_operators_without_kernels_are_left_out_and_told(project: FakeProject, tmp_path: Path) -> None:
    project.change(project.sku_file, "flavor: minimal", "flavor: reduced")
    constant = numpy_helper.from_array(numpy.ones(8, numpy.float32))
    nodes = [helper.make_node("Constant", [], ["c"], value=constant), helper.make_node("Mul", ["x", "c"], ["y"])]
    found = propose(project.paths, SKU, [saved(tmp_path / "m.onnx", nodes, (8,), {})])
    assert set(reasons(found)) == {"Mul"}
    assert set(found.needs.left_out) == {"Constant"}


def test_a_domain_that_the_flavor_lacks_is_refused(project: FakeProject, tmp_path: Path) -> None:
    nodes = [helper.make_node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", offset=[0.0], scale=[2.0])]
    model = saved(tmp_path / "scaler.onnx", nodes, (1, 8), {})
    with pytest.raises(ArmletError, match="asks for Scaler of") as caught:
        propose(project.paths, SKU, [model], write=True)
    assert caught.value.kind is Kind.INPUT
    assert "flavor reduced" in caught.value.hint
    project.change(project.sku_file, "flavor: minimal", "flavor: reduced")
    assert set(reasons(propose(project.paths, SKU, [model]))) == {"Scaler"}


def test_a_sku_that_would_not_be_sound_is_not_written(project: FakeProject, tmp_path: Path) -> None:
    project.change(project.sku_file, "cpu: cortex-a53 ", "cpu: cortex-a7 ")
    before = project.text(project.sku_file)
    with pytest.raises(ArmletError):
        propose(project.paths, SKU, [dense(tmp_path)], write=True)
    assert project.text(project.sku_file) == before


def test_unknown_operators_and_a_range_that_nobody_gave(project: FakeProject) -> None:
    with pytest.raises(ArmletError, match='unknown operator "Convolution"'):
        propose(project.paths, SKU, [], allow=["Convolution"], opsets=(11, 18))
    with pytest.raises(ArmletError, match="without models") as caught:
        propose(project.paths, SKU, [], allow=["Conv"])
    assert "--opsets" in caught.value.hint


def test_shapes_are_given_to_all_models_or_to_one(tmp_path: Path) -> None:
    first, second = dense(tmp_path, opset=13), dense(tmp_path, opset=17)
    models = [first, second]
    assert shapes.by_model(["x=1,8"], models) == {first: {"x": (1, 8)}, second: {"x": (1, 8)}}
    assert shapes.by_model(["dense-17:x=2,8"], models) == {first: {}, second: {"x": (2, 8)}}
    assert shapes.by_model(["dense-13.onnx:x=2,8"], models) == {first: {"x": (2, 8)}, second: {}}
    with pytest.raises(ArmletError, match='no model has an input "z"'):
        shapes.by_model(["z=1,8"], models)


@pytest.mark.parametrize("word", ["x", "x=", "=1,2", "x=1,,2", "x=1,-2", "x=0", "x=1x2", "x=2147483648"])
def test_words_that_are_no_shape(word: str) -> None:
    with pytest.raises(ArmletError, match="is no shape") as caught:
        shapes.parsed([word])
    assert caught.value.kind is Kind.INPUT


def test_words_that_are_shapes() -> None:
    assert shapes.parsed(["x=1,3,48,192", "serving_default:0=7"]) == {"x": (1, 3, 48, 192), "serving_default:0": (7,)}
    with pytest.raises(ArmletError, match="given twice"):
        shapes.parsed(["x=1", "x=2"])


def test_writers_at_once_lose_nothing(project: FakeProject) -> None:
    names = ["Abs", "Neg", "Log", "Exp", "Sqrt", "Erf"]

    def add(name: str) -> Proposal:
        return propose(project.paths, SKU, [], allow=[name], opsets=(11, 18), write=True)

    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(add, names))
    assert {one for rule in SKUS.load(project.paths, SKU).runtime.operators.allow for one in rule.operators} >= {*names}


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
@pytest.mark.parametrize("mark", [b"", BOM_UTF8])
def test_line_ends_and_the_byte_order_mark_stay(project: FakeProject, end: str, mark: bytes) -> None:
    file = SKUS.path(project.paths, SKU)
    before = file.read_text().split("\n")
    file.write_bytes(mark + end.join(before).encode())
    propose(project.paths, SKU, [], allow=["Abs"], opsets=(11, 18), write=True)
    after = file.read_bytes().removeprefix(mark).decode().split(end)
    assert file.read_bytes().startswith(mark)
    assert [line for line in after if "Abs" not in line] == before
    assert len(after) == len(before) + 1


def test_each_line_keeps_its_own_end() -> None:
    assert as_written(b"a\r\nb\nc", "a\nx\nb\nc") == b"a\r\nx\r\nb\nc"
    assert as_written(b"a\nb", "a\nb\nc\n") == b"a\nb\nc\n"


def test_a_link_stays_one_and_its_target_is_written(project: FakeProject, tmp_path: Path) -> None:
    file, real = SKUS.path(project.paths, SKU), tmp_path / "elsewhere.yaml"
    file.rename(real)
    file.symlink_to(real)
    found = propose(project.paths, SKU, [], allow=["Abs"], opsets=(11, 18), write=True)
    assert found.written == file
    assert file.is_symlink()
    assert "Abs" in real.read_text()
