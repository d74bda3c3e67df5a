"""``<model>.json`` beside a model on its way to becoming a payload: where it came from, and what was done to it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from armlet.spec.base import Line, Name, Sha256, Spec, Version
from armlet.spec.sku import ElementType, Provider

Sentences = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]+$", max_length=1000)]
"""One line, with room for what mends it."""
SourceKind = Literal["onnx", "torch", "torchscript", "pt2", "keras", "savedmodel", "sklearn"]


class SourceModel(Spec):
    """What the model was made from."""

    kind: SourceKind
    name: Line
    """The file's or folder's own name, or ``module:factory``; no path of the machine."""
    sha256: Sha256
    """Of the file; of a folder's or factory's model, over all files that make it."""
    tools: dict[str, str]
    """Package that took part -> its version."""


class Parity(Spec):
    """The framework and ONNX Runtime on the same inputs; differences are absolute below 1 and relative above."""

    samples: int
    tolerance: float
    worst: float
    """Largest difference of all elements."""
    output: str
    sample: Line
    index: tuple[int, ...]
    """Of the worst element in that output."""
    wanted: float
    got: float


class Baked(Spec):
    """Preprocessing inside the graph, in this order: layout, Cast, Resize, channel order, scale, mean, std."""

    input: str
    dtype: ElementType
    """What the caller feeds."""
    layout: Literal["nhwc", "nchw"]
    resize: tuple[int, int] | None = None
    """Height and width that images are scaled to; null: they come in the right size."""
    channels: Literal["as-is", "swapped"] = "as-is"
    """``swapped``: the caller's RGB becomes the model's BGR, or the other way round."""
    scale: float
    """What elements are multiplied by before mean and std, 1/255 for bytes."""
    mean: tuple[float, ...]
    std: Annotated[tuple[Annotated[float, Field(gt=0)], ...], Field(min_length=1)]


class Preprocessing(Spec):
    inside: tuple[Baked, ...] = ()
    caller: tuple[Line, ...] = ()
    """What is left to the caller, in sentences."""


class Quantization(Spec):
    format: Literal["qdq"]
    activation: Literal["int8", "uint8"]
    weight: Literal["int8", "uint8"]
    per_channel: bool
    calibration: Sha256
    """Over the samples: names, types, shapes and every number."""
    near_float_db: float | None = None
    """Decibels by which outputs stand above their difference from the floats'; null: not measured, or no difference."""


class Conversion(Spec):
    """How the model was made fit for a SKU's runtime."""

    sku: Name
    ort_version: Version
    providers: tuple[Provider, ...]
    level: Literal["basic", "extended", "all"] | None
    """How far it was optimised; null: that is left to the runtime."""
    inputs: dict[str, tuple[int, ...]]
    """Input -> shape that was fixed for good."""
    loaded: bool
    """Whether it was loaded by the SKU's runtime, as its core, in emulation."""
    input_sha256: Sha256
    """Of the ONNX model it was made from."""


class ModelRecord(Spec):
    schema_: Annotated[Literal[1], Field(alias="schema")] = 1
    model: Line
    """The model's file beside the record."""
    sha256: Sha256
    """Of the model's file, and so of no other one that took its place."""
    external: dict[str, Sha256] = Field(default_factory=dict)
    """File beside the model that has the data of large constants -> its hash."""
    created: str
    """When it was imported, in UTC (``2026-01-31T12:00:00Z``)."""
    source: SourceModel
    parity: Parity | None = None
    """Null of an int8 version, too: how near it is to the floats is said by ``quantization``."""
    preprocessing: Preprocessing = Preprocessing()
    quantization: Quantization | None = None
    conversion: Conversion | None = None
    warnings: tuple[Sentences, ...] = ()
