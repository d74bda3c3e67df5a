"""What a caller's raw frames go through before a model: how the user writes it, and what it means in NumPy."""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from armlet.errors import ArmletError, Kind
from armlet.onnx.libraries import library
from armlet.spec.model_record import Baked
from armlet.spec.sku import ElementType

Layout = Literal["nhwc", "nchw"]

DTYPES: dict[str, ElementType] = {
    "uint8": "uint8",
    "int8": "int8",
    "uint16": "uint16",
    "int16": "int16",
    "int32": "int32",
    "float16": "float16",
    "float32": "float",
}
"""What a caller may feed, as NumPy names it -> as ONNX does."""

_KEYS = ("mean", "std", "layout", "input", "resize", "channels", "scale", "tensor", "model")
_EXAMPLE = '--normalise "mean=0.485,0.456,0.406 std=0.229,0.224,0.225 layout=nhwc input=uint8"'
_BYTE = 1 / 255
_LARGEST = (2 - 2**-23) * 2.0**127
_SMALLEST = 2.0**-126
"""Of float32, with all its digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """``--normalise``, understood; what it leaves open is taken from the model."""

    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    scale: float
    layout: Layout = "nchw"
    dtype: str = "uint8"
    """As NumPy names it."""
    resize: tuple[int, int] | None = None
    channels: Literal["as-is", "swapped"] = "as-is"
    tensor: str | None = None
    """The input that is meant; None: the only one."""
    model: Layout | None = None
    """How the model itself has its images; None: told by where its channels are."""


def wish_of(text: str) -> Wish:
    """What the user wrote, ``key=value`` with spaces between.

    Raises:
        ArmletError: (INPUT) a key or a value is not understood.
    """
    given: dict[str, str] = {}
    for word in text.split():
        key, equals, value = word.partition("=")
        if not equals or key not in _KEYS:
            near = difflib.get_close_matches(key, _KEYS, n=1)
            start = f'did you mean "{near[0]}"? ' if near else ""
            raise _input(f'"{word}" is not understood', f"{start}Known: {', '.join(_KEYS)}; for example {_EXAMPLE}")
        if key in given:
            raise _input(f"{key} is given twice", "give it once")
        given[key] = value
    dtype = _chosen(given, "input", tuple(DTYPES), "uint8")
    std = _numbers(given, "std", (1.0,))
    if any(value <= 0 for value in std):
        raise _input(f"std={given['std']}: has a number that is not above 0", "give the training's own numbers")
    # Bytes come as 0 to 1 to nearly every training.
    (scale,) = _numbers(given, "scale", (_BYTE if dtype == "uint8" else 1.0,), count=1)
    mean = _numbers(given, "mean", (0.0,))
    _demand_computable(mean, std, scale)
    return Wish(
        mean=mean,
        std=std,
        scale=scale,
        layout=_chosen(given, "layout", get_args(Layout), "nchw"),
        dtype=dtype,
        resize=_size(given["resize"]) if "resize" in given else None,
        channels=_chosen(given, "channels", ("as-is", "swapped"), "as-is"),
        tensor=given.get("tensor"),
        model=_chosen(given, "model", get_args(Layout), None),
    )


def _chosen(given: dict[str, str], key: str, known: tuple[str, ...], otherwise: Any) -> Any:
    value = given.get(key, otherwise)
    if value is not otherwise and value not in known:
        raise _input(f'{key}: "{value}" is unknown', f"known: {', '.join(known)}")
    return value


def _numbers(
    given: dict[str, str], key: str, otherwise: tuple[float, ...], *, count: int | None = None
) -> tuple[float, ...]:
    if key not in given:
        return otherwise
    try:
        found = tuple(map(_number, given[key].split(",")))
    except (ValueError, ZeroDivisionError) as error:
        raise _input(f'{key}: "{given[key]}" is no list of numbers', f"write for example {_EXAMPLE}") from error
    if not all(map(math.isfinite, found)) or count not in (None, len(found)):
        raise _input(f'{key}: "{given[key]}" is not {count or "a list of"} plain numbers', f"for example {_EXAMPLE}")
    return found


def _demand_computable(mean: tuple[float, ...], std: tuple[float, ...], scale: float) -> None:
    """In float32, and so in the graph: what overflows there is infinite, and what vanishes is 0."""
    far = ("is too large for float32", "give the training's own numbers")
    near = ("is 0 for float32: every frame would be the same", "give the training's own numbers")
    for key, values in (("mean", mean), ("std", std), ("scale", (scale,))):
        if wrong := next((value for value in values if abs(value) > _LARGEST), None):
            raise _input(f"{key}: {wrong:g} {far[0]}", far[1])
    for key, values in (("std", std), ("scale", (scale,))):
        if (wrong := next((value for value in values if abs(value) < _SMALLEST), None)) is not None:
            raise _input(f"{key}: {wrong:g} {near[0]}", near[1])
    for shift in mean:
        for width in std:
            if max(abs(shift), abs(scale)) / width > _LARGEST:
                raise _input(f"({scale:g} - {shift:g}) / {width:g} {far[0]}", far[1])
            if abs(scale) / width < _SMALLEST:
                raise _input(f"{scale:g} / {width:g} {near[0]}", near[1])


def _number(text: str) -> float:
    """``0.5`` or ``1/255``."""
    above, slash, below = text.partition("/")
    return float(above) / float(below) if slash else float(above)


def _size(text: str) -> tuple[int, int]:
    height, _, width = text.lower().partition("x")
    if not (height.isdecimal() and width.isdecimal() and 0 < int(height) < 2**16 and 0 < int(width) < 2**16):
        raise _input(f'resize: "{text}" is no height and width', "write for example resize=224x224")
    return int(height), int(width)


def in_numpy(frames: Any, baked: Baked, *, model: Layout) -> Any:
    """What ``baked`` does to a batch of frames, step by step as its fields say, in float32.

    Args:
        frames: N x H x W x C or N x C x H x W as ``baked.layout`` says, or of another rank with the channels second.
        model: how the model has its images.
    """
    numpy = library("numpy")
    array = frames
    if array.ndim == 4 and baked.layout != model:
        array = array.transpose(PERMUTATIONS[baked.layout])
    array = array.astype(numpy.float32)
    channel = 3 if array.ndim == 4 and model == "nhwc" else 1
    if baked.resize:
        rows = 1 if channel == 3 else 2
        array = resized(resized(array, rows, baked.resize[0]), rows + 1, baked.resize[1])
    if baked.channels == "swapped":
        array = numpy.flip(array, channel)
    wide = [1] * array.ndim
    wide[channel] = -1
    mean, std = (numpy.asarray(values, numpy.float32).reshape(wide) for values in (baked.mean, baked.std))
    return (array * numpy.float32(baked.scale) - mean) / std


PERMUTATIONS: dict[Layout, tuple[int, ...]] = {"nhwc": (0, 3, 1, 2), "nchw": (0, 2, 3, 1)}
"""From this layout to the other."""


def resized(array: Any, axis: int, size: int) -> Any:
    """One axis scaled as ONNX's Resize defines it: linear, ``half_pixel``, no smoothing when it shrinks."""
    numpy = library("numpy")
    old = array.shape[axis]
    places = (numpy.arange(size, dtype=numpy.float32) + numpy.float32(0.5)) * numpy.float32(old / size)
    places = numpy.clip(places - numpy.float32(0.5), 0, old - 1)
    low = numpy.floor(places).astype(numpy.int64)
    high = numpy.minimum(low + 1, old - 1)
    wide = [1] * array.ndim
    wide[axis] = size
    part = (places - low.astype(numpy.float32)).reshape(wide)
    return array.take(low, axis) * (1 - part) + array.take(high, axis) * part


def _input(what: str, hint: str) -> ArmletError:
    return ArmletError(f"--normalise: {what}", hint=hint, kind=Kind.INPUT)
