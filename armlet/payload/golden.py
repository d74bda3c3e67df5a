"""Golden vectors: real inputs, and what the model made of them before anything was done to it for a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from armlet.errors import ArmletError, Kind
from armlet.onnx import tolerances
from armlet.onnx.libraries import library
from armlet.onnx.reference import reference_outputs
from armlet.onnx.sample_files import demand_fit
from armlet.onnx.samples import Sample
from armlet.spec.payload import Golden, GoldenTensor, Tensor

FOLDER = "golden"
_KEPT_FOR_THE_TARGET = 0.5
"""Of a quantised model's tolerance: its kernels round otherwise on each kind of processor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """|got - wanted| <= atol + rtol * |wanted|."""

    atol: float
    rtol: float


FLOATS = Tolerance(atol=tolerances.FLOATS, rtol=10 * tolerances.FLOATS)
INT8 = Tolerance(atol=4 * tolerances.INT8, rtol=4 * tolerances.INT8)
"""Half of it for what eight bits do to the model (``text-direction`` moves by 0.08 where it is undecided), half for
what kernels make of that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vectors:
    entries: tuple[Golden, ...]
    content: Mapping[str, bytes]
    """Path below the payload's folder -> the tensor's elements."""


def vectors(
    samples: Sequence[Sample],
    wanted: Sequence[Sequence[Any]],
    *,
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    tolerance: Tolerance,
) -> Vectors:
    """Per sample its inputs and what is wanted of them, in the model's order.

    Raises:
        ArmletError: (INPUT) a tensor is of text or empty, or an output is not a number.
    """
    entries, content = [], {}
    for number, (sample, results) in enumerate(zip(samples, wanted, strict=True)):
        fed = [sample.inputs[tensor.name] for tensor in inputs]
        kept = {}
        for role, tensors, arrays in (("input", inputs, fed), ("output", outputs, results)):
            rows = []
            for index, (tensor, array) in enumerate(zip(tensors, arrays, strict=True)):
                path = f"{FOLDER}/{number}/{role}-{index}.bin"
                content[path] = _elements(array, f'{role} "{tensor.name}" of the sample {sample.name}')
                shape = tuple(map(int, array.shape))
                rows.append(GoldenTensor(name=tensor.name, dtype=tensor.dtype, shape=shape, file=path))
            kept[role] = tuple(rows)
        entries.append(
            Golden(
                name=sample.name,
                inputs=kept["input"],
                outputs=kept["output"],
                atol=tolerance.atol,
                rtol=tolerance.rtol,
            )
        )
    return Vectors(entries=tuple(entries), content=content)


def choose(samples: Sequence[Sample], count: int) -> tuple[Sample, ...]:
    """``count`` of the samples, or all, spread evenly over them."""
    last = len(samples) - 1
    if count > last:
        return tuple(samples)
    return tuple(samples[index * last // max(1, count - 1)] for index in range(count))


def demand_samples_fit(samples: Sequence[Sample], inputs: Sequence[Tensor]) -> None:
    """Raises:
    ArmletError: (INPUT) a sample is not what the model takes, is empty, or holds what is no number.
    """
    numpy = library("numpy")
    takes = {
        tensor.name: (_dtype(tensor), tuple(size if isinstance(size, int) else None for size in tensor.shape))
        for tensor in inputs
    }
    demand_fit(tuple(samples), takes)
    for sample in samples:
        for name, array in sample.inputs.items():
            _demand_elements(array, f'"{name}" of the sample {sample.name}')
            if array.dtype.kind == "f" and not numpy.isfinite(array).all():
                raise ArmletError(
                    f'its "{name}" holds NaN or infinity',
                    hint="take it out of the samples: real ones are numbers",
                    kind=Kind.INPUT,
                    where=sample.name,
                )


def demand_met(
    model: Path, samples: Sequence[Sample], wanted: Sequence[Sequence[Any]], *, tolerance: Tolerance, quantised: bool
) -> float:
    """Runs the model that ships on this machine; returns the largest share of the tolerance that an element takes up.

    Raises:
        ArmletError: (GATE) it does not give what is wanted; (INPUT) it does not run.
    """
    numpy = library("numpy")
    allowed = _KEPT_FOR_THE_TARGET if quantised else 1.0
    worst = 0.0
    got = reference_outputs(model, samples, as_written=quantised, hint=_FIT)
    for sample, results, expected in zip(samples, got, wanted, strict=True):
        for index, (left, right) in enumerate(zip(results, expected, strict=True)):
            if left.shape != right.shape or left.dtype != right.dtype:
                raise _not_met(model, sample, f"output {index} has another shape or type than the source model's")
            exact = right.astype(numpy.float64)
            with numpy.errstate(all="ignore"):
                off = numpy.abs(left.astype(numpy.float64) - exact)
                share = off / (tolerance.atol + tolerance.rtol * numpy.abs(exact))
            # A difference of zero is right whatever is allowed, and NaN is wrong.
            share = numpy.where(left == right, 0.0, share)
            most = float(share.max(initial=0.0))
            if not most <= allowed:
                place = int(numpy.nanargmax(share)) if not numpy.isnan(share).all() else 0
                what = (
                    f"element {place} of output {index} is {left.flat[place]:.6g}, the source model says "
                    f"{right.flat[place]:.6g}, which is {most:.3g} of the tolerance (allowed here: {allowed:g})"
                )
                raise _not_met(model, sample, what)
            worst = max(worst, most)
    return worst


_FIT = "does it load with onnxruntime on this machine? An ORT-format model must be of this version's format"


def _not_met(model: Path, sample: Sample, what: str) -> ArmletError:
    return ArmletError(
        f"it fails its own golden vectors: {sample.name}: {what}",
        hint="convert or quantise it again from that source; where the difference is meant, state it: --atol, --rtol",
        kind=Kind.GATE,
        where=str(model),
    )


def _dtype(tensor: Tensor) -> Any:
    if tensor.dtype == "string":
        raise _no_text(f'input "{tensor.name}"')
    number = getattr(library("onnx").TensorProto, tensor.dtype.upper())
    return library("onnx.helper").tensor_dtype_to_np_dtype(number)


def _elements(array: Any, what: str) -> bytes:
    numpy = library("numpy")
    if array.dtype.kind not in "biuf":
        raise _no_text(what)
    _demand_elements(array, what)
    if array.dtype.kind == "f" and not numpy.isfinite(array).all():
        hint = "leave such samples out of --samples, or mend the model"
        raise ArmletError(f"the {what} holds NaN or infinity", hint=hint, kind=Kind.INPUT)
    data: bytes = numpy.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()
    return data


def _demand_elements(array: Any, what: str) -> None:
    if not array.size:
        hint = "leave such samples out of --samples: comparing nothing finds no difference"
        raise ArmletError(f"the {what} has no elements", hint=hint, kind=Kind.INPUT)


def _no_text(what: str) -> ArmletError:
    hint = "let the model take and give numbers, and map text outside of it"
    return ArmletError(f"the {what} is text, and golden vectors are numbers", hint=hint, kind=Kind.INPUT)
