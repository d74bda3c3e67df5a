"""Preprocessing inside the graph against the same in NumPy, before the model that it was put in front of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from armlet.onnx.bake import baked_in
from armlet.onnx.exporting import SEED, Run
from armlet.onnx.libraries import library
from armlet.onnx.normalise import Wish, in_numpy
from armlet.onnx.parity import Session, demand_close, worst_of
from armlet.onnx.samples import random_numbers
from armlet.spec.model_record import Baked

_FRAMES = 3
_FRAME_SIZE = (37, 53)
"""Of frames that get scaled: no multiple of anything."""


def demand_same(model: Any, wish: Wish, runs: Sequence[Run], tolerance: float, where: Path) -> tuple[Any, Baked]:
    """The model with ``wish`` inside, tried on random frames; its other inputs as in the first of ``runs``.

    Raises:
        ArmletError: (INPUT) the wish does not fit the model, or the outputs are not the same.
    """
    made, baked, layout = baked_in(model, wish, where)
    plain, whole = Session(model, where), Session(made, where)
    element = next(value.type.tensor_type.elem_type for value in model.graph.input if value.name == baked.input)
    dtype = library("onnx.helper").tensor_dtype_to_np_dtype(element)
    found = []
    for number in range(_FRAMES):
        inputs = dict(runs[0].inputs)
        shape = _frames(inputs[baked.input].shape, wish, layout)
        generator = library("numpy").random.default_rng([SEED, number])
        frames = _random(generator, shape, wish.dtype, baked.input, where)
        name = f"random frames {number + 1}"
        inputs[baked.input] = in_numpy(frames, baked, model=layout).astype(dtype)
        wanted = plain.run(inputs, name)
        got = whole.run({**inputs, baked.input: frames}, name)
        found.append(worst_of(Run(name=name, inputs={}, outputs=wanted), got, whole.outputs, where))
    demand_close(found, tolerance, where, of="the model with its preprocessing inside")
    return made, baked


def _random(generator: Any, shape: tuple[int, ...], dtype: str, name: str, where: Path) -> Any:
    numpy = library("numpy")
    kind = numpy.dtype(dtype)
    if kind.kind in "iu" and kind.itemsize > 1:
        return generator.integers(0, 2**12, shape).astype(kind)
    return random_numbers(generator, shape, kind, name, where)


def _frames(shape: tuple[int, ...], wish: Wish, layout: str) -> tuple[int, ...]:
    """The shape of raw frames for a model that is tried on ``shape``."""
    if len(shape) != 4:
        return shape
    batch, *rest = shape
    channels, height, width = rest if layout == "nchw" else (rest[2], rest[0], rest[1])
    if wish.resize:
        height, width = _FRAME_SIZE
    return (batch, height, width, channels) if wish.layout == "nhwc" else (batch, channels, height, width)
