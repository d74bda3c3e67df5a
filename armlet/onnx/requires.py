"""What a model asks of the runtime that it will meet, in the words of ``runtime.json`` and ``payload.json``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from armlet.errors import ArmletError, Kind
from armlet.onnx import ortfile
from armlet.onnx.convert import save_optimised
from armlet.onnx.graph import Graph, Node, parsed
from armlet.onnx.levels import INT8, LEVELS
from armlet.onnx.model_files import whole
from armlet.onnx.reading import opsets_of, read
from armlet.registrations import ONNX_DOMAIN
from armlet.spec.payload import Tensor
from armlet.spec.runtime import Kernels
from armlet.spec.sku import ElementType

_ELEMENTS: Mapping[str, ElementType] = {name: name for name in get_args(ElementType)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """The part of ``payload.json`` that follows from the model alone; fields as there."""

    format: Literal["onnx", "ort"]
    ort_format_version: int | None
    opset_imports: dict[str, int]
    """Of the domains that the model uses."""
    ir_version: int
    operators: dict[str, dict[str, tuple[Kernels, ...]]]
    element_types: tuple[ElementType, ...]
    inputs: tuple[Tensor, ...]
    """What a caller must feed."""
    outputs: tuple[Tensor, ...]


def requires(model: Path) -> Requirements:
    """What a model asks of a runtime.

    A model in ORT format is run as it is. An ONNX model is optimised by the runtime that loads it, as far as its user
    lets it: the operators of every level count.

    Raises:
        ArmletError: it cannot be read, ONNX Runtime refuses it, or it is fed or gives something else than tensors.
    """
    data = whole(model)
    if ortfile.is_ort_format(data):
        shipped = parsed(data, where=model)
        return _of("ort", (shipped,), shipped.opsets, shipped.ir_version, ortfile.format_version(data), model)
    source = read(model)
    levels = {(level.name, level.without): level for level in (*LEVELS.values(), INT8)}
    graphs = tuple(
        parsed(save_optimised(source, level, save_as="ORT", where=model), where=model) for level in levels.values()
    )
    opsets = {**graphs[0].opsets, **opsets_of(source)}
    return _of("onnx", graphs, opsets, source.ir_version, None, model)


def demand_tensors(model: Path) -> None:
    """Does nothing where the model is fed and gives tensors alone: nothing else can be made up, fed or compared.

    Raises:
        ArmletError: (INPUT) it is not, or cannot be read.
    """
    data = whole(model)
    if ortfile.is_ort_format(data):
        graph = parsed(data, where=model)
        for name in (*graph.inputs, *graph.outputs):
            if "(" in graph.types[name]:
                raise _no_tensor(model, name, "input" if name in graph.inputs else "output", graph.types[name])
        return
    source = read(model)
    for role, values in (("input", source.graph.input), ("output", source.graph.output)):
        for value in values:
            kind = value.type.WhichOneof("value") or _PLAIN
            if kind != _PLAIN:
                raise _no_tensor(model, value.name, role, kind.removesuffix("_type").replace("_", " "))


_PLAIN = "tensor_type"


def _of(
    file_format: Literal["onnx", "ort"],
    graphs: tuple[Graph, ...],
    opsets: Mapping[str, int],
    ir_version: int,
    format_version: int | None,
    model: Path,
) -> Requirements:
    nodes = [node for graph in graphs for node in graph.nodes]
    used = {ONNX_DOMAIN, *(node.domain for node in nodes)}
    elements = {name for graph in graphs for name in graph.element_types}
    if unknown := sorted(elements - _ELEMENTS.keys()):
        raise _refused(model, f"has tensors of {unknown[0]}, which no payload may have", _CAST)
    return Requirements(
        format=file_format,
        ort_format_version=format_version,
        opset_imports={domain: opset for domain, opset in sorted(opsets.items()) if domain in used},
        ir_version=ir_version,
        operators=_operators(nodes),
        element_types=tuple(_ELEMENTS[name] for name in sorted(elements)),
        inputs=tuple(_tensor(graphs[0], name, "input", model) for name in graphs[0].inputs),
        outputs=tuple(_tensor(graphs[0], name, "output", model) for name in graphs[0].outputs),
    )


def _operators(nodes: Iterable[Node]) -> dict[str, dict[str, tuple[Kernels, ...]]]:
    """Nodes of equal versions and types become one entry, and versions that are used with equal types another."""
    found: dict[tuple[str, str], dict[int, dict[str, dict[str, tuple[str, ...]]]]] = {}
    for node in nodes:
        takes: dict[str, tuple[str, ...]] = {name: (node.types[name],) for name in sorted(node.types)}
        found.setdefault((node.domain, node.operator), {}).setdefault(node.since, {})[repr(takes)] = takes
    result: dict[str, dict[str, tuple[Kernels, ...]]] = {}
    for (domain, operator), versions in sorted(found.items()):
        result.setdefault(domain, {})[operator] = tuple(
            Kernels(since_versions=(since,), takes=tuple(takes for _, takes in sorted(types.items())))
            for since, types in sorted(versions.items())
        )
    return result


def _tensor(graph: Graph, name: str, role: str, model: Path) -> Tensor:
    kind = graph.types[name]
    if kind not in _ELEMENTS:
        raise _no_tensor(model, name, role, kind)
    return Tensor(name=name, dtype=_ELEMENTS[kind], shape=graph.shapes[name])


_CAST = "export the model with tensors of plain numbers or text (scikit-learn's classifiers: zipmap=False)"


def _no_tensor(model: Path, name: str, role: str, kind: str) -> ArmletError:
    return _refused(model, f'its {role} "{name}" is {kind}, and payloads have tensors alone', _CAST)


def _refused(model: Path, what: str, hint: str) -> ArmletError:
    return ArmletError(what, hint=hint, kind=Kind.INPUT, where=str(model))
