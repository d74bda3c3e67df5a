"""A model as a SKU's runtime meets it, and which provider takes which of its nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from armlet_runtime.contract import serves

from armlet.config import Resolved
from armlet.coverage.generate import RECIPES
from armlet.coverage.graph import Graph, Node
from armlet.coverage.predict import CPU, Placement, predict, shown
from armlet.coverage.tables import ProviderTable, load
from armlet.errors import ArmletError, Kind
from armlet.files import open_regular
from armlet.onnx import ortfile
from armlet.onnx.convert import save_optimised
from armlet.onnx.levels import LEVELS, Level, level_of
from armlet.onnx.libraries import library
from armlet.onnx.model_files import whole
from armlet.onnx.ortgraph import graph_of, named
from armlet.onnx.reading import Limits, Shapes, read
from armlet.registrations import ONNX_DOMAIN
from armlet.spec.runtime import Kernels
from armlet.spec.sku import Flavor, Provider

_MOST_PROVIDERS_SEE: Level = LEVELS["xnnpack"]
"""A runtime that optimises by itself asks its providers after this level, whatever it does afterwards."""


class Named(Protocol):
    @property
    def name(self) -> str: ...


class Described(Protocol):
    """What a placement takes of a runtime's manifest."""

    @property
    def sku(self) -> str: ...
    @property
    def ort_version(self) -> str: ...
    @property
    def flavor(self) -> Flavor: ...
    @property
    def providers(self) -> tuple[Provider, ...]: ...
    @property
    def opsets(self) -> Mapping[str, int]: ...
    @property
    def onnx_ir_max(self) -> int: ...
    @property
    def operators(self) -> Mapping[str, Mapping[str, tuple[Kernels, ...]]] | None: ...
    @property
    def source_set(self) -> Named: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A runtime that is not built, as its recipe has it. ``operators`` are known of a built one alone."""

    sku: str
    ort_version: str
    flavor: Flavor
    providers: tuple[Provider, ...]
    opsets: Mapping[str, int]
    onnx_ir_max: int
    source_set: Named
    operators: Mapping[str, Mapping[str, tuple[Kernels, ...]]] | None = None

    @classmethod
    def of(cls, resolved: Resolved) -> Planned:
        runtime, sources = resolved.sku.runtime, resolved.source_set
        return cls(
            sku=resolved.sku.name,
            ort_version=sources.version,
            flavor=runtime.flavor,
            providers=runtime.providers,
            opsets=sources.opsets,
            onnx_ir_max=sources.onnx_ir_max,
            source_set=sources,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """``model`` is what the runtime is given: an ORT-format model, or an ONNX model with a name for every node."""

    graph: Graph
    placements: list[Placement]
    model: bytes
    extension: str
    level: str
    """How far it is optimised when the providers are asked."""


def placed(model: Path, manifest: Described, root: Path, *, shapes: Shapes | None = None) -> Placed:
    """Args:
        root: the project, for its tables of providers.
        shapes: inputs whose shapes are fixed for good.

    Raises:
        ArmletError: the model cannot be read or optimised, or there is no table for the runtime's providers.
    """
    data, extension, level, seen = _as_shipped(model, manifest, shapes)
    graph = graph_of(seen, alone=manifest.flavor == "minimal")
    tables = tables_for(manifest, root)
    placements = predict(graph, manifest.providers, tables, lambda node: has_kernel(manifest, node))
    if manifest.flavor == "reduced":
        _demand_fused(model, manifest, placements, data)
    return Placed(graph=graph, placements=placements, model=data, extension=extension, level=level)


def tables_for(manifest: Described, root: Path) -> Mapping[str, ProviderTable]:
    """Provider -> table, of those that Armlet knows how to read.

    Raises:
        ArmletError: there is none for this version of ONNX Runtime.
    """
    return {name: load(root, manifest.source_set.name, name) for name in manifest.providers if name in RECIPES}


def has_kernel(manifest: Described, node: Node) -> bool:
    """Whether the CPU provider of a runtime has a kernel for a node; granted where its operators are not told."""
    if manifest.operators is None:
        return True
    asked = {name: (kind,) for name, kind in node.types.items()}
    return any(
        node.since in one.since_versions and (one.takes is None or any(serves(kernel, asked) for kernel in one.takes))
        for one in manifest.operators.get(node.domain or ONNX_DOMAIN, {}).get(node.op, ())
    )


def _demand_fused(model: Path, manifest: Described, placements: list[Placement], data: bytes) -> None:
    """Says which nodes of the CPU provider the runtime makes other ones of that it has no kernels for."""
    source = library("onnx").load_model_from_string(data)
    fused = graph_of(save_optimised(source, LEVELS["cpu"], save_as="ORT", where=model), alone=False)
    by_name = {one.node.name: one for one in placements if one.provider == CPU}
    for node in fused.nodes:
        # "fused gemm0", or the name of the node that was quantised around.
        one = by_name.get(node.name.rpartition(" ")[2])
        if one is not None and node.op != one.node.op and not has_kernel(manifest, node):
            one.trouble = f"the runtime makes {shown(node)} of it and has no kernel for that: allow it in the SKU"


def _as_shipped(model: Path, manifest: Described, shapes: Shapes | None) -> tuple[bytes, str, str, bytes]:
    """The model's bytes, their file's extension, the level, and what the providers are shown of it in ORT format."""
    if _is_ort_format(model):
        if manifest.flavor != "minimal" or shapes:
            why = "its shapes are fixed for good" if shapes else f"{manifest.sku} takes ONNX models, and optimises them"
            hint = "give the ONNX model that it was made from"
            raise ArmletError(f"is in ORT format already: {why}", hint=hint, kind=Kind.INPUT, where=str(model))
        data = whole(model)
        return data, ".ort", "as converted", data
    limits = Limits(opsets=manifest.opsets, onnx_ir_max=manifest.onnx_ir_max)
    source = named(read(model, shapes=shapes, limits=limits))
    if manifest.flavor == "minimal":
        level = level_of(source, manifest.providers)
        data = ortfile.canonical(save_optimised(source, level, save_as="ORT", where=model))
        return data, ".ort", level.name, data
    seen = save_optimised(source, _MOST_PROVIDERS_SEE, save_as="ORT", where=model)
    return source.SerializeToString(deterministic=True), ".onnx", _MOST_PROVIDERS_SEE.name, seen


def _is_ort_format(model: Path) -> bool:
    try:
        with open_regular(model) as stream:
            return ortfile.is_ort_format(stream.read(8))
    except OSError:
        return False  # Who reads it as an ONNX model says what is wrong.
