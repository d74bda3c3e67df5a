"""What an ONNX model makes of inputs before anything is done to it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from armlet.errors import ArmletError, Kind
from armlet.onnx.exporting import SEED, Run
from armlet.onnx.libraries import library
from armlet.onnx.model_files import LARGEST
from armlet.onnx.model_sources import Input
from armlet.onnx.parity import Session
from armlet.onnx.reading import input_shapes, input_types, with_one
from armlet.onnx.sample_files import demand_fit, load_samples
from armlet.onnx.samples import random_numbers

_RANDOM = 3
_OTHER_BATCH = 3
_WORDS = ("alpha", "beta", "gamma", "delta")


def runs_of(model: Any, path: Path, inputs: Sequence[Input], samples: Path | None) -> tuple[Run, ...]:
    """The model, not optimised, on random numbers (a fixed seed, another batch where it is free) and on ``samples``.

    Raises:
        ArmletError: (INPUT) an input has a free dimension that is no batch, and neither ``inputs`` nor samples say how
            large it is.
    """
    session = Session(model, path, as_written=True)
    types = input_types(model, path)
    given = {entry.name: entry.shape for entry in inputs}
    if unknown := sorted(given.keys() - types.keys()):
        raise _input(path, f'has no input "{unknown[0]}"', f"its inputs: {', '.join(types)}")
    declared = input_shapes(model)
    made: list[tuple[str, Mapping[str, Any]]] = []
    for sample in load_samples(samples) if samples else ():
        # Text is "U" of some length in a file, and an object to the model.
        demand_fit((sample,), {name: (_of_file(sample, name, types[name]), declared[name]) for name in types})
        made.append((sample.name, sample.inputs))
    seen = {name: array.shape for name, array in made[0][1].items()} if made else {}
    sizes = {name: _sizes(name, declared[name], given.get(name, seen.get(name)), path) for name in types}
    made += _random(types, sizes, path, range(_RANDOM))
    runs = [Run(name=name, inputs=arrays, outputs=session.run(arrays, name)) for name, arrays in made]
    if all(shape and shape[0] is None for shape in declared.values()):
        more = {name: (_OTHER_BATCH, *shape[1:]) for name, shape in sizes.items()}
        ((_, arrays),) = _random(types, more, path, [_RANDOM])
        name = f"random numbers, batch of {_OTHER_BATCH}"
        # Where it fails, the batch only looks free.
        with suppress(ArmletError):
            runs.append(Run(name=name, inputs=arrays, outputs=session.run(arrays, name)))
    return tuple(runs)


def _of_file(sample: Any, name: str, dtype: Any) -> Any:
    array = sample.inputs.get(name)
    return array.dtype if dtype.kind == "O" and array is not None and array.dtype.kind == "U" else dtype


def _sizes(name: str, declared: tuple[int | None, ...], given: Any, path: Path) -> tuple[int, ...]:
    if given is not None:
        fits = len(given) == len(declared) and all(
            want in (None, size) for want, size in zip(declared, given, strict=True)
        )
        if not fits:
            shown = "x".join("?" if size is None else str(size) for size in declared)
            raise _input(path, f'its input "{name}" has the shape {shown}', f"give --input {name}=<sizes> that fit it")
        return tuple(given)
    sizes = with_one(declared)
    if None in sizes:
        shown = ",".join("?" if size is None else str(size) for size in sizes)
        what = f'its input "{name}" has free dimensions, so nothing is known to try it on: {shown}'
        raise _input(
            path, what, f"say what to try, or give samples; they stay free: --input {name}={shown.replace('?', '64')}"
        )
    return sizes  # type: ignore[return-value]


def _random(
    types: Mapping[str, Any], sizes: Mapping[str, tuple[int, ...]], path: Path, numbers: Iterable[int]
) -> Iterator[tuple[str, dict[str, Any]]]:
    for number in numbers:
        generator = library("numpy").random.default_rng([SEED, number])
        arrays = {name: _array(generator, sizes[name], types[name], name, path) for name in types}
        yield f"random numbers {number + 1}", arrays


def _array(generator: Any, shape: tuple[int, ...], dtype: Any, name: str, path: Path) -> Any:
    asked = math.prod(shape) * dtype.itemsize
    if asked > LARGEST:
        raise _too_large(path, name, shape, asked)
    try:
        if dtype.kind in "OU":
            return library("numpy").asarray(_WORDS)[generator.integers(0, len(_WORDS), shape)]
        return random_numbers(generator, shape, dtype, name, path)
    except MemoryError as error:
        raise _too_large(path, name, shape, asked) from error


def _too_large(path: Path, name: str, shape: tuple[int, ...], asked: int) -> ArmletError:
    shown = "x".join(map(str, shape))
    what = f'its input "{name}" of {shown} asks for {asked} bytes, which is more than can be tried'
    return _input(path, what, f"give smaller sizes, where they are free: --input {name}=<sizes>")


def _input(path: Path, what: str, hint: str) -> ArmletError:
    return ArmletError(what, hint=hint, kind=Kind.INPUT, where=str(path))
