"""What will trouble a model later on, told while it is imported."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from armlet_runtime.contract import check

from armlet.errors import ArmletError, Kind
from armlet.manifest import read_manifest
from armlet.onnx.convert import convert
from armlet.onnx.fleet import payload_document
from armlet.onnx.libraries import library
from armlet.onnx.reading import nodes
from armlet.onnx.soundness import tensors
from armlet.onnx.tidying import hard_coded_batch
from armlet.paths import Paths
from armlet.spec.runtime import RuntimeManifest

_LONGEST = 1000
"""Characters of a record's warning."""
_SHAPE_BY_DATA = frozenset({"NonZero", "Unique", "Compress", "NonMaxSuppression"})
_TEXT = frozenset({"StringNormalizer", "StringConcat", "StringSplit", "RegexFullMatch", "TfIdfVectorizer"})


def warnings_of(model: Any, inferred: Any) -> Iterator[str]:
    """Sentences on the model itself; ``inferred`` is the model with all its types."""
    for name, shape in hard_coded_batch(model).items():
        shown = "x".join("?" if size is None else str(size) for size in shape)
        yield f'the batch is hard-coded: the input "{name}" is {shown}'
    by_data = sorted({node.op_type for node in nodes(model.graph)} & _SHAPE_BY_DATA)
    if by_data:
        yield f"shapes depend on the data ({', '.join(by_data)}): memory cannot be planned ahead"
    if told := sorted(_texts(model, inferred)):
        yield f"it works on text ({', '.join(told)}), which only the CPU provider does, and slowly"


def _texts(model: Any, inferred: Any) -> set[str]:
    string = library("onnx").TensorProto.STRING
    values = (*inferred.graph.input, *inferred.graph.output, *inferred.graph.value_info)
    found = {value.name for value in values if value.type.tensor_type.elem_type == string}
    found |= {tensor.name or "a constant" for tensor in tensors(model) if tensor.data_type == string}
    return found | ({node.op_type for node in nodes(model.graph)} & _TEXT)


def manifest_of(sku: str, paths: Paths) -> RuntimeManifest:
    """What a SKU's runtime can do.

    Raises:
        ArmletError: (INPUT) it was not built, or its ``runtime.json`` is damaged.
    """
    path = paths.dist(sku) / "runtime.json"
    if not path.is_file():
        raise ArmletError(
            f"--sku {sku}: there is no runtime to compare with",
            hint=f"build it: ./inv build --sku {sku}, or leave out --sku",
            kind=Kind.INPUT,
            where=str(path),
        )
    return read_manifest(path)


def warnings_for(file: Path, runtime: RuntimeManifest) -> Iterator[str]:
    """What the contract says of an ONNX model on a runtime, each problem with its remedy.

    A minimal runtime meets it in ORT format, converted for its providers; that file is written beside ``file``.
    """
    shipped = file
    try:
        if runtime.flavor == "minimal":
            shipped = convert(file, file.with_suffix(".ort"), providers=runtime.providers).path
        asked = payload_document(shipped)
    except ArmletError as error:
        yield " ".join(f"on {runtime.sku}: {error.what}: {error.hint}".split())[:_LONGEST]
        return
    for one in check(runtime.model_dump(mode="json", by_alias=True), asked):
        yield f"{one.what}: {one.remedy}"
