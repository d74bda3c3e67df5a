"""Where a model that is to be packed comes from: its source, its data files, its time."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from armlet_runtime import stamps
from armlet_runtime.payload_manifest import created_at
from armlet_runtime.refusal import PayloadError

from armlet import digest
from armlet.errors import ArmletError, Kind
from armlet.onnx.model_files import external, parsed, whole
from armlet.onnx.ortfile import is_ort_format
from armlet.onnx.record import read_record
from armlet.onnx.soundness import tensors
from armlet.spec.model_record import ModelRecord

_EPOCH = "SOURCE_DATE_EPOCH"
_NAME_IT = "name the ONNX model of floats that it was made from: --source"


def find_source(model: Path, record: ModelRecord | None) -> Path:
    """The ONNX model of floats that a model was made from: itself, or one beside it.

    Raises:
        ArmletError: (INPUT) its record leads to none beside it, or to several; or it has no record, and is
            converted.
    """
    if record is None:
        with model.open("rb") as stream:
            if is_ort_format(stream.read(8)):
                raise _input(model, "is converted already, and no record beside it says from what", _NAME_IT)
        return model
    if record.conversion is None and record.quantization is None:
        return model
    found = {digest.of_file(path): path for path in _candidates(model, record)}
    if len(found) != 1:
        told = ", ".join(path.name for path in found.values()) or "none"
        raise _input(model, f"the source model that its record speaks of is not clear: {told} beside it fits", _NAME_IT)
    return next(iter(found.values()))


def _candidates(model: Path, record: ModelRecord) -> Iterator[Path]:
    direct = None if record.quantization or not record.conversion else record.conversion.input_sha256
    for path in sorted(model.parent.glob("*.onnx")):
        if path == model or not path.is_file():
            continue
        if direct is not None:
            fits = digest.of_file(path) == direct
        else:
            other = read_record(path)
            fits = digest.of_file(path) == record.source.sha256 if other is None else _is_imported(other, record)
        if fits:
            yield path


def _is_imported(other: ModelRecord, record: ModelRecord) -> bool:
    untouched = other.quantization is None and other.conversion is None
    same_baking = other.preprocessing.inside == record.preprocessing.inside
    return untouched and same_baking and other.source.sha256 == record.source.sha256


def external_files(model: Path) -> tuple[str, ...]:
    """Files with the model's data, by the names that it calls them; none for a model in ORT format.

    Raises:
        ArmletError: (INPUT) it is no ONNX model, or a file is missing or is reached through a link.
    """
    data = whole(model)
    if is_ort_format(data):
        return ()
    places = sorted(external(tensors(parsed(data, model))))
    for place in places:
        path = model.parent / place
        is_below = not Path(place).is_absolute() and path.resolve() == model.parent.resolve() / place
        if not path.is_file() or not is_below:
            hint = "copy the data files beside the model, as it names them"
            raise _input(model, f"its data file {place} is missing, or is elsewhere", hint)
    return tuple(places)


def time_of(chosen: str, record: ModelRecord | None, environment: Mapping[str, str] = os.environ) -> str:
    """When a payload was made: as chosen, by ``SOURCE_DATE_EPOCH``, or when its model was imported; never the clock.

    Raises:
        ArmletError: (INPUT) none of these is given, or it is no time that a payload can have.
    """
    epoch = environment.get(_EPOCH, "")
    told = chosen or (_from_epoch(epoch) if epoch else "") or (record.created if record else "")
    if not told:
        hint = f"--created {time.strftime('%Y-%m-%d')}T00:00:00Z, or {_EPOCH}: equal input then gives equal bytes"
        raise ArmletError("nothing says when the payload was made", hint=hint, kind=Kind.INPUT)
    try:
        created_at(told)
    except PayloadError as error:
        hint = "write it in UTC: 2026-01-31T12:00:00Z, from 1970 to 2242"
        raise ArmletError(f'"{told}" is no time that a payload can have', hint=hint, kind=Kind.INPUT) from error
    return told


def _from_epoch(text: str) -> str:
    try:
        return stamps.utc(int(text))
    except (ValueError, OverflowError, OSError) as error:
        what = f'{_EPOCH}="{text}" is no number of seconds'
        raise ArmletError(what, hint="write for example: date +%s", kind=Kind.INPUT) from error


def _input(path: Path, what: str, hint: str) -> ArmletError:
    return ArmletError(what, hint=hint, kind=Kind.INPUT, where=str(path))
