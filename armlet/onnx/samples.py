"""Inputs that a model is tried on, and what it should make of them."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from armlet.coverage.graph import Value
from armlet.errors import ArmletError, Kind
from armlet.onnx.libraries import library
from armlet.onnx.reading import Shapes, input_shapes, input_types, read, with_one
from armlet.onnx.text_samples import DRAWN

_RANDOM_SAMPLES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One set of inputs. ``expected`` is the index of the largest value of the first output, where that is known."""

    name: str
    inputs: Mapping[str, Any]
    """Input name -> NumPy array."""
    expected: int | None = None


def samples_for(name: str, model: Path, shapes: Shapes) -> tuple[Sample, ...]:
    """Samples for a SKU's model: drawn ones where its name is known here, else random numbers (a fixed seed).

    Raises:
        ArmletError: an input has a free dimension or a type that no random numbers are made for.
    """
    source = read(model, shapes=shapes)
    draw = DRAWN.get(name)
    if draw is None:
        return _random(name, model, source)
    taken = next(iter(input_shapes(source)))
    return tuple(Sample(name=one.name, inputs={taken: one.pixels}, expected=one.expected) for one in draw())


def _random(name: str, model: Path, source: Any) -> tuple[Sample, ...]:
    types, shapes = input_types(source, model), input_shapes(source)
    if free := next((input_name for input_name, shape in shapes.items() if None in shape), None):
        raise ArmletError(
            f'the input "{free}" has free dimensions, so no sample can be made for it',
            hint=f"fix them in the SKU: inputs: {{{free}: [...]}} beside the model's name",
            kind=Kind.INPUT,
            where=str(model),
        )
    seed = zlib.crc32(name.encode())
    return tuple(
        Sample(name=f"random numbers {number + 1}", inputs=random_inputs([seed, number], types, shapes, model))
        for number in range(_RANDOM_SAMPLES)
    )


def random_sample(inputs: Sequence[Value], *, where: Path) -> Sample:
    """Random numbers (a fixed seed) for inputs, a free first dimension being 1.

    Raises:
        ArmletError: another dimension is free, or a type is one that no random numbers are made for.
    """
    types, shapes = {}, {}
    for value in inputs:
        shape = with_one(value.shape or ())
        if value.shape is None or None in shape:
            raise ArmletError(
                f'the input "{value.name}" has free dimensions, so it cannot be run',
                hint=f"fix them: --shape {value.name}={','.join(str(size or '<size>') for size in shape)}",
                kind=Kind.INPUT,
                where=str(where),
            )
        types[value.name], shapes[value.name] = library("onnx.helper").tensor_dtype_to_np_dtype(value.element), shape
    return Sample(name="random numbers", inputs=random_inputs(0, types, shapes, where))


def random_inputs(seed: Any, types: Mapping[str, Any], shapes: Mapping[str, Any], model: Path) -> dict[str, Any]:
    """An array for each input, in their order; equal seeds give equal numbers.

    Raises:
        ArmletError: as :func:`random_numbers`.
    """
    generator = library("numpy").random.default_rng(seed)
    return {name: random_numbers(generator, shapes[name], dtype, name, model) for name, dtype in types.items()}


def random_numbers(generator: Any, shape: Any, dtype: Any, name: str, model: Path) -> Any:
    """An array for the input ``name`` of a model.

    Raises:
        ArmletError: (INPUT) its type is none that numbers can be made for.
    """
    if dtype.kind == "f":
        return generator.standard_normal(shape).astype(dtype)
    if dtype.kind in "iu" and dtype.itemsize == 1:
        # Eight bits are a quantised number, which may be any; more are an index, as a rule, and few are safe.
        bounds = library("numpy").iinfo(dtype)
        return generator.integers(bounds.min, bounds.max, shape, dtype=dtype, endpoint=True)
    if dtype.kind in "iu":
        return generator.integers(0, 2, shape).astype(dtype)
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(bool)
    raise ArmletError(
        f'no random numbers can be made for the input "{name}" of type {dtype}',
        hint="give it samples of yours: samples: in the SKU, beside the model's name",
        kind=Kind.INPUT,
        where=str(model),
    )
