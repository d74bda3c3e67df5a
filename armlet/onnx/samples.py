"""Inputs that a model is tried on, and what it should make of them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from armlet.errors import ArmletError, Kind
from armlet.onnx.libraries import library
from armlet.onnx.reading import Shapes, input_shapes, read

_TEXTS = ("Gateway ready", "INVOICE No. 4711", "pressure 3.2 bar", "Made in Germany")
_AMBIGUOUS = ("NOON", "HHHH", "SOS XIS")
"""Read the same both ways: the classifier is undecided, and so its scores show small differences that a certain answer
would hide in a softmax close to 1."""
_HEIGHT, _WIDTH = 48, 192
_UPRIGHT, _UPSIDE_DOWN = 0, 1
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
    drawn = DRAWN.get(name)
    return drawn(next(iter(input_shapes(source)))) if drawn else _random(name, model, source)


def text_direction(input_name: str) -> tuple[Sample, ...]:
    """Lines of text upright, upside down and ambiguous, as PP-OCR's direction classifier takes them (1x3x48x192)."""
    found = []
    for text in _TEXTS:
        image = _draw(text)
        for expected, told, drawn in (
            (_UPRIGHT, "upright", image),
            (_UPSIDE_DOWN, "upside down", image.rotate(180)),
        ):
            found.append(Sample(name=f"{text} ({told})", inputs={input_name: _as_input(drawn)}, expected=expected))
    for text in _AMBIGUOUS:
        found.append(Sample(name=f"{text} (either way)", inputs={input_name: _as_input(_draw(text))}))
    return tuple(found)


DRAWN: Mapping[str, Callable[[str], tuple[Sample, ...]]] = {"text-direction": text_direction}
"""Name of a SKU's model -> what draws its samples, given the name of its input."""


def _draw(text: str) -> Any:
    image, draw, fonts = (library(f"PIL.{name}") for name in ("Image", "ImageDraw", "ImageFont"))
    font = fonts.load_default(size=30)
    left, top, right, bottom = font.getbbox(text)
    canvas = image.new("RGB", (int(right - left) + 16, _HEIGHT), "white")
    draw.Draw(canvas).text((8 - left, (_HEIGHT - top - bottom) / 2), text, fill="black", font=font)
    return canvas


def _as_input(image: Any) -> Any:
    """Scaled to the height, cut to [-1, 1], channels blue first, padded with zeros on the right: as PP-OCR trains."""
    numpy = library("numpy")
    width = min(_WIDTH, -(-_HEIGHT * image.width // image.height))
    scaled = image.resize((width, _HEIGHT), library("PIL.Image").Resampling.BILINEAR)
    pixels = numpy.asarray(scaled, dtype=numpy.float32)[:, :, ::-1].transpose(2, 0, 1)
    made = numpy.zeros((1, 3, _HEIGHT, _WIDTH), numpy.float32)
    made[0, :, :, :width] = pixels / numpy.float32(127.5) - numpy.float32(1)
    return made


def _random(name: str, model: Path, source: Any) -> tuple[Sample, ...]:
    numpy = library("numpy")
    types = {
        value.name: library("onnx.helper").tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        for value in source.graph.input
    }
    samples = []
    for number in range(_RANDOM_SAMPLES):
        generator = numpy.random.default_rng([zlib.crc32(name.encode()), number])
        inputs = {}
        for input_name, shape in input_shapes(source).items():
            if None in shape:
                raise ArmletError(
                    f'the input "{input_name}" has free dimensions, so no sample can be made for it',
                    hint=f"fix them in the SKU: inputs: {{{input_name}: [...]}} beside the model's name",
                    kind=Kind.INPUT,
                    where=str(model),
                )
            inputs[input_name] = random_numbers(generator, shape, types[input_name], input_name, model)
        samples.append(Sample(name=f"random numbers {number + 1}", inputs=inputs))
    return tuple(samples)


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
        hint="add the model to DRAWN in armlet/onnx/samples.py",
        kind=Kind.INPUT,
        where=str(model),
    )
