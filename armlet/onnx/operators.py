"""Which operators a model needs of its runtime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from armlet.onnx.convert import save_optimised
from armlet.onnx.levels import level_for
from armlet.onnx.libraries import library
from armlet.onnx.reading import Limits, Shapes, nodes, opsets_of, read
from armlet.registrations import ONNX_DOMAIN
from armlet.spec.sku import Provider

Required = dict[str, dict[int, set[str]]]
"""Domain (``ai.onnx`` for ONNX's own) -> opset -> operator names."""


def required(
    model: Path, *, providers: Sequence[Provider], shapes: Shapes | None = None, limits: Limits | None = None
) -> Required:
    """The operators left after the optimisation that ``convert`` makes for the same arguments.

    What a provider's layout transformation adds when the model is loaded is not among them.

    Raises:
        ArmletError: the model cannot be read or optimised.
    """
    source = read(model, shapes=shapes, limits=limits)
    data = save_optimised(source, level_for(providers), save_as="ONNX", where=model)
    optimised = library("onnx").load_model_from_string(data)
    opsets = opsets_of(optimised)
    found: Required = {}
    for node in nodes(optimised.graph):
        domain = node.domain or ONNX_DOMAIN
        found.setdefault(domain, {}).setdefault(opsets[domain], set()).add(node.op_type)
    return found
