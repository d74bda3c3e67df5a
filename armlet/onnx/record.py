"""The record beside a model (``model.onnx.json``): written by each step on the way to a payload, read by the next."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

from pydantic import ValidationError

from armlet import digest
from armlet.errors import ArmletError, Kind
from armlet.files import write_whole
from armlet.spec.model_record import ModelRecord, SourceModel


def record_path(model: Path) -> Path:
    return model.with_name(f"{model.name}.json")


def write_record(model: Path, record: ModelRecord) -> Path:
    """Writes the record beside its model.

    Raises:
        ArmletError: (HOST) the disk is full or not writable.
    """
    path = record_path(model)
    value = record.model_dump(mode="json", by_alias=True)
    write_whole(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False).encode() + b"\n")
    return path


def read_record(model: Path) -> ModelRecord | None:
    """The record of a model; None where there is none.

    Raises:
        ArmletError: (INPUT) it is damaged, or belongs to another file than the model as it is now.
    """
    path = record_path(model)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _input(path, f"cannot be read: {error.strerror}", "check its permissions") from error
    try:
        record = ModelRecord.model_validate_json(data, extra="ignore")
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise _input(path, f"is no record of a model: {key}: {first['msg']}".replace(": :", ":"), _ANEW) from error
    if record.sha256 != digest.of_file(model):
        raise _input(path, f"belongs to another {model.name} than this one", _ANEW)
    return record


def demand_replaceable(model: Path) -> None:
    """Does nothing where the record's place beside ``model`` is free, or has a record (of whichever model).

    Raises:
        ArmletError: (INPUT) something else is there.
    """
    path = record_path(model)
    if not path.exists():
        return
    try:
        ModelRecord.model_validate_json(path.read_bytes(), extra="ignore")
    except (OSError, ValidationError) as error:
        what = "is no record of a model, and would be overwritten by one"
        raise _input(path, what, "move it away, or name another file: --out") from error


def begun(model: Path) -> ModelRecord:
    """The record of a model; one that begins with the file itself where it has none.

    Raises:
        ArmletError: as :func:`read_record`.
    """
    found = read_record(model)
    if found is not None:
        return found
    known = digest.of_file(model)
    source = SourceModel(kind="onnx", name=model.name, sha256=known, tools={})
    return ModelRecord(model=model.name, sha256=known, created=now(), source=source)


def now() -> str:
    """In UTC: ``2026-01-31T12:00:00Z``."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


_ANEW = "import or convert the model again, or move the record away: what it says is then not known"


def _input(path: Path, what: str, hint: str) -> ArmletError:
    return ArmletError(what, hint=hint, kind=Kind.INPUT, where=str(path))
