"""What will trouble a model later on, told while it is imported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from armlet.errors import ArmletError, Kind
from armlet.manifest import read_manifest
from armlet.onnx.libraries import library
from armlet.onnx.operators import required
from armlet.onnx.reading import nodes, opsets_of
from armlet.onnx.soundness import tensors
from armlet.onnx.tidying import hard_coded_batch
from armlet.paths import Paths
from armlet.registrations import ONNX_DOMAIN
from armlet.spec.runtime import RuntimeManifest

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
            hint=f"build it: ./inv build {sku}, or leave out --sku",
            kind=Kind.INPUT,
            where=str(path),
        )
    return read_manifest(path)


def warnings_for(model: Any, file: Path, runtime: RuntimeManifest) -> Iterator[str]:
    """Sentences on what the runtime lacks. ``file`` has the model, for ONNX Runtime to optimise.

    The whole answer, types included, is ``inv model.check`` of what ``inv model.convert`` makes of the model.
    """
    newer: list[str] = []
    if model.ir_version > runtime.onnx_ir_max:
        newer.append(f"IR version {model.ir_version} (it reads up to {runtime.onnx_ir_max})")
    for domain, opset in opsets_of(model).items():
        newest = runtime.opsets.get(domain)
        if newest is not None and opset > newest:
            newer.append(f"opset {opset} of {domain} (it has up to {newest})")
    if newer:
        yield f"newer than {runtime.sku} takes: {', '.join(newer)}"
    if runtime.operators is None:
        return
    asked = required(file, providers=runtime.providers, flavor=runtime.flavor)
    lacking = [
        f"{name} {since} of {domain}"
        for domain, name, since in _since(asked)
        if not any(since in kernel.since_versions for kernel in runtime.operators.get(domain, {}).get(name, ()))
    ]
    if lacking:
        yield f"{runtime.sku} has no kernel for {_listed(lacking)}: add them to its operators and build it again"


def _since(asked: Any) -> Iterator[tuple[str, str, int]]:
    """(domain, operator, the version of it that an opset means)."""
    defs = library("onnx.defs")
    found = set()
    for domain, opsets in asked.items():
        for opset, names in opsets.items():
            for name in names:
                try:
                    schema = defs.get_schema(name, opset, "" if domain == ONNX_DOMAIN else domain)
                except Exception:  # onnx knows nothing of com.microsoft, whose operators are all of version 1.
                    found.add((domain, name, 1))
                else:
                    found.add((domain, name, schema.since_version))
    yield from sorted(found)


def _listed(items: Sequence[str], most: int = 8) -> str:
    return ", ".join(items[:most]) + (f" and {len(items) - most} more" if len(items) > most else "")
