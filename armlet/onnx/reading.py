"""Reading ONNX models that somebody hands over, and saying what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from armlet.errors import ArmletError, Kind
from armlet.onnx.libraries import library
from armlet.onnx.model_files import LARGEST, load_external, parsed, whole
from armlet.onnx.ortfile import is_ort_format
from armlet.onnx.soundness import demand_sound, tensors
from armlet.registrations import ONNX_DOMAIN

Shapes = Mapping[str, Sequence[int]]
"""Input name -> its shape for good, every dimension a number."""

_ELSEWHERE = {
    ".tflite": "convert it with tf2onnx: python -m tf2onnx.convert --tflite",
    ".pb": "convert it with tf2onnx: python -m tf2onnx.convert --graphdef",
    **dict.fromkeys((".pt", ".pth", ".pt2", ".h5", ".keras", ".pkl", ".joblib"), "import it: ./inv model.import"),
    ".pdmodel": "convert it with paddle2onnx",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a runtime takes: domain -> newest opset (as in ``runtime.json``), and the newest IR version."""

    opsets: Mapping[str, int] = field(default_factory=dict)
    onnx_ir_max: int | None = None


def read(path: Path, *, shapes: Shapes | None = None, limits: Limits | None = None) -> Any:
    """An ``onnx.ModelProto`` with all its data, its inputs' shapes fixed to ``shapes``.

    Raises:
        ArmletError: the file is missing or no ONNX model, lacks external data, asks for more than ``limits``, or
            ``shapes`` do not fit it.
    """
    model = _parsed(path)
    _check_limits(model, limits or Limits(), path)
    for name, shape in (shapes or {}).items():
        _fix(model, name, shape, path)
    return model


def input_shapes(model: Any) -> dict[str, tuple[int | None, ...]]:
    """Shapes of the inputs that a caller must feed; None where a dimension is not fixed."""
    constants = {tensor.name for tensor in model.graph.initializer}
    return {
        value.name: tuple(
            dim.dim_value if dim.HasField("dim_value") and dim.dim_value > 0 else None
            for dim in value.type.tensor_type.shape.dim
        )
        for value in model.graph.input
        if value.name not in constants
    }


def input_types(model: Any, where: Path | None = None) -> dict[str, Any]:
    """NumPy's types of the inputs that a caller must feed, in the model's order.

    Raises:
        ArmletError: (INPUT) one is no tensor; ``where`` is the model's file.
    """
    dtype_of = library("onnx.helper").tensor_dtype_to_np_dtype
    known = {value.name: value for value in model.graph.input}
    found = {}
    for name in input_shapes(model):
        try:
            found[name] = dtype_of(known[name].type.tensor_type.elem_type)
        except KeyError as error:
            kind = (known[name].type.WhichOneof("value") or "of no type").removesuffix("_type").replace("_", " ")
            raise ArmletError(
                f'its input "{name}" is no tensor of a known type ({kind}), and payloads take tensors alone',
                hint="export it with tensors as its inputs",
                kind=Kind.INPUT,
                where=str(where or "the model"),
            ) from error
    return found


def with_one(shape: Sequence[int | None]) -> tuple[int | None, ...]:
    """A shape to try a model on: a free first dimension is the batch, of which one is enough."""
    return tuple(1 if size is None and place == 0 else size for place, size in enumerate(shape))


def nodes(graph: Any) -> Iterator[Any]:
    """All nodes of a graph and of the graphs inside them."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            inner = [attribute.g] if attribute.HasField("g") else attribute.graphs
            for subgraph in inner:
                yield from nodes(subgraph)


def opsets_of(model: Any) -> dict[str, int]:
    """Domain -> opset that the model was written against; ONNX's own domain is ``ai.onnx``."""
    return {entry.domain or ONNX_DOMAIN: entry.version for entry in model.opset_import}


def _parsed(path: Path) -> Any:
    data = whole(path)
    if is_ort_format(data):
        raise _input(path, "is in ORT format already", "give the ONNX model that it was made from")
    foreign = _ELSEWHERE.get(path.suffix.lower())
    if foreign:
        raise _input(path, f"is no ONNX model: {path.suffix} is another format", foreign)
    model = parsed(data, path)
    load_external(tensors(model), path)
    if model.ByteSize() > LARGEST:
        raise _input(path, "has more than 2 GiB of data", "choose a smaller model, or quantise this one")
    demand_sound(model, path)
    return model


def _check_limits(model: Any, limits: Limits, path: Path) -> None:
    if limits.onnx_ir_max is not None and model.ir_version > limits.onnx_ir_max:
        raise _input(
            path,
            f"has IR version {model.ir_version}, and this runtime reads up to {limits.onnx_ir_max}",
            f"export it again with an older onnx package, or set model.ir_version = {limits.onnx_ir_max}",
        )
    for domain, opset in opsets_of(model).items():
        newest = limits.opsets.get(domain)
        if newest is not None and opset > newest:
            raise _input(
                path,
                f"was written for opset {opset} of {domain}, and this runtime implements up to {newest}",
                f"export it again with opset {newest}, or use onnx.version_converter",
            )


def _fix(model: Any, name: str, shape: Sequence[int], path: Path) -> None:
    known = input_shapes(model)
    shown = "x".join(map(str, shape))
    if name not in known:
        hint = f"its inputs: {', '.join(known)}; mend --shape, or in a SKU the model's inputs:"
        raise _input(path, f'has no input "{name}" whose shape could be fixed to {shown}', hint)
    old = known[name]
    if len(old) != len(shape) or any(was not in (None, new) or new < 1 for was, new in zip(old, shape, strict=True)):
        was = "x".join("?" if size is None else str(size) for size in old)
        raise _input(
            path,
            f'its input "{name}" has the shape {was}, which {shown} does not fit',
            "mend --shape, or in a SKU the model's inputs:",
        )
    value = next(value for value in model.graph.input if value.name == name)
    for dim, size in zip(value.type.tensor_type.shape.dim, shape, strict=True):
        dim.Clear()
        dim.dim_value = size


def _input(path: Path, what: str, hint: str) -> ArmletError:
    return ArmletError(what, hint=hint, kind=Kind.INPUT, where=str(path))
