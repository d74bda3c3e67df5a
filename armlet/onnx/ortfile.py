"""ORT-format files: recognising them, and giving equal models equal bytes."""

from __future__ import annotations

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


def format_version(data: bytes) -> int:
    """The format's version as the file states it.

    Raises:
        ArmletError: ``data`` is no ORT-format model.
    """
    return int(session_of(data).OrtVersion())


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


def session_of(data: bytes) -> Any:
    """The file's root table.

    Raises:
        ArmletError: ``data`` is no ORT-format model.
    """
    if not is_ort_format(data):
        raise ArmletError("not an ORT-format model", hint="convert the ONNX model first", kind=Kind.INPUT)
    return library(f"{_FBS}.InferenceSession").InferenceSession.GetRootAs(data, 0)


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
