"""A model's int8 version as a data scientist makes it: from a file and samples of one's own, with its record."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

from armlet import digest
from armlet.errors import ArmletError, Kind
from armlet.events import Sink, silent
from armlet.onnx.libraries import library
from armlet.onnx.quantise import Quantised, quantise
from armlet.onnx.reading import input_shapes, read
from armlet.onnx.record import read_record, write_record
from armlet.onnx.sample_files import demand_fit, load_samples
from armlet.spec.model_record import ModelRecord, Quantization, SourceModel
from armlet.spec.sku import Quantise


def quantise_file(model: Path, out: Path, samples: Path, how: Quantise, emit: Sink = silent) -> Quantised:
    """Writes the int8 version and its record, which goes on where the model's own ends.

    Raises:
        ArmletError: (INPUT) the model cannot be quantised, the samples do not fit it, or ``out`` is the model itself.
    """
    if out.exists() and out.samefile(model):
        raise ArmletError(
            "is the model itself, and would be overwritten", hint="name another: --out", kind=Kind.INPUT, where=str(out)
        )
    before = read_record(model)
    source = read(model)
    numpy_type = library("onnx.helper").tensor_dtype_to_np_dtype
    types = {value.name: numpy_type(value.type.tensor_type.elem_type) for value in source.graph.input}
    given = load_samples(samples)
    demand_fit(given, {name: (types[name], shape) for name, shape in input_shapes(source).items()})
    made = quantise(model, out, how=how, samples=given, emit=emit)
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    first = before or ModelRecord(
        model=model.name,
        sha256=digest.of_file(model),
        created=now,
        source=SourceModel(kind="onnx", name=model.name, sha256=digest.of_file(model), tools={}),
    )
    quantization = Quantization(
        format=made.format,
        activation=made.activation,
        weight=made.weight,
        per_channel=made.per_channel,
        calibration=made.calibration,
    )
    changed = {"model": out.name, "sha256": made.sha256, "external": {}, "quantization": quantization}
    write_record(out, first.model_copy(update=changed))
    return made
