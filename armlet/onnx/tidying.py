"""What changes in every imported model: marks of tools go, the batch gets its name, ONNX's own checks are run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from armlet.errors import ArmletError, Kind
from armlet.onnx.libraries import library
from armlet.onnx.reading import input_shapes, nodes, opsets_of
from armlet.onnx.soundness import demand_bounded
from armlet.registrations import ONNX_DOMAIN

BATCH = "batch"
NEWEST_IR = 10
"""What ONNX Runtime 1.21 reads; nothing that its opsets need is newer."""

_NO_NAME = re.compile(r"|s\d+|unk__\d+|DynamicDimension.*|\?|None|-1|unknown.*", re.IGNORECASE)
"""How exporters name a dimension that nobody named."""


def tidy(model: Any) -> None:
    """Removes what tools left of the machine it was made on, and names a free batch."""
    _strip(model)
    if (symbol := _free_batch(model)) is not None:
        _name_batch(model, symbol)


def lower_ir(model: Any) -> list[str]:
    """Writes an IR version that runtimes read; returns what is worth telling."""
    if model.ir_version <= NEWEST_IR:
        return []
    old, model.ir_version = model.ir_version, NEWEST_IR
    return [f"IR version {old} was written as {NEWEST_IR}, which says the same"]


def rename_outputs(model: Any, names: Sequence[str]) -> None:
    """Gives the outputs, in their order, the names that their maker has for them, where these are free."""
    taken = {name for node in nodes(model.graph) for name in (*node.input, *node.output)} | {*input_shapes(model)}
    outputs = [value.name for value in model.graph.output]
    if len(names) != len(outputs) or len({*names}) != len(names) or taken & {*names}:
        return
    new = dict(zip(outputs, names, strict=True))
    for node in nodes(model.graph):
        for values in (node.input, node.output):
            for place, name in enumerate(values):
                values[place] = new.get(name, name)
    for value in (*model.graph.output, *model.graph.value_info):
        value.name = new.get(value.name, value.name)


def hard_coded_batch(model: Any) -> dict[str, tuple[int | None, ...]]:
    """Inputs of two dimensions or more whose first is a number."""
    return {name: shape for name, shape in input_shapes(model).items() if len(shape) > 1 and shape[0] is not None}


def has_free_batch(model: Any) -> bool:
    return any(shape and shape[0] is None for shape in input_shapes(model).values())


def fix_batch(model: Any, size: int) -> None:
    """Writes the batch down as a number, where it turned out to be none that is free."""
    fed = input_shapes(model)
    first = [value.type.tensor_type.shape.dim[0] for value in model.graph.input if fed.get(value.name)]
    names = {dim.dim_param for dim in first if dim.dim_param} | {BATCH}
    for value in (*model.graph.input, *model.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in names:
                dim.dim_value = size
    for dim in first:
        if not dim.HasField("dim_value"):
            dim.dim_value = size
    del model.graph.value_info[:]


def to_opset(model: Any, opset: int, path: Path) -> Any:
    """The model in another opset of ONNX's own domain.

    Raises:
        ArmletError: (INPUT) onnx cannot convert it.
    """
    if opsets_of(model).get(ONNX_DOMAIN, opset) == opset:
        return model
    try:
        return library("onnx.version_converter").convert_version(model, opset)
    except Exception as error:  # The converter raises whatever its C++ half throws.
        raise _input(
            path,
            f"onnx cannot write it for opset {opset}: {str(error).strip().splitlines()[0]}",
            "leave out --opset, or export it again with that opset",
        ) from error


def check(model: Any, path: Path) -> Any:
    """ONNX's own full check; returns the model with the types and shapes that were inferred.

    Raises:
        ArmletError: (INPUT) onnx is not content.
    """
    try:
        library("onnx.checker").check_model(model, full_check=True)
        inferred = library("onnx.shape_inference").infer_shapes(
            model, check_type=True, strict_mode=True, data_prop=True
        )
    except Exception as error:  # onnx's own exceptions share no base class.
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        raise _input(path, f"ONNX's checker refuses it: {' '.join(lines)[:300]}", "export the model again") from error
    demand_bounded(inferred, path)
    return inferred


def _strip(model: Any) -> None:
    del model.metadata_props[:]
    model.doc_string = ""
    for graph in _graphs(model.graph):
        graph.doc_string = ""
        del graph.metadata_props[:]
        for part in (*graph.node, *graph.initializer, *graph.input, *graph.output, *graph.value_info):
            part.doc_string = ""
            del part.metadata_props[:]
    for function in model.functions:
        function.doc_string = ""
        del function.metadata_props[:]
        for node in function.node:
            node.doc_string = ""
            del node.metadata_props[:]


def _graphs(graph: Any) -> Iterator[Any]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                yield from _graphs(inner)


def _free_batch(model: Any) -> str | None:
    """How the inputs' free first dimension is called, where nobody called it anything; None where there is none."""
    constants = {tensor.name for tensor in model.graph.initializer}
    found = {
        value.type.tensor_type.shape.dim[0].dim_param
        for value in model.graph.input
        if value.name not in constants
        and value.type.tensor_type.shape.dim
        and not value.type.tensor_type.shape.dim[0].HasField("dim_value")
    }
    # Several names are several things.
    return found.pop() if len(found) == 1 and all(map(_NO_NAME.fullmatch, found)) else None


def _name_batch(model: Any, symbol: str) -> None:
    for value in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        for place, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.HasField("dim_value"):
                continue
            # Some exporters lose track of the batch on its way to the outputs. Another batch is tried later on.
            if (symbol and dim.dim_param == symbol) or (place == 0 and _NO_NAME.fullmatch(dim.dim_param)):
                dim.dim_param = BATCH


def _input(path: Path, what: str, hint: str) -> ArmletError:
    return ArmletError(what, hint=hint, kind=Kind.INPUT, where=str(path))
