"""Which of ONNX Runtime's optimisers makes an operator that the model was exported without."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from armlet.onnx.convert import save_optimised
from armlet.onnx.levels import Level
from armlet.onnx.libraries import library
from armlet.onnx.reading import nodes
from armlet.registrations import ONNX_DOMAIN

_QDQ = "QDQSelectorActionTransformer"

CREATORS: Mapping[str, tuple[str, ...]] = {
    "Attention": ("AttentionFusion",),
    "BiasGelu": ("BiasGeluFusion",),
    "Clip": ("FuseReluClip",),
    "DynamicQuantizeMatMul": ("DynamicQuantizeMatMulFusion",),
    "EmbedLayerNormalization": ("EmbedLayerNormFusion",),
    "FastGelu": ("FastGeluFusion",),
    "FusedConv": ("ConvActivationFusion", "ConvAddActivationFusion"),
    "FusedGemm": ("GemmActivationFusion",),
    "FusedMatMul": ("MatmulTransposeFusion", "MatMulScaleFusion"),
    "Gather": ("TransposeOptimizer", "TransposeOptimizer_CPUExecutionProvider"),
    "Gelu": ("GeluFusionL1", "GeluFusionL2"),
    "Gemm": ("MatMulAddFusion", "MatMul_BatchNormalization_Fusion"),
    "LayerNormalization": ("LayerNormFusionL1", "LayerNormFusionL2"),
    "MatMulIntegerToFloat": ("MatMulIntegerToFloatFusion", _QDQ),
    "MatMulNBits": ("MatMulNBitsFusion", _QDQ),
    "QGemm": (_QDQ,),
    "QuickGelu": ("QuickGeluFusion",),
    "Reshape": ("MatMulAddFusion", "ReshapeFusion"),
    "SimplifiedLayerNormalization": ("SimplifiedLayerNormFusion",),
    "SkipLayerNormalization": ("SkipLayerNormFusion",),
    "Slice": ("GatherToSliceFusion",),
    "Split": ("GatherSliceToSplitFusion",),
    "Squeeze": ("TransposeOptimizer", "GatherSliceToSplitFusion"),
    "Transpose": ("TransposeOptimizer", "NhwcTransformer"),
    "Unsqueeze": ("TransposeOptimizer", "GatherSliceToSplitFusion"),
}
"""Operator -> the optimisers that may be behind it, by the names that ONNX Runtime switches them off by. It need not be
complete: what is said of an optimiser is tried out first."""


def creators(
    source: Any, level: Level, operators: Iterable[tuple[str, str]], where: Path
) -> dict[tuple[str, str], str]:
    """(domain, operator) -> the optimisers without which the level no longer makes it; no entry where none is known.

    ``source`` is the ``onnx.ModelProto`` before optimisation, ``where`` its file.

    Raises:
        ArmletError: ONNX Runtime refuses the model.
    """
    found: dict[tuple[str, str], str] = {}
    for domain, operator in operators:
        suspects = (_QDQ,) if operator.startswith("QLinear") else CREATORS.get(operator, ())
        guilty = [one for one in suspects if (domain, operator) not in _without(source, level, (one,), where)]
        if not guilty and len(suspects) > 1 and (domain, operator) not in _without(source, level, suspects, where):
            # Each makes it where the others are switched off.
            guilty = list(suspects)
        if guilty:
            found[domain, operator] = " and ".join(guilty)
    return found


def _without(source: Any, level: Level, optimisers: tuple[str, ...], where: Path) -> set[tuple[str, str]]:
    less = replace(level, without=(*level.without, *optimisers))
    optimised = library("onnx").load_model_from_string(save_optimised(source, less, save_as="ONNX", where=where))
    return {(node.domain or ONNX_DOMAIN, node.op_type) for node in nodes(optimised.graph)}
