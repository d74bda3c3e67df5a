"""Small models as a runtime's providers are shown them, and the project's own tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy
from onnx import TensorProto, helper, numpy_helper

from armlet.coverage.graph import Graph
from armlet.coverage.predict import Placement, predict
from armlet.coverage.tables import load
from armlet.onnx.convert import save_optimised
from armlet.onnx.levels import LEVELS
from armlet.onnx.ortgraph import graph_of, named
from tests.conftest import ROOT

SOURCE_SET = "onnxruntime-1.21.0"
KIND = {"float32": TensorProto.FLOAT, "int8": TensorProto.INT8, "uint8": TensorProto.UINT8}


def model_of(
    nodes: Sequence[Any],
    shape: Sequence[int | str],
    constants: dict[str, Any] | None = None,
    *,
    opset: int = 13,
    kind: str = "float32",
    outputs: Sequence[str] = ("y",),
) -> Any:
    """An ``onnx.ModelProto`` with the input ``x``."""
    graph = helper.make_graph(
        list(nodes),
        "made",
        [helper.make_tensor_value_info("x", KIND[kind], shape)],
        [helper.make_tensor_value_info(name, KIND[kind], None) for name in outputs],
        [numpy_helper.from_array(numpy.asarray(array), name) for name, array in (constants or {}).items()],
    )
    domains = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=domains, ir_version=8)


def seen(model: Any, *, alone: bool = True) -> Graph:
    """The graph that providers are asked about."""
    data = save_optimised(named(model), LEVELS["xnnpack"], save_as="ORT", where=Path("made.onnx"))
    return graph_of(data, alone=alone)


def placements(graph: Graph, *providers: str) -> list[Placement]:
    chain = providers or ("xnnpack", "cpu")
    tables = {name: load(ROOT, SOURCE_SET, name) for name in chain if name != "cpu"}
    return predict(graph, chain, tables, lambda _node, _graph: True)
