"""A model's bytes: how many there are, whether they are all there, and where the rest of its data lies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from armlet.errors import ArmletError, Kind
from armlet.files import open_regular
from armlet.onnx.libraries import library

LARGEST = 2**31 - 1
"""Bytes: what a protobuf message may have."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED_SIZES = {_FIXED64: 8, _FIXED32: 4}
_VERSION_FIRST = b"\x08"
"""How models start: with the field 1, a number."""
_FIRST_FIELD = 1 << 3
_MOST_FIELDS = 1 << 16
"""That are looked at of a damaged file: a model has a few dozen, and one for each function and each line about it."""
_SMALLER = "choose a smaller model, or quantise this one"
_BESIDE = "copy the data files beside the model, as it names them"
_ANEW = "save it anew with onnx.save(..., save_as_external_data=True)"


def whole(path: Path) -> bytes:
    """The file's content; its size is looked at before any of it is read.

    Raises:
        ArmletError: (INPUT) it is no file, cannot be read, or has more than a model may have.
    """
    try:
        with open_regular(path) as stream:
            size = os.fstat(stream.fileno()).st_size
            if size > LARGEST:
                raise _input(path, f"has {size} bytes, and a model may have 2 GiB", _SMALLER)
            return stream.read()
    except OSError as error:
        raise _input(path, f"cannot read the model: {(error.strerror or '').lower()}", "check the path") from error


def is_cut_short(data: bytes) -> bool:
    """Whether a model ends in the middle of one of its message's own fields."""
    if not data.startswith(_VERSION_FIRST):
        return False
    place = 0
    for _ in range(_MOST_FIELDS):
        if place >= len(data):
            break
        key, place = _number(data, place)
        if key is not None and key < _FIRST_FIELD:
            return False
        kind = None if key is None else key & 7
        if kind == _VARINT:
            value, place = _number(data, place)
            if value is None:
                return place >= len(data)
        elif kind in _FIXED_SIZES:
            place += _FIXED_SIZES[kind]
        elif kind == _BYTES:
            size, place = _number(data, place)
            if size is None:
                return place >= len(data)
            place += size
        else:
            return key is None and place >= len(data)
    return place > len(data)


def _number(data: bytes, place: int) -> tuple[int | None, int]:
    """A varint and the place behind it; None where there is none."""
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(data):
            return None, place
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
    return None, place


def external(tensors: Iterator[Any]) -> dict[str, list[Any]]:
    """File, as the model names it -> the tensors whose data lies there."""
    found: dict[str, list[Any]] = {}
    for tensor in tensors:
        if tensor.data_location == tensor.EXTERNAL:
            found.setdefault(_entries(tensor).get("location", ""), []).append(tensor)
    return found


def load_external(tensors: Iterator[Any], path: Path) -> None:
    """Fills in what lies in files beside the model; nothing is read before all of it is known to be in order.

    Raises:
        ArmletError: (INPUT) a file is missing, too short, or outside the model's folder; all of it is too much.
    """
    found = external(tensors)
    files = {name: _inside(name, path) for name in found}
    total = sum(_check(tensor, files[name], path) for name, members in found.items() for tensor in members)
    if total > LARGEST:
        raise _input(path, "has more than 2 GiB of data", _SMALLER)
    for name, members in found.items():
        with files[name].open("rb") as stream:
            for tensor in members:
                offset, length = _extent(tensor, files[name], path)
                stream.seek(offset)
                tensor.raw_data = stream.read(length)
                tensor.data_location = tensor.DEFAULT
                del tensor.external_data[:]


def _inside(name: str, path: Path) -> Path:
    shown = name or "(no name)"
    base = path.parent.resolve()
    parts = Path(name).parts
    if not name or Path(name).is_absolute() or ".." in parts or "\\" in name or "\0" in name:
        raise _input(path, f"its external data is in {shown}, which is no file below the model's folder", _ANEW)
    file = base / name
    if not file.resolve().is_relative_to(base):
        raise _input(path, f"its external data {name} is a link that leads out of the model's folder", _ANEW)
    if not file.is_file():
        raise _input(path, f"its external data cannot be read: there is no file {name}", _BESIDE)
    return file


def _check(tensor: Any, file: Path, path: Path) -> int:
    offset, length = _extent(tensor, file, path)
    if offset + length > file.stat().st_size:
        what = f"its external data {file.name} is cut short: {tensor.name} ends at byte {offset + length} of it"
        raise _input(path, what, _BESIDE)
    return length


def _extent(tensor: Any, file: Path, path: Path) -> tuple[int, int]:
    """(offset, length) in bytes."""
    entries = _entries(tensor)
    try:
        offset = int(entries.get("offset", "0"))
        length = int(entries.get("length", str(file.stat().st_size - offset)))
    except ValueError as error:
        raise _input(path, f"its external data of {tensor.name} has no number as offset or length", _ANEW) from error
    if offset < 0 or length < 0:
        raise _input(path, f"its external data of {tensor.name} has a negative offset or length", _ANEW)
    return offset, length


def _entries(tensor: Any) -> dict[str, str]:
    return {entry.key: entry.value for entry in tensor.external_data}


def parsed(data: bytes, path: Path) -> Any:
    """An ``onnx.ModelProto``, without what lies in other files.

    Raises:
        ArmletError: (INPUT) it is none.
    """
    hint = "give a file that onnx.checker.check_model accepts"
    try:
        model = library("onnx").load_model_from_string(data)
    except Exception as error:  # protobuf's own exceptions differ by version and back end.
        if is_cut_short(data):
            raise _input(path, "is cut short: it ends in the middle of a field", "copy it again") from error
        raise _input(path, "is no ONNX model, or it is damaged, or nested too deeply", hint) from error
    # Protobuf reads many a foreign file as an empty message.
    if not model.graph.node or not model.opset_import:
        raise _input(path, "is no ONNX model", hint)
    return model


def _input(path: Path, what: str, hint: str) -> ArmletError:
    return ArmletError(what, hint=hint, kind=Kind.INPUT, where=str(path))
