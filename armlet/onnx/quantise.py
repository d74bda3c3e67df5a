"""A model's int8 version: ONNX's QDQ format, calibrated on the model's own samples.

The model is optimised first as far as every provider bears it, so that batch normalisations are inside the
convolutions before their weights are rounded. ONNX Runtime's own quantiser does the rest.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from armlet import digest
from armlet.errors import ArmletError, Kind
from armlet.events import Note, Sink, silent
from armlet.files import write_whole
from armlet.onnx.libraries import library
from armlet.onnx.quantise_prepare import baked, prepared
from armlet.onnx.reading import Limits, Shapes, nodes, read
from armlet.onnx.samples import Sample
from armlet.scratch import scratch
from armlet.spec.sku import Quantise

_WEIGHTED = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
_QUANTISED = frozenset({"QuantizeLinear", "DequantizeLinear", "ConvInteger", "MatMulInteger"})

INT8_OPERATORS = (
    *("Add", "AveragePool", "Clip", "Concat", "Conv", "Gemm", "GlobalAveragePool", "LeakyRelu", "MatMul", "MaxPool"),
    *("Mul", "Relu", "Reshape", "Sigmoid", "Transpose"),
)
"""What ONNX Runtime has int8 kernels for, and the activations that go into the rounding before them. Any other operator
stays in float. Softmax does too, although it has a kernel: 256 steps are too few for probabilities."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """What is to be done, in the words of the place where the user asked for an int8 version."""

    leave: str = "remove quantise: from this model in the SKU"
    whole: str = "write per_channel: false"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantised:
    """An int8 model, and what ``payload.json`` says of how it came about. ``size`` in bytes."""

    path: Path
    sha256: str
    size: int
    format: Literal["qdq"]
    activation: Literal["int8", "uint8"]
    weight: Literal["int8", "uint8"]
    per_channel: bool
    calibration: str
    """sha256 over the samples: names, types, shapes and every number."""
    weighted: int
    """Nodes that multiply constant weights and sum."""
    in_float: tuple[str, ...]
    """Those of them that stayed in floats."""


def quantise(
    model: Path,
    out: Path,
    *,
    how: Quantise,
    samples: Sequence[Sample],
    shapes: Shapes | None = None,
    limits: Limits | None = None,
    raw: Collection[str] = (),
    hints: Hints | None = None,
    emit: Sink = silent,
) -> Quantised:
    """Writes the int8 version of an ONNX model of floats; equal input gives equal bytes.

    Args:
        model: an ``.onnx`` file of floats.
        out: where the quantised ``.onnx`` file goes; only ever a whole one.
        samples: what the ranges of the activations are taken from (smallest and largest).
        shapes: inputs whose shapes are fixed for good; the quantised model has them fixed.
        limits: what the runtime takes.
        raw: inputs behind which the importer put preprocessing: that stays in floats, as it is exact there.
        hints: None: the model is one of a SKU's.

    Raises:
        ArmletError: (INPUT) the model has nothing to quantise, is quantised already, cannot be raised to the opset that
            is needed or does not take the samples.
    """
    source, hints = read(model, shapes=shapes, limits=limits), hints or Hints()
    _refuse(source, model, samples, hints)
    emit(Note(text=f"quantising {model.name}: {how.activation} activations, {how.weight} weights"))
    ready = prepared(source, how, limits or Limits(), model, whole=hints.whole)
    emit(Note(text=f"quantising {model.name}: finding the ranges of its activations on {len(samples)} samples"))
    # Numbers that overflow are told of below.
    with _overheard() as heard, library("numpy").errstate(all="ignore"):
        made = _quantised(ready, how, samples, baked(ready, raw), model, hints)
    _demand_ranges(made, model)
    weighted, in_float = _weighted(made)
    for text in (*_retold(heard), *_left(weighted, in_float)):
        emit(Note(text=f"quantising {model.name}: {text}"))
    data = _canonical(made).SerializeToString(deterministic=True)
    write_whole(out, data)
    return Quantised(
        path=out,
        sha256=digest.of_bytes(data),
        size=len(data),
        format=how.format,
        activation=how.activation,
        weight=how.weight,
        per_channel=how.per_channel,
        calibration=calibration_digest(samples),
        weighted=weighted,
        in_float=in_float,
    )


def calibration_digest(samples: Sequence[Sample]) -> str:
    """sha256 (hexadecimal) over the samples, in their order."""
    running = hashlib.sha256()
    for sample in samples:
        for name, array in sorted(sample.inputs.items()):
            head = [sample.name, name, str(array.dtype), list(array.shape)]
            running.update(digest.canonical_json(head))
            running.update(array.tobytes())
    return running.hexdigest()


def signal_to_error(wanted: Sequence[Sequence[Any]], got: Sequence[Sequence[Any]]) -> float:
    """Decibels by which outputs stand above their difference from others: per sample the outputs as NumPy arrays.

    Infinite where there is no difference; minus infinity where shapes differ or a number is none.
    """
    numpy = library("numpy")
    pairs = [pair for ours, theirs in zip(wanted, got, strict=True) for pair in zip(ours, theirs, strict=True)]
    if any(one.shape != other.shape for one, other in pairs):
        return float("-inf")
    signal = float(sum(numpy.square(one.astype(numpy.float64)).sum() for one, _ in pairs))
    error = float(sum(numpy.square(one.astype(numpy.float64) - other).sum() for one, other in pairs))
    if not numpy.isfinite(error):
        return float("-inf")
    if error == 0:
        return float("inf")
    return float(10 * numpy.log10(signal / error)) if signal else float("-inf")


def _refuse(source: Any, path: Path, samples: Sequence[Sample], hints: Hints) -> None:
    found = list(nodes(source.graph))
    quantised = sorted({node.op_type for node in found if node.op_type in _QUANTISED or "QLinear" in node.op_type})
    if quantised:
        raise _input(path, f"is quantised already: it has {', '.join(quantised)}", "give the model of floats")
    if not any(node.op_type in _WEIGHTED for node in found):
        what = "has no convolution and no matrix product, so there is nothing to gain from int8"
        raise _input(path, what, hints.leave)
    if not samples:
        raise _input(path, "there are no samples to find the activations' ranges with", "give at least one")


def _quantised(ready: Any, how: Quantise, samples: Sequence[Sample], left: list[str], path: Path, hints: Hints) -> Any:
    quantization = library("onnxruntime.quantization")
    types = {"int8": quantization.QuantType.QInt8, "uint8": quantization.QuantType.QUInt8}
    with scratch("quantise") as folder:
        saved = Path(folder, "quantised.onnx")
        try:
            quantization.quantize_static(
                ready,
                str(saved),
                _Reader(samples),
                quant_format=quantization.QuantFormat.QDQ,
                activation_type=types[how.activation],
                weight_type=types[how.weight],
                per_channel=how.per_channel,
                op_types_to_quantize=list(INT8_OPERATORS),
                nodes_to_exclude=left,
                calibrate_method=quantization.CalibrationMethod.MinMax,
            )
        except Exception as error:  # The quantiser raises whatever it meets: ValueError, AssertionError, the binding's.
            raise _input(
                path,
                f"ONNX Runtime cannot quantise the model: {error}",
                f"do the samples fit it, in type and shape? else {hints.leave}",
            ) from error
        return library("onnx").load_model_from_string(saved.read_bytes())


@contextmanager
def _overheard() -> Iterator[list[str]]:
    """What the quantiser says to Python's root logger, rather than the user."""
    heard: list[str] = []
    handler, root = logging.Handler(logging.WARNING), logging.getLogger()
    handler.emit = lambda record: heard.append(record.getMessage())  # type: ignore[method-assign]
    before, root.handlers = root.handlers, [handler]
    try:
        yield heard
    finally:
        root.handlers = before


def _retold(heard: Sequence[str]) -> Iterator[str]:
    untyped = {text for text in heard if text.startswith("failed to infer the type")}
    if untyped:
        yield f"{len(untyped)} values stay in floats: nothing tells their types"
    for text in dict.fromkeys(heard):
        if text not in untyped:
            yield f"ONNX Runtime says: {' '.join(text.split())}"


def _demand_ranges(made: Any, path: Path) -> None:
    """Does nothing where every step between two int8 numbers is a number.

    Raises:
        ArmletError: (INPUT) one is not: the samples drive the model out of what a float holds.
    """
    numpy, to_array = library("numpy"), library("onnx.numpy_helper").to_array
    steps = {node.input[1] for node in nodes(made.graph) if node.op_type in ("QuantizeLinear", "DequantizeLinear")}
    for tensor in made.graph.initializer:
        values = to_array(tensor) if tensor.name in steps else None
        if values is not None and not (numpy.isfinite(values).all() and (values > 0).all()):
            what = f'on these samples the range of "{tensor.name.removesuffix("_scale")}" is none: {values.max():g}'
            raise _input(path, what, "give samples as the device will see them")


def _weighted(made: Any) -> tuple[int, tuple[str, ...]]:
    """How many nodes multiply constant weights and sum, and those whose weights are floats."""
    found = list(nodes(made.graph))
    floats = {tensor.name for tensor in made.graph.initializer}
    integers = {node.output[0] for node in found if node.op_type == "DequantizeLinear" and node.input[0] in floats}
    weighted = [node for node in found if node.op_type in _WEIGHTED and {*node.input[:2]} & (floats | integers)]
    left = [node for node in weighted if {*node.input[:2]} & floats]
    return len(weighted), tuple(f"{node.op_type} {node.name or node.output[0]}" for node in left)


_TOLD = 3


def _left(weighted: int, in_float: Sequence[str]) -> Iterator[str]:
    if in_float:
        more = ", ..." if len(in_float) > _TOLD else ""
        yield f"{len(in_float)} of {weighted} nodes with weights stay in floats: {', '.join(in_float[:_TOLD])}{more}"


class _Reader:
    """The samples as the quantiser asks for them."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self._rest = iter(samples)

    def get_next(self) -> dict[str, Any] | None:
        sample = next(self._rest, None)
        return None if sample is None else dict(sample.inputs)


def _canonical(model: Any) -> Any:
    """The model without what depends on anything but the model: order of the constants, marks of the tools."""
    ordered = sorted(model.graph.initializer, key=lambda tensor: tensor.name)
    del model.graph.initializer[:]
    model.graph.initializer.extend(ordered)
    values = sorted(model.graph.value_info, key=lambda value: value.name)
    del model.graph.value_info[:]
    model.graph.value_info.extend(values)
    del model.metadata_props[:]
    return model


def _input(path: Path, what: str, hint: str) -> ArmletError:
    return ArmletError(what, hint=hint, kind=Kind.INPUT, where=str(path))
