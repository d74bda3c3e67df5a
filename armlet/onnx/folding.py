"""Constants that the converting machine's own kernels compute."""

from __future__ import annotations

from collections import Counter
from typing import Any

COMPUTED_BY_THE_CORE = frozenset(
    {"Conv", "ConvTranspose", "Einsum", "Erf", "Exp", "Gelu", "Gemm", "LogSoftmax", "MatMul", "Sigmoid", "Softmax"}
    | {"GRU", "LSTM", "LayerNormalization", "RNN", "Tanh"}
)
"""Operators whose kernels ONNX Runtime chooses by the processor's features (AVX, AVX-512, …): the last bits differ."""


def folded_by_the_core(graph: Any) -> Counter[str]:
    """Operator of ``COMPUTED_BY_THE_CORE`` -> number of its nodes with constants alone: the conversion computes."""
    fed = {value.name for value in graph.input}
    constant = {"", *(tensor.name for tensor in graph.initializer if tensor.name not in fed)}
    found: Counter[str] = Counter()
    for node in graph.node:
        if not set(node.input) <= constant:
            continue
        constant.update(node.output)
        if node.op_type in COMPUTED_BY_THE_CORE:
            found[node.op_type] += 1
    return found
