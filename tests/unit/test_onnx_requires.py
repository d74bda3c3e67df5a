"""What models ask for, held against ONNX Runtime: what it loads is never refused."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import onnx
import pytest
from armlet_runtime.contract import Problem, check
from onnx import TensorProto, helper, numpy_helper

from armlet.errors import ArmletError, Kind
from armlet.onnx.convert import convert
from armlet.onnx.fleet import payload_document
from armlet.onnx.requires import requires
from armlet.registrations import Registration
from armlet.spec.payload import Tensor
from tests.fakes.contracts import TYPES, fake_runtime, operators_of

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
OPSETS = {"ai.onnx": 22, "ai.onnx.ml": 5, "com.microsoft": 1}


def saved(path: Path, nodes: list[Any], inputs: list[Any], outputs: list[Any], *, opset: int = 17, **more: Any) -> Path:
    graph = helper.make_graph(nodes, "made", inputs, outputs, **more)
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3)]
    )
    model.ir_version = 8
    onnx.save(model, path)
    return path


def value(name: str, kind: int = FLOAT, shape: tuple[Any, ...] | None = (2, 3)) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def conv_relu(folder: Path) -> Path:
    weights = numpy_helper.from_array(numpy.ones((4, 3, 3, 3), numpy.float32), "w")
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Relu", ["c"], ["y"])]
    inputs = [value("x", shape=("batch", 3, 8, None))]
    return saved(folder / "conv.onnx", nodes, inputs, [value("y", shape=None)], initializer=[weights])


def to_ort(model: Path) -> Path:
    return convert(model, model.with_suffix(".ort"), providers=("xnnpack", "cpu")).path


def asked(model: Path) -> dict[str, dict[str, list[tuple[tuple[int, ...], Any]]]]:
    return {
        domain: {name: [(one.since_versions, one.takes) for one in entries] for name, entries in operators.items()}
        for domain, operators in requires(model).operators.items()
    }


def test_an_ort_model_asks_for_its_nodes(tmp_path: Path) -> None:
    model = to_ort(conv_relu(tmp_path))
    assert asked(model) == {
        "ai.onnx": {"Conv": [((11,), ({"T": ("float",)},))], "Relu": [((14,), ({"T": ("float",)},))]}
    }
    found = requires(model)
    assert (found.format, found.ort_format_version, found.ir_version) == ("ort", 6, 8)
    assert found.opset_imports == {"ai.onnx": 17}, "only what it uses"
    assert found.element_types == ("float",)
    assert found.inputs == (Tensor(name="x", dtype="float", shape=("batch", 3, 8, "")),)
    assert found.outputs[0].shape[:2] == ("batch", 4)


def test_an_onnx_model_asks_for_what_the_runtime_will_make_of_it(tmp_path: Path) -> None:
    found = requires(conv_relu(tmp_path))
    assert (found.format, found.ort_format_version, found.ir_version) == ("onnx", None, 8)
    assert {*found.operators["ai.onnx"]} == {"Conv", "Relu"}
    assert {*found.operators["com.microsoft"]} == {"FusedConv"}
    assert found.opset_imports == {"ai.onnx": 17, "com.microsoft": 1}
    assert [one.name for one in found.inputs] == ["x"]


def test_types_are_those_of_every_constraint_that_the_node_has(tmp_path: Path) -> None:
    scale = numpy_helper.from_array(numpy.array(0.5, numpy.float32), "s")
    zero = numpy_helper.from_array(numpy.array(0, numpy.int8), "z")
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("Cast", ["q"], ["i"], to=INT64),
        helper.make_node("TopK", ["x", "k"], ["v", "n"], axis=1),
        helper.make_node("Add", ["i", "n"], ["y"]),
    ]
    inputs, outputs = [value("x"), value("k", INT64, (1,))], [value("y", INT64)]
    model = saved(tmp_path / "m.onnx", nodes, inputs, outputs, initializer=[scale, zero])
    (quantise,), (cast,), (top,) = (
        asked(to_ort(model))["ai.onnx"][name] for name in ("QuantizeLinear", "Cast", "TopK")
    )
    assert quantise == ((13,), ({"T1": ("float",), "T2": ("int8",), "y_scale": ("float",)},))
    assert cast == ((13,), ({"T1": ("int8",), "T2": ("int64",)},))
    assert top == ((11,), ({"T": ("float",), "I": ("int64",), "K": ("int64",)},))


def test_nodes_of_inner_graphs_count(tmp_path: Path) -> None:
    def branch(operator: str, name: str) -> Any:
        return helper.make_graph([helper.make_node(operator, ["x"], [name])], name, [], [value(name)])

    node = helper.make_node("If", ["c"], ["y"], then_branch=branch("Sqrt", "a"), else_branch=branch("Neg", "b"))
    model = saved(tmp_path / "m.onnx", [node], [value("c", BOOL, ()), value("x")], [value("y")])
    found = asked(to_ort(model))["ai.onnx"]
    assert found["If"] == [((16,), ({"B": ("bool",), "V": ("float",)},))]
    assert found["Sqrt"] == found["Neg"] == [((13,), ({"T": ("float",)},))]


def test_a_function_asks_for_what_it_consists_of(tmp_path: Path) -> None:
    model = saved(tmp_path / "m.onnx", [helper.make_node("HardSwish", ["x"], ["y"])], [value("x")], [value("y")])
    for file in (model, to_ort(model)):
        assert {*asked(file)["ai.onnx"]} == {"HardSigmoid", "Mul"}


def test_a_value_that_is_no_tensor_is_refused(tmp_path: Path) -> None:
    node = helper.make_node("SequenceConstruct", ["x", "x"], ["y"])
    output = helper.make_tensor_sequence_value_info("y", FLOAT, None)
    with pytest.raises(ArmletError, match=r'output "y" is seq\(tensor\(float\)\)') as caught:
        requires(saved(tmp_path / "m.onnx", [node], [value("x")], [output]))
    assert caught.value.kind is Kind.INPUT


def test_a_type_that_no_payload_has_is_refused(tmp_path: Path) -> None:
    node = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT8E5M2)
    model = saved(tmp_path / "m.onnx", [node], [value("x")], [value("y", TensorProto.FLOAT8E5M2)], opset=19)
    with pytest.raises(ArmletError, match="has tensors of float8e5m2"):
        requires(model)


def test_a_damaged_ort_model_is_refused_whatever_is_wrong(tmp_path: Path) -> None:
    whole = to_ort(conv_relu(tmp_path)).read_bytes()
    path, chance = tmp_path / "bad.ort", random.Random(7)
    refused = []
    for _ in range(300):
        data = bytearray(whole[: chance.choice([len(whole), chance.randrange(8, len(whole))])])
        for _ in range(chance.randrange(1, 20)):
            data[chance.randrange(8, len(data))] = chance.randrange(256)
        path.write_bytes(data)
        try:
            requires(path)
        except ArmletError as error:
            refused.append((error.kind, error.where))
    assert len(refused) > 100
    assert {*refused} == {(Kind.INPUT, str(path))}


def test_an_ort_model_of_a_version_without_types_is_refused(tmp_path: Path) -> None:
    model = to_ort(conv_relu(tmp_path))
    data = bytearray(model.read_bytes())
    root = int.from_bytes(data[:4], "little")
    vtable = root - int.from_bytes(data[root : root + 4], "little", signed=True)
    # As before version 5: the root has no third field.
    data[vtable + 10 : vtable + 12] = b"\0\0"
    model.write_bytes(data)
    with pytest.raises(ArmletError, match="is in ORT format 6, which does not hold") as caught:
        requires(model)
    assert caught.value.where == str(model)


MODELS: dict[str, Callable[[Path], Path]] = {"onnx": conv_relu, "ort": lambda folder: to_ort(conv_relu(folder))}


@pytest.mark.parametrize("kind", MODELS)
def test_each_kernel_that_a_model_needs_is_missed_alone(tmp_path: Path, kind: str) -> None:
    document = payload_document(MODELS[kind](tmp_path))
    used = {(domain, name) for domain, operators in document["operators"].items() for name in operators}
    kernels = [one for one in TYPES if (one.domain, one.op) in used]

    def judged(registered: list[Registration]) -> list[Problem]:
        return check(fake_runtime(operators=operators_of(registered), flavor="full"), document)

    assert judged(kernels) == []
    missed = {one: judged([other for other in kernels if other is not one]) for one in kernels}
    needed = {one for one in kernels if missed[one]}
    since = {
        (domain, name): entry["since_versions"][0]
        for domain, operators in document["operators"].items()
        for name, (entry,) in operators.items()
    }
    assert {(one.domain, one.op) for one in needed} == used
    for one in needed:
        version = since[one.domain, one.op]
        assert one.since <= version <= (one.until or one.since)
        assert TYPES[one]["T"] == ("float",)
        (problem,) = missed[one]
        name = one.op if one.domain == "ai.onnx" else f"{one.domain}:{one.op}"
        others = [other for other in kernels if (other.domain, other.op) == (one.domain, one.op) and other is not one]
        same = [other for other in others if other.since <= version <= (other.until or other.since)]
        expected = ("type", f"{name} {version}") if same else ("operator_version", f"{name} {version}")
        assert (problem.kind, problem.about) == (expected if others else ("operator", name))


NODE_TESTS = sorted(Path(onnx.__file__).parent.glob("backend/test/data/*/*/model.onnx"))
"""ONNX's own examples of every operator: about 1600."""
_NOT_FOR_US = (
    *("ONNX Runtime refuses the model", "payloads have tensors alone", "which no payload may have"),
    *("and so no elements", "which ONNX Runtime does not know"),
)


def agreed(models: list[Path]) -> int:
    """How many models ONNX Runtime loads; none of them may be refused by a runtime with all its kernels."""
    runtime = fake_runtime(operators=operators_of(TYPES), flavor="full", opsets=OPSETS, element_types=None)
    loaded, told = 0, []
    for model in models:
        try:
            document = payload_document(model)
        except ArmletError as error:
            told.append(error.what)
            continue
        assert check(runtime, document) == [], model
        loaded += 1
    assert [what for what in told if not any(reason in what for reason in _NOT_FOR_US)] == []
    return loaded


def test_what_onnx_runtime_loads_is_never_refused() -> None:
    assert agreed(NODE_TESTS[::16]) > 50


@pytest.mark.heavy
def test_all_that_onnx_runtime_loads_is_never_refused() -> None:
    assert agreed(NODE_TESTS) > 1000
