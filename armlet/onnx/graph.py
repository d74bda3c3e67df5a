"""The nodes of an ORT-format model, with the types that ONNX Runtime will look for a kernel by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from armlet.errors import ArmletError, Kind
from armlet.onnx import ortfile, orttables
from armlet.onnx.orttables import items, text
from armlet.registrations import ONNX_DOMAIN

_DEEPEST = 64
_MOST = 1_000_000
"""Nodes and values of all graphs together: a damaged file may hold one graph inside another many times over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    domain: str
    operator: str
    since: int
    types: Mapping[str, str]
    """Type constraint -> the type that a kernel must take, where the node has such an input or output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """The main graph's inputs and outputs; all nodes, those of inner graphs included."""

    ir_version: int
    opsets: dict[str, int]
    inputs: tuple[str, ...]
    """Without those that have a constant to fall back on."""
    outputs: tuple[str, ...]
    types: Mapping[str, str]
    """Value of the main graph -> ``float`` for a tensor of them, ``seq(tensor(float))``."""
    shapes: Mapping[str, orttables.Dims]
    """Tensor of the main graph -> its shape: a number, or a name (empty: none)."""
    nodes: tuple[Node, ...]
    element_types: frozenset[str]
    """Of every tensor, as ONNX names them in lower case."""


def parsed(data: bytes, *, where: Path) -> Graph:
    """Reads an ORT-format model.

    Raises:
        ArmletError: it is damaged; ``where`` is its file.
    """
    try:
        return _Reader(data).graph(where)
    except ArmletError:
        raise
    except Exception as error:  # Whatever the flatbuffers' accessors stumble over.
        raise ArmletError(
            f"is a damaged ORT-format model ({type(error).__name__}: {error})",
            hint="convert the ONNX model again",
            kind=Kind.INPUT,
            where=str(where),
        ) from error


@dataclass(slots=True)
class _Reader:
    data: bytes
    nodes: list[Node] = field(default_factory=list)
    elements: set[str] = field(default_factory=set)
    arguments: dict[str, orttables.Arguments] = field(default_factory=dict)
    seen: int = 0

    def graph(self, where: Path) -> Graph:
        session = ortfile.session_of(self.data)
        resolver = session.KernelTypeStrResolver()
        if resolver is None:
            version = session.OrtVersion().decode()
            raise ArmletError(
                f"is in ORT format {version}, which does not hold what its operators' types are",
                hint="convert the ONNX model again, with this machine's onnxruntime",
                kind=Kind.INPUT,
                where=str(where),
            )
        self.arguments = orttables.arguments(resolver)
        model = session.Model()
        main = model.Graph()
        types = self._walk(main, {}, 0)
        constants = {text(one.Name()) for one in items(main, "Initializers")}
        return Graph(
            ir_version=int(model.IrVersion()),
            opsets=orttables.opsets(model),
            inputs=tuple(name for name in map(text, items(main, "Inputs")) if name not in constants),
            outputs=tuple(map(text, items(main, "Outputs"))),
            types=types,
            shapes={
                text(one.Name()): orttables.dims(found) or ()
                for one in items(main, "NodeArgs")
                if (found := orttables.tensor(one)) is not None
            },
            nodes=tuple(self.nodes),
            element_types=frozenset(self.elements),
        )

    def _walk(self, graph: Any, outer: Mapping[str, str], depth: int) -> dict[str, str]:
        if depth > _DEEPEST:
            raise ValueError(f"graphs inside graphs, {depth} deep")
        types = dict(outer)
        self.seen += 1 + len(types) + graph.NodesLength() + graph.NodeArgsLength()
        if self.seen > _MOST:
            raise ValueError(f"more than {_MOST} nodes and values")
        for one in items(graph, "NodeArgs"):
            if one.Type() is not None:
                types[text(one.Name())], elements = orttables.types(one.Type())
                self.elements |= elements
        for tensor in items(graph, "Initializers"):
            types.setdefault(text(tensor.Name()), self._element(tensor.DataType()))
        for node in items(graph, "Nodes"):
            self.nodes.append(
                Node(
                    domain=text(node.Domain()) or ONNX_DOMAIN,
                    operator=text(node.OpType()),
                    since=int(node.SinceVersion()),
                    types=orttables.bound(node, self.arguments, types),
                )
            )
            for attribute in items(node, "Attributes"):
                inner = [attribute.G()] if attribute.G() is not None else [*items(attribute, "Graphs")]
                for subgraph in inner:
                    self._walk(subgraph, types, depth + 1)
                if attribute.T() is not None:
                    self._element(attribute.T().DataType())
        return types

    def _element(self, number: int) -> str:
        name = orttables.element(number)
        self.elements.add(name)
        return name
