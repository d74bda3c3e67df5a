"""A model and what belongs to it, put into a folder so that nobody ever finds a part of it."""

from __future__ import annotations

import glob
import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from armlet import digest
from armlet.files import write_whole
from armlet.onnx.libraries import library
from armlet.onnx.record import demand_replaceable, record_path, write_record
from armlet.spec.model_record import ModelRecord

MEGABYTE = 1_000_000
_HASHED = r"\.([0-9a-f]{8})\.data"
_WORTH_MOVING = 1024
"""Bytes. Smaller constants stay in the model."""
_PAGE = 4096
"""Bytes. On pages of their own, the kernel can map them in place."""


def split(model: Any, out: Path, threshold: int) -> dict[str, bytes]:
    """Moves large constants out of an ``onnx.ModelProto`` where all of them have more than ``threshold`` bytes.

    Returns:
        Name of a file beside ``out`` -> its content; empty where nothing was moved. The name has the content's hash, so
        that no model ever meets the data of another.
    """
    proto, helper = library("onnx").TensorProto, library("onnx.numpy_helper")
    plain = [tensor for tensor in model.graph.initializer if tensor.data_type != proto.STRING]
    if sum(tensor.ByteSize() for tensor in plain) <= threshold:
        return {}
    parts = bytearray()
    moved = []
    for tensor in plain:
        if not tensor.HasField("raw_data"):
            tensor.CopyFrom(helper.from_array(helper.to_array(tensor), tensor.name))
        if len(tensor.raw_data) < _WORTH_MOVING:
            continue
        parts.extend(bytes(-len(parts) % _PAGE))
        moved.append((tensor, len(parts)))
        parts.extend(tensor.raw_data)
    data = bytes(parts)
    name = f"{out.name}.{digest.of_bytes(data)[:8]}.data"
    for tensor, offset in moved:
        entries = {"location": name, "offset": str(offset), "length": str(len(tensor.raw_data))}
        tensor.ClearField("raw_data")
        tensor.data_location = proto.EXTERNAL
        for key, value in entries.items():
            tensor.external_data.add(key=key, value=value)
    return {name: data} if moved else {}


def save(out: Path, data: bytes, beside: dict[str, bytes], record: ModelRecord, *, source: Path | None = None) -> Path:
    """Writes the model, the files beside it, and its record last; what a failure leaves behind is removed.

    Args:
        source: the ONNX model that it was made from, whose own files stay.

    Returns:
        The record's path.

    Raises:
        ArmletError: (HOST) the disk is full or not writable; (INPUT) a file that is no record is in the record's place.
    """
    demand_replaceable(out)
    files = {out.with_name(name): content for name, content in beside.items()}
    new = [path for path in (*files, out, record_path(out)) if not path.exists()]
    old = old_data(out, source)
    try:
        for path, content in files.items():
            write_whole(path, content)
        # A record of another model is worse than none.
        record_path(out).unlink(missing_ok=True)
        write_whole(out, data)
        written = write_record(out, record)
    except BaseException:
        for path in new:
            path.unlink(missing_ok=True)
        raise
    drop(old, beside)
    return written


def old_data(out: Path, source: Path | None) -> tuple[Path, ...]:
    """The files of its own that the model now at ``out`` names: written by ``split``, unchanged, not ``source``'s."""
    if not out.is_file():
        return ()
    named = out.read_bytes()
    taken = source.read_bytes() if source is not None and source.is_file() else b""
    return tuple(
        path
        for path in out.parent.glob(f"{glob.escape(out.name)}.*.data")
        if (found := re.fullmatch(_HASHED, path.name.removeprefix(out.name)))
        and path.name.encode() in named
        and path.name.encode() not in taken
        and path.is_file()
        and digest.of_file(path).startswith(found[1])
    )


def drop(old: Iterable[Path], beside: Collection[str]) -> None:
    """Removes what ``old_data`` found before a model was replaced; ``beside`` has the names that stay."""
    for path in old:
        if path.name not in beside:
            path.unlink(missing_ok=True)
