"""What models ask of a SKU's runtime, operator by operator, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from armlet.errors import ArmletError, Kind
from armlet.events import Note, Sink, silent
from armlet.onnx.convert import save_optimised
from armlet.onnx.creators import creators
from armlet.onnx.levels import INT8, LEVELS, Level, level_of
from armlet.onnx.libraries import library
from armlet.onnx.operators import element_types
from armlet.onnx.reading import Limits, Shapes, input_shapes, nodes, opsets_of, read
from armlet.recipes import Table
from armlet.registrations import ONNX_DOMAIN
from armlet.spec.sku import Flavor, Provider

_EVERY_LEVEL = (LEVELS["xnnpack"], INT8, LEVELS["cpu"])
"""From the lowest to the highest, as a runtime that optimises by itself may be told to go."""
Key = tuple[str, str]
"""Domain (``ai.onnx`` for ONNX's own) and operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One operator that the runtime must have a kernel for."""

    domain: str
    name: str
    opsets: tuple[int, int]
    """Oldest and newest that the models were written for."""
    types: tuple[str, ...]
    """Of the elements that its nodes take and yield, as far as they are known."""
    models: tuple[str, ...]
    """Those that have it as they were exported."""
    created: tuple[str, ...] = ()
    """``<model>: <who makes it, at which level>``, of models that have it only after optimisation."""

    @property
    def why(self) -> str:
        """One line: which models ask, which optimisers make it."""
        return "; ".join([*([", ".join(self.models)] if self.models else []), *self.created]) or "asked for"


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a set of models needs."""

    operators: tuple[Asked, ...]
    types: tuple[str, ...]
    """Of all tensors' elements, sorted."""
    left_out: Mapping[str, str]
    """Operator -> why it needs no kernel here although it comes up."""


def needs(
    models: Sequence[Path],
    *,
    providers: Sequence[Provider],
    flavor: Flavor,
    table: Table,
    shapes: Mapping[Path, Shapes] | None = None,
    limits: Limits | None = None,
    emit: Sink = silent,
) -> Needs:
    """What the optimisers leave of ``models`` for a runtime of ``flavor`` with ``providers``.

    Args:
        table: the operators that ONNX Runtime has kernels for.
        shapes: of inputs that are fixed for good when the model is converted. A model whose batch alone is free is
            looked at with a batch of 1 as well: with shapes known, the optimisers go further.

    Raises:
        ArmletError: (INPUT) a model cannot be read or optimised.
    """
    asked: dict[Key, Asked] = {}
    left_out: dict[str, str] = {}
    types: set[str] = set()
    for model in models:
        given = (shapes or {}).get(model, {})
        types |= element_types(model, shapes=given)
        for variant in (given, *_with_one(model, given, emit)):
            source = read(model, shapes=variant, limits=limits)
            for one in _of_model(model, source, providers, flavor, left_out):
                key = (one.domain, one.name)
                asked[key] = _merged(asked[key], one) if key in asked else one
    for domain, name in sorted(asked):
        if name not in table.get(domain, {}):
            del asked[domain, name]
            left_out[name] = "has no kernel: ONNX Runtime resolves it when it loads the model"
    for name in [name for name in left_out if any(key[1] == name for key in asked)]:
        del left_out[name]
    return Needs(
        operators=tuple(asked[key] for key in sorted(asked)),
        types=tuple(sorted(types)),
        left_out=dict(sorted(left_out.items())),
    )


def _with_one(model: Path, given: Shapes, emit: Sink) -> tuple[Shapes, ...]:
    """The model's shapes with a batch of 1, where nothing else is free."""
    known = input_shapes(read(model, shapes=given))
    free = {name: shape for name, shape in known.items() if None in shape}
    if any(size is None for shape in free.values() for size in shape[1:]):
        inputs = ", ".join(free)
        emit(Note(text=f"{model.name}: {inputs} left open; fixed for good it may need other operators: --shape"))
        return ()
    if not free:
        return ()
    return ({**given, **{name: tuple(size or 1 for size in shape) for name, shape in free.items()}},)


def _of_model(
    model: Path, source: Any, providers: Sequence[Provider], flavor: Flavor, left_out: dict[str, str]
) -> list[Asked]:
    own = level_of(source, providers)
    levels = (own,) if flavor == "minimal" else _EVERY_LEVEL
    elements = _elements(source)
    exported = _typed(source, elements)
    found = {} if flavor == "minimal" else {key: _asked(model, source, key, types) for key, types in exported.items()}
    for level in levels:
        made = _optimised(source, level, model)
        typed = _typed(made, elements)
        by = creators(source, level, [key for key in typed if key not in exported and key not in found], model)
        for key, types in typed.items():
            how = "" if key in exported else f"{by.get(key, 'the optimiser')}, level {level.name}"
            one = _asked(model, made, key, types, how)
            found[key] = _merged(found[key], one, once=True) if key in found else one
    if flavor == "minimal" and own.name != LEVELS["cpu"].name:
        beyond = LEVELS["cpu"]
        reason = f"made at level {beyond.name}, and models are converted at level {own.name}: {own.reason}"
        for _, name in _typed(_optimised(source, beyond, model), elements).keys() - found.keys():
            left_out.setdefault(name, reason)
    return list(found.values())


def _optimised(source: Any, level: Level, where: Path) -> Any:
    return library("onnx").load_model_from_string(save_optimised(source, level, save_as="ONNX", where=where))


def _asked(model: Path, of: Any, key: Key, types: frozenset[str], how: str = "") -> Asked:
    opset = opsets_of(of).get(key[0])
    if opset is None:
        what = f"uses {key[1]} of {key[0]}, and does not say which opset of it"
        hint = "give a file that onnx.checker.check_model accepts"
        raise ArmletError(what, hint=hint, kind=Kind.INPUT, where=str(model))
    return Asked(
        domain=key[0],
        name=key[1],
        opsets=(opset, opset),
        types=tuple(sorted(types)),
        models=() if how else (model.stem,),
        created=(f"{model.stem}: made by {how}",) if how else (),
    )


def _merged(first: Asked, second: Asked, *, once: bool = False) -> Asked:
    """Both in one; with ``once`` the first reason is enough."""
    return replace(
        first,
        opsets=(min(first.opsets[0], second.opsets[0]), max(first.opsets[1], second.opsets[1])),
        types=tuple(sorted({*first.types, *second.types})),
        models=tuple(dict.fromkeys((*first.models, *second.models))),
        created=first.created if once else tuple(dict.fromkeys((*first.created, *second.created))),
    )


def _typed(model: Any, elements: Mapping[str, int]) -> dict[Key, frozenset[str]]:
    """Operator -> types of the elements that its nodes take and yield; ``elements`` are known of the values' names."""
    names = library("onnx").TensorProto.DataType
    known = {**elements, **_elements(model)}
    found: dict[Key, set[str]] = {}
    for node in nodes(model.graph):
        numbers = {known.get(value, 0) for value in (*node.input, *node.output)} - {0}
        key = (node.domain or ONNX_DOMAIN, node.op_type)
        found.setdefault(key, set()).update(names.Name(number).lower() for number in numbers)
    return {key: frozenset(types) for key, types in found.items()}


def _elements(model: Any) -> dict[str, int]:
    """Value -> ONNX's number for the type of its elements. ONNX infers none behind operators of other domains."""
    found: dict[str, int] = {}
    _collect(library("onnx.shape_inference").infer_shapes(model).graph, found)
    return {name: number for name, number in found.items() if number}


def _collect(graph: Any, elements: dict[str, int]) -> None:
    for value in (*graph.input, *graph.output, *graph.value_info):
        elements[value.name] = value.type.tensor_type.elem_type
    for tensor in graph.initializer:
        elements[tensor.name] = tensor.data_type
    for node in graph.node:
        for attribute in node.attribute:
            for inner in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                _collect(inner, elements)
