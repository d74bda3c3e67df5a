"""Rows of a profile: which provider ran each node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from armlet_runtime import ort


def test_one_row_per_node_and_run(build: Any, tmp_path: Path) -> None:
    helper = onnx.helper
    model = build.graph(
        [
            helper.make_node("MatMul", ["x", "x"], ["a"], name="product"),
            helper.make_node("Softmax", ["a"], ["y"]),
        ],
        [build.info(("x", "FLOAT", [50, 50]))],
        [build.info(("y", "FLOAT", [50, 50]))],
    )
    options = ort.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "prof ü")
    with ort.InferenceSession(model, options) as session:
        for _ in range(2):
            session.run(None, {"x": np.ones((50, 50), np.float32)})
        path = session.end_profiling()
    assert Path(path).parent == tmp_path
    assert Path(path).name.startswith("prof ü")
    rows = ort.provider_of_each_node(path)
    assert [(row.node, row.op_type, row.provider) for row in rows] == [
        ("product", "MatMul", "CPUExecutionProvider"),
        ("Softmax_1", "Softmax", "CPUExecutionProvider"),
    ] * 2
    assert [row.index for row in rows] == [0, 1, 0, 1]
    assert all(0 <= row.duration_us < 10_000_000 for row in rows)


@pytest.mark.parametrize("name", ["two\nlines", 'a "quoted" one', "back\\slash\\n", "\x1b[1m", "ü"])
def test_names_may_hold_anything(build: Any, tmp_path: Path, name: str) -> None:
    model = build.graph(
        [onnx.helper.make_node("Exp", ["x"], ["y"], name=name)],
        [build.info(("x", "FLOAT", [2]))],
        [build.info(("y", "FLOAT", [2]))],
    )
    options = ort.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "p")
    with ort.InferenceSession(model, options) as session:
        session.run(None, {"x": np.ones(2, np.float32)})
        path = session.end_profiling()
    assert [row.node for row in ort.provider_of_each_node(path)] == [name]


def test_no_profile_without_profiling(session: ort.InferenceSession) -> None:
    assert session.end_profiling() == ""


@pytest.mark.parametrize("text", ['[{"cat" : "Session",', "", '{"cat": "Node"}'])
def test_files_that_are_no_profile(tmp_path: Path, text: str) -> None:
    path = tmp_path / "p.json"
    path.write_text(text)
    with pytest.raises(ort.OrtError, match=r"p\.json is no"):
        ort.provider_of_each_node(path)


def test_other_events_are_not_rows(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text(
        '[{"cat":"Session","name":"model_run"}, {"cat":"Node","name":"a_fence_before"}, 7,'
        '{"cat":"Node","name":"a_kernel_time","dur":3,"args":{"op_name":"Conv","provider":"X","node_index":"4"}}]'
    )
    assert ort.provider_of_each_node(str(path)) == [ort.NodeRun("a", "Conv", "X", 3, 4)]
