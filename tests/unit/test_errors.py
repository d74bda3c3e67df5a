"""What errors and tables say of names and messages that others made."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import TensorProto, helper

from armlet.errors import ArmletError, Kind
from armlet.onnx.convert import save_optimised
from armlet.onnx.levels import LEVELS
from armlet.sinks.tables import table

HOSTILE = "a\x1b[2Jb\0c\x9bd\re"


def test_control_characters_do_not_reach_the_terminal() -> None:
    told = str(ArmletError(f'has no input "{HOSTILE}"', hint=f"is {HOSTILE} right?", kind=Kind.INPUT, where=HOSTILE))
    assert told == 'a?[2Jb?c?d?e: has no input "a?[2Jb?c?d?e"\n hint: is a?[2Jb?c?d?e right?'


def test_a_place_is_one_line_and_a_message_may_have_several() -> None:
    assert str(ArmletError("one\ntwo", hint="", kind=Kind.INPUT, where="a\nb")) == "a?b: one\ntwo"


def test_an_endless_name_is_cut() -> None:
    told = str(ArmletError(f"has {'x' * 5000} twice", hint="h", kind=Kind.INPUT))
    assert len(told) < 1100
    assert told.startswith("has xxx")
    assert told.endswith("x twice\n hint: h")


def test_cells_are_lines_of_their_own() -> None:
    shown = table(("node", "op"), [("two\nlines", "Conv"), (HOSTILE, "x" * 5000)])
    assert [line.split()[0] for line in shown.splitlines()] == ["node", "-" * 12, "two?lines", "a?[2Jb?c?d?e"]
    assert len(shown) < 1200


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "with error: /onnxruntime_src/onnxruntime/core/graph/model_load_utils.h:46 void onnxruntime::"
            "ValidateOpset(const std::unordered_map<std::__cxx11::basic_string<char>, int>&, bool, "
            "std::function<void(int)>) ONNX Runtime only *guarantees* support",
            "with error: ONNX Runtime only *guarantees* support",
        ),
        (
            "/onnxruntime_src/onnxruntime/core/x.cc:376 T onnxruntime::A::B(size_t) const [with T = float] No (more)",
            "No (more)",
        ),
        ("/onnxruntime_src/onnxruntime/core/x.cc:376 No room", "No room"),
        (
            "/github/workspace/onnx/convert.h:88: assertInVersionRange: Assertion (a)",
            "assertInVersionRange: Assertion (a)",
        ),
        (
            "src/onnxruntime/core/x.cc:12: error: no room (at all)",
            "src/onnxruntime/core/x.cc:12: error: no room (at all)",
        ),
    ],
)
def test_places_in_the_sources_of_others_are_left_out(said: str, told: str) -> None:
    assert ArmletError(said, hint="", kind=Kind.INPUT).what == told


def test_what_onnx_runtime_says_names_no_place_in_its_sources() -> None:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 99)], ir_version=8)
    with pytest.raises(ArmletError, match="Opset 99 is under development") as caught:
        save_optimised(model, LEVELS["cpu"], save_as="ORT", where=Path("m.onnx"))
    assert "onnxruntime" not in caught.value.what
