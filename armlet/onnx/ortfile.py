"""ORT-format files: recognising them, and giving equal models equal bytes."""

from __future__ import annotations

import struct
from typing import Any

from armlet.errors import ArmletError, Kind
from armlet.onnx.libraries import library

IDENTIFIER = b"ORTM"
_FBS = "onnxruntime.tools.ort_format_model.ort_flatbuffers_py.fbs"
# Larger than any alignment the schema asks for, so that what is kept stays as aligned as it was.
_ALIGNMENT = 64
_VERSION_FIELD, _MODEL_FIELD = 4, 6
"""Positions in the root table's vtable: its first two fields (``core/flatbuffers/schema/ort.fbs``)."""


def is_ort_format(data: bytes) -> bool:
    """Whether a file that starts with ``data`` is an ORT-format model."""
    return data[4:8] == IDENTIFIER


def format_version(data: bytes, *, where: str = "") -> int:
    """The format's version as the file states it.

    Raises:
        ArmletError: (INPUT) ``data`` is no ORT-format model, or a damaged one; ``where`` is its file.
    """
    session = session_of(data, where)
    try:
        return int(session.OrtVersion())
    # Flatbuffers reads where the damaged file tells it to, and a number there may be anything.
    except (ValueError, TypeError, IndexError, struct.error) as error:
        raise _input("says no version of the ORT format: it is damaged", _AGAIN, where) from error


def demand_version(data: bytes, taken: tuple[int, int], *, by: str, where: str = "") -> None:
    """Does nothing where the model's format is one that a runtime takes: its oldest and its newest.

    Raises:
        ArmletError: (INPUT) it is of another version, damaged, or no ORT-format model.
    """
    found, (oldest, newest) = format_version(data, where=where), taken
    if not oldest <= found <= newest:
        reads = f"{oldest}" if oldest == newest else f"{oldest} to {newest}"
        raise _input(f"is in version {found} of the ORT format, and {by} reads {reads}", _AGAIN, where)


_AGAIN = "convert the ONNX model that it was made from again: ./inv model.convert"


def canonical(data: bytes) -> bytes:
    """The same model in bytes that depend on nothing else.

    ONNX Runtime writes one table, that of the operators' type constraints, in the order of a hash map which is seeded
    anew for every map. It and the root are the last things written and therefore come first in the file: they are
    written again, sorted, in front of everything else as it was.

    Raises:
        ArmletError: ``data`` is no ORT-format model.
    """
    session = session_of(data)
    builder = library("flatbuffers").Builder(len(data) + 4096)
    root = session._tab
    model = root.Indirect(root.Pos + root.Offset(_MODEL_FIELD))
    version = root.Indirect(root.Pos + root.Offset(_VERSION_FIELD))
    vtable = model - int.from_bytes(data[model : model + 4], "little", signed=True)
    kept = data[min(model, vtable) :]
    # Positions count from the end of the buffer, so what is kept goes in as one block and stays where it was.
    builder.minalign = _ALIGNMENT
    builder.head -= len(kept)
    builder.Bytes[builder.head : builder.head + len(kept)] = kept

    resolver = _write_resolver(builder, session.KernelTypeStrResolver())
    module = library(f"{_FBS}.InferenceSession")
    module.Start(builder)
    module.AddOrtVersion(builder, len(data) - version)
    module.AddModel(builder, len(data) - model)
    module.AddKernelTypeStrResolver(builder, resolver)
    builder.Finish(module.End(builder), file_identifier=IDENTIFIER)
    return bytes(builder.Output())


def session_of(data: bytes, where: str = "") -> Any:
    """The file's root table.

    Raises:
        ArmletError: (INPUT) ``data`` is no ORT-format model; ``where`` is its file.
    """
    if not is_ort_format(data):
        raise _input("not an ORT-format model", "convert the ONNX model first: ./inv model.convert", where)
    return library(f"{_FBS}.InferenceSession").InferenceSession.GetRootAs(data, 0)


def _input(what: str, hint: str, where: str) -> ArmletError:
    return ArmletError(what, hint=hint, kind=Kind.INPUT, where=where)


def _write_resolver(builder: Any, resolver: Any) -> int:
    entries = [resolver.OpKernelTypeStrArgs(index) for index in range(resolver.OpKernelTypeStrArgsLength())]
    module = library(f"{_FBS}.OpIdKernelTypeStrArgsEntry")
    written = []
    for entry in sorted(entries, key=lambda entry: bytes(entry.OpId())):
        name = builder.CreateString(entry.OpId())
        arguments = _write_arguments(builder, entry)
        module.Start(builder)
        module.AddOpId(builder, name)
        module.AddKernelTypeStrArgs(builder, arguments)
        written.append(module.End(builder))
    outer = library(f"{_FBS}.KernelTypeStrResolver")
    vector = _vector(builder, outer.StartOpKernelTypeStrArgsVector, written)
    outer.Start(builder)
    outer.AddOpKernelTypeStrArgs(builder, vector)
    return int(outer.End(builder))


def _write_arguments(builder: Any, entry: Any) -> int:
    module = library(f"{_FBS}.KernelTypeStrArgsEntry")
    argument = library(f"{_FBS}.ArgTypeAndIndex")
    rows = [entry.KernelTypeStrArgs(index) for index in range(entry.KernelTypeStrArgsLength())]
    written = []
    for row in sorted(rows, key=lambda row: bytes(row.KernelTypeStr())):
        name = builder.CreateString(row.KernelTypeStr())
        places = []
        for index in range(row.ArgsLength()):
            place = row.Args(index)
            argument.Start(builder)
            argument.AddArgType(builder, place.ArgType())
            argument.AddIndex(builder, place.Index())
            places.append(argument.End(builder))
        vector = _vector(builder, module.StartArgsVector, places)
        module.Start(builder)
        module.AddKernelTypeStr(builder, name)
        module.AddArgs(builder, vector)
        written.append(module.End(builder))
    return _vector(builder, library(f"{_FBS}.OpIdKernelTypeStrArgsEntry").StartKernelTypeStrArgsVector, written)


def _vector(builder: Any, start: Any, items: list[int]) -> int:
    start(builder, len(items))
    for item in reversed(items):
        builder.PrependUOffsetTRelative(item)
    return int(builder.EndVector())
