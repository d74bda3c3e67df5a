"""A model's int8 version as a data scientist makes it: from a file and samples of one's own, with its record."""

from __future__ import annotations

from pathlib import Path

from armlet.errors import ArmletError, Kind
from armlet.events import Sink, silent
from armlet.onnx.quantise import Hints, Quantised, quantise
from armlet.onnx.record import begun, write_record
from armlet.onnx.sample_files import samples_of
from armlet.spec.model_record import Quantization
from armlet.spec.sku import Quantise

_HINTS = Hints(leave="keep the model of floats", whole="add --no-per-channel")


def quantise_file(model: Path, out: Path, samples: Path, how: Quantise, emit: Sink = silent) -> Quantised:
    """Writes the int8 version and its record, which goes on where the model's own ends.

    Raises:
        ArmletError: (INPUT) the model cannot be quantised, the samples do not fit it, or ``out`` is the model itself.
    """
    if out.exists() and out.samefile(model):
        raise ArmletError(
            "is the model itself, and would be overwritten", hint="name another: --out", kind=Kind.INPUT, where=str(out)
        )
    before = begun(model)
    made = quantise(model, out, how=how, samples=samples_of(samples, model, {}), hints=_HINTS, emit=emit)
    quantization = Quantization(
        format=made.format,
        activation=made.activation,
        weight=made.weight,
        per_channel=made.per_channel,
        calibration=made.calibration,
    )
    changed = {"model": out.name, "sha256": made.sha256, "external": {}, "quantization": quantization}
    write_record(out, before.model_copy(update=changed))
    return made
