"""A model's graph in plain data, as ONNX Runtime has it when it asks the providers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

Shape = tuple[int | None, ...]
"""None where a dimension is free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """What is known of a tensor. ``element`` is ONNX's number, 0 where unknown; ``shape`` None where its rank is."""

    name: str
    element: int = 0
    shape: Shape | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """An initialiser that no input of the graph can replace."""

    element: int
    shape: tuple[int, ...]
    numbers: Callable[[], Sequence[Any]] = field(compare=False)
    """Its elements in order."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Node:
    """One node; ``attributes`` with the defaults of its operator's definition, as ONNX Runtime fills them in."""

    index: int
    name: str
    op: str
    domain: str
    """Empty for ONNX's own."""
    since: int
    """The opset version whose definition of the operator it has."""
    attributes: Mapping[str, Any]
    inputs: tuple[str, ...]
    """Empty text where an optional one is left out."""
    outputs: tuple[str, ...]
    types: Mapping[str, str]
    """Type parameter of the operator's definition -> the type that it binds: ``float`` for a tensor of them."""
    nested: tuple[str, ...] = ()
    """Outer tensors that graphs inside its attributes use."""


def nameless(op: str, index: int) -> str:
    """What ONNX Runtime's profile calls a node without a name, such as the parts of an operator that it takes apart."""
    return f"{op}_{index}"


@dataclass(kw_only=True)
class Graph:
    """Nodes in an order in which each follows those that it needs."""

    nodes: tuple[Node, ...]
    values: Mapping[str, Value]
    constants: Mapping[str, Constant]
    inputs: tuple[str, ...]
    """Those that a caller feeds."""
    outputs: tuple[str, ...]
    opset: int
    """Of ONNX's own domain."""
    resolved: frozenset[str] | None = None
    """Operators whose types an ORT-format model holds for the runtime; None: the runtime knows them by itself."""
    moved: dict[int, str] = field(default_factory=dict)
    """Nodes that the layout transformation has put into another domain: index -> domain."""

    def value(self, name: str) -> Value:
        return self.values.get(name) or Value(name=name)

    def fed(self) -> tuple[Value, ...]:
        """What a caller must feed."""
        return tuple(self.value(name) for name in self.inputs)

    @cached_property
    def producers(self) -> dict[str, Node]:
        """Tensor -> node."""
        return {name: node for node in self.nodes for name in node.outputs if name}

    @cached_property
    def consumers(self) -> dict[str, list[Node]]:
        """Tensor -> nodes, each once per use."""
        found: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in (*node.inputs, *node.nested):
                if name:
                    found.setdefault(name, []).append(node)
        return found
