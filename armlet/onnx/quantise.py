"""A model's int8 version: ONNX's QDQ format, calibrated on the model's own samples.

The model is optimised first as far as every provider bears it, so that batch normalisations are inside the
convolutions before their weights are rounded. ONNX Runtime's own quantiser does the rest.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from armlet import digest
from armlet.errors import ArmletError, Kind
from armlet.events import Note, Sink, silent
from armlet.files import write_whole
from armlet.onnx.convert import save_optimised
from armlet.onnx.levels import LEVELS
from armlet.onnx.libraries import library
from armlet.onnx.reading import Limits, Shapes, nodes, opsets_of, read
from armlet.onnx.samples import Sample
from armlet.registrations import ONNX_DOMAIN
from armlet.scratch import scratch
from armlet.spec.sku import Quantise

_PER_CHANNEL_OPSET = 13
"""The first whose DequantizeLinear takes a scale per channel; a model for an older one is raised to it."""
_OLDEST_OPSET = 10
"""The first with QuantizeLinear."""
_WEIGHTED = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
_QUANTISED = frozenset({"QuantizeLinear", "DequantizeLinear", "ConvInteger", "MatMulInteger"})

INT8_OPERATORS = (
    *("Add", "AveragePool", "Clip", "Concat", "Conv", "Gemm", "GlobalAveragePool", "LeakyRelu", "MatMul", "MaxPool"),
    *("Mul", "Relu", "Reshape", "Sigmoid", "Transpose"),
)
"""What ONNX Runtime has int8 kernels for, and the activations that go into the rounding before them. Any other operator
stays in float. Softmax does too, although it has a kernel: 256 steps are too few for probabilities."""


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


def quantise(
    model: Path,
    out: Path,
    *,
    how: Quantise,
    samples: Sequence[Sample],
    shapes: Shapes | None = None,
    limits: Limits | None = None,
    emit: Sink = silent,
) -> Quantised:
    """Writes the int8 version of an ONNX model of floats; equal input gives equal bytes.

    Args:
        model: an ``.onnx`` file of floats.
        out: where the quantised ``.onnx`` file goes; only ever a whole one.
        samples: what the ranges of the activations are taken from (smallest and largest).
        shapes: inputs whose shapes are fixed for good; the quantised model has them fixed.
        limits: what the runtime takes.

    Raises:
        ArmletError: (INPUT) the model has nothing to quantise, is quantised already, cannot be raised to the opset that
            is needed or does not take the samples.
    """
    source = read(model, shapes=shapes, limits=limits)
    _refuse(source, model, samples)
    emit(Note(text=f"quantising {model.name}: {how.activation} activations, {how.weight} weights"))
    prepared = _prepared(source, how, limits or Limits(), model)
    emit(Note(text=f"quantising {model.name}: finding the ranges of its activations on {len(samples)} samples"))
    made = _quantised(prepared, how, samples, model)
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


def _refuse(source: Any, path: Path, samples: Sequence[Sample]) -> None:
    found = list(nodes(source.graph))
    quantised = sorted({node.op_type for node in found if node.op_type in _QUANTISED or "QLinear" in node.op_type})
    if quantised:
        raise _input(path, f"is quantised already: it has {', '.join(quantised)}", "give the model of floats")
    if not any(node.op_type in _WEIGHTED for node in found):
        what = "has no convolution and no matrix product, so there is nothing to gain from int8"
        raise _input(path, what, "remove quantise: from this model in the SKU")
    if not samples:
        raise _input(path, "there are no samples to find the activations' ranges with", "give at least one")


def _prepared(source: Any, how: Quantise, limits: Limits, path: Path) -> Any:
    data = save_optimised(source, LEVELS["xnnpack"], save_as="ONNX", where=path)
    optimised = library("onnx").load_model_from_string(data)
    wanted = _PER_CHANNEL_OPSET if how.per_channel else _OLDEST_OPSET
    opset = opsets_of(optimised).get(ONNX_DOMAIN, 0)
    newest = limits.opsets.get(ONNX_DOMAIN)
    if newest is not None and newest < wanted:
        raise _input(
            path,
            f"its int8 version needs opset {wanted}, and this runtime implements up to {newest}",
            "write per_channel: false, or choose a newer source set",
        )
    if opset < wanted:
        optimised = _raised(optimised, opset, wanted, path)
    _flatten_biases(optimised)
    library("onnxruntime.quantization.quant_utils").add_pre_process_metadata(optimised)
    return optimised


def _flatten_biases(model: Any) -> None:
    """Biases of one row (scikit-learn's) become lists, which mean the same: the quantiser takes them for matrices."""
    readers = Counter(name for node in nodes(model.graph) for name in node.input)
    biases = {node.input[2] for node in model.graph.node if node.op_type == "Gemm" and len(node.input) > 2}
    for tensor in model.graph.initializer:
        if tensor.name in biases and readers[tensor.name] == 1 and len(tensor.dims) == 2 and tensor.dims[0] == 1:
            del tensor.dims[0]


def _raised(model: Any, opset: int, wanted: int, path: Path) -> Any:
    try:
        return library("onnx.version_converter").convert_version(model, wanted)
    except Exception as error:  # The converter raises whatever its C++ half throws.
        raise _input(
            path,
            f"was written for opset {opset}, its int8 version needs {wanted}, and onnx cannot convert it: {error}",
            f"export it again with opset {wanted} or newer"
            + (", or write per_channel: false" if wanted > _OLDEST_OPSET else ""),
        ) from error


def _quantised(prepared: Any, how: Quantise, samples: Sequence[Sample], path: Path) -> Any:
    quantization = library("onnxruntime.quantization")
    types = {"int8": quantization.QuantType.QInt8, "uint8": quantization.QuantType.QUInt8}
    with scratch("quantise") as folder:
        saved = Path(folder, "quantised.onnx")
        try:
            quantization.quantize_static(
                prepared,
                str(saved),
                _Reader(samples),
                quant_format=quantization.QuantFormat.QDQ,
                activation_type=types[how.activation],
                weight_type=types[how.weight],
                per_channel=how.per_channel,
                op_types_to_quantize=list(INT8_OPERATORS),
                calibrate_method=quantization.CalibrationMethod.MinMax,
            )
        except Exception as error:  # The quantiser raises whatever it meets: ValueError, AssertionError, the binding's.
            raise _input(
                path,
                f"ONNX Runtime cannot quantise the model: {error}",
                "remove quantise: from this model in the SKU, or quantise it yourself and give that as path:",
            ) from error
        return library("onnx").load_model_from_string(saved.read_bytes())


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
