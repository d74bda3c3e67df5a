"""A model's int8 version as a data scientist makes it: from a file and samples of one's own, with its record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from armlet.errors import ArmletError, Kind
from armlet.events import Sink, silent
from armlet.onnx.quantise import Hints, Quantised, quantise, signal_to_error
from armlet.onnx.record import begun, write_record
from armlet.onnx.reference import reference_outputs
from armlet.onnx.sample_files import samples_of
from armlet.onnx.samples import Sample
from armlet.spec.model_record import Quantization
from armlet.spec.sku import Quantise

_HINTS = Hints(leave="keep the model of floats", whole="add --no-per-channel")


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """Samples that say what is right, and how many of them each model answers so."""

    known: int
    floats: int
    int8: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantisedFile:
    made: Quantised
    record: Path
    size_before: int
    """Bytes of the model of floats."""
    samples: int
    near_float_db: float
    """Decibels by which outputs stand above their difference from the floats'; infinite where there is none."""
    right: Right | None
    """None: no sample says what is right."""


def quantise_file(model: Path, out: Path, samples: Path, how: Quantise, emit: Sink = silent) -> QuantisedFile:
    """Writes the int8 version and its record, which goes on where the model's own ends.

    Raises:
        ArmletError: (INPUT) the model cannot be quantised, the samples do not fit it, or ``out`` is the model itself.
    """
    if out.exists() and out.samefile(model):
        raise ArmletError(
            "is the model itself, and would be overwritten", hint="name another: --out", kind=Kind.INPUT, where=str(out)
        )
    before, given = begun(model), samples_of(samples, model, {})
    raw = [inside.input for inside in before.preprocessing.inside]
    made = quantise(model, out, how=how, samples=given, raw=raw, hints=_HINTS, emit=emit)
    floats = reference_outputs(model, given, hint=_MEND)
    int8 = reference_outputs(out, given, as_written=True, hint=_MEND)
    near = signal_to_error([_numbers(one) for one in floats], [_numbers(one) for one in int8])
    quantization = Quantization(
        format=made.format,
        activation=made.activation,
        weight=made.weight,
        per_channel=made.per_channel,
        calibration=made.calibration,
        near_float_db=round(near, 1) if isfinite(near) else None,
    )
    changed: dict[str, Any] = {
        "model": out.name,
        "sha256": made.sha256,
        "external": {},
        "parity": None,
        "quantization": quantization,
    }
    record = write_record(out, before.model_copy(update=changed))
    size = model.stat().st_size + sum(model.with_name(name).stat().st_size for name in before.external)
    return QuantisedFile(
        made=made,
        record=record,
        size_before=size,
        samples=len(given),
        near_float_db=near,
        right=_right(given, floats, int8),
    )


_MEND = "give samples of the model's own types and shapes: --samples"


def _numbers(outputs: Sequence[Any]) -> list[Any]:
    return [array for array in outputs if array.dtype.kind == "f"]


def _right(samples: Sequence[Sample], floats: Sequence[Any], int8: Sequence[Any]) -> Right | None:
    known = [place for place, sample in enumerate(samples) if sample.expected is not None]
    if not known:
        return None
    count = [sum(_chosen(found[place]) == samples[place].expected for place in known) for found in (floats, int8)]
    return Right(known=len(known), floats=count[0], int8=count[1])


def _chosen(outputs: Sequence[Any]) -> int | None:
    """The class of a sample: the first output itself where it is one whole number, else where it is largest."""
    first = outputs[0]
    if first.dtype.kind not in "fiu" or not first.size:
        return None
    return int(first.item()) if first.dtype.kind in "iu" and first.size == 1 else int(first.argmax())
