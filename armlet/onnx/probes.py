"""Small models made to show one behaviour of a runtime."""

from __future__ import annotations

from pathlib import Path

from armlet.files import write_whole
from armlet.onnx.libraries import library

CLIP_OPERATORS = frozenset({"Clip", "Conv"})


def clip_without_minimum(out: Path, *, opset: int = 11) -> Path:
    """Writes a model of two convolutions with negative results, each clipped without a lower bound.

    XNNPACK's provider fuses the first Clip, which has no bound at all, and leaves the second, which has an upper one;
    a wrong lower bound in the fusion shows as zeros in place of the negative numbers. Outputs: ``unbounded`` and
    ``at_most_half``, both 1x2x4x4.
    """
    onnx, numpy, helper = library("onnx"), library("numpy"), library("onnx.helper")
    kind = onnx.TensorProto.FLOAT

    def constant(name: str, values: object) -> object:
        return library("onnx.numpy_helper").from_array(numpy.asarray(values, numpy.float32), name)

    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "weight_0"], ["c0"], name="conv_0"),
            helper.make_node("Clip", ["c0"], ["unbounded"], name="clip_0"),
            helper.make_node("Conv", ["x", "weight_1"], ["c1"], name="conv_1"),
            helper.make_node("Clip", ["c1", "", "half"], ["at_most_half"], name="clip_1"),
        ],
        "clip_without_minimum",
        [helper.make_tensor_value_info("x", kind, [1, 1, 4, 4])],
        [helper.make_tensor_value_info(name, kind, [1, 2, 4, 4]) for name in ("unbounded", "at_most_half")],
        # Equal weights would let the optimiser merge the convolutions.
        [
            constant("weight_0", [[[[-1.0]]], [[[2.0]]]]),
            constant("weight_1", [[[[-3.0]]], [[[1.0]]]]),
            constant("half", 0.5),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=7)
    write_whole(out, model.SerializeToString(deterministic=True))
    return out
