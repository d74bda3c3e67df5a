"""``payload.json``: one model version as it ships."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from armlet.spec.base import Line, Name, RelativePath, Sha256, Spec, Version
from armlet.spec.model_record import Preprocessing, Quantization
from armlet.spec.runtime import Kernels
from armlet.spec.sku import ElementType, Provider

MODEL_VERSION = r"^[0-9][A-Za-z0-9.+~]{0,63}$"
ModelVersion = Annotated[str, StringConstraints(pattern=MODEL_VERSION)]
"""The author's own, in what both Debian's and opkg's version orders take."""


class PayloadFile(Spec):
    path: RelativePath
    """Below the payload's folder."""
    size: Annotated[int, Field(ge=0)]
    """Bytes."""
    sha256: Sha256


class Tensor(Spec):
    """An input or output of the model."""

    name: str
    dtype: ElementType
    shape: tuple[Annotated[int, Field(ge=0)] | str, ...]
    """A number, or the name of a dimension that is free (empty: it has none)."""


class GoldenTensor(Spec):
    name: str
    dtype: ElementType
    shape: tuple[int, ...]
    file: RelativePath
    """Its elements, little-endian, the last dimension's neighbours side by side; no header."""


class Golden(Spec):
    """Inputs, and what the source model made of them: |got - wanted| <= atol + rtol * |wanted|, element by element."""

    name: Line
    inputs: tuple[GoldenTensor, ...]
    outputs: tuple[GoldenTensor, ...]
    atol: float
    rtol: float


class Histogram(Spec):
    """What an input looked like when the model was made: for the population stability index."""

    input: str
    of: Literal["values", "mean", "std"]
    """Every element, or one number per sample."""
    edges: tuple[float, ...]
    """Between the bins, rising; the first and the last bin are open, and a value on an edge is in the bin above it."""
    shares: tuple[float, ...]
    """Of each bin; they add up to 1. One more than ``edges``."""


class Budget(Spec):
    p95_ms: Annotated[float, Field(gt=0)] | None = None
    rss_mb: Annotated[float, Field(gt=0)] | None = None


class ProviderChoice(Spec):
    name: Provider
    options: dict[str, str] = Field(default_factory=dict)


class PayloadManifest(Spec):
    schema_: Annotated[Literal[1], Field(alias="schema")] = 1
    model: Name
    version: ModelVersion
    generation: Annotated[int, Field(ge=1, le=2**53)]
    """Only ever grows; a rollback is a new generation with old content."""
    description: Line
    licence: Line
    """SPDX expression."""
    files: Annotated[tuple[PayloadFile, ...], Field(min_length=1)]
    """All of the payload but ``payload.json`` and its signature; the model is the first."""
    format: Literal["onnx", "ort"]
    ort_format_version: int | None
    """Of the ORT format; null for an ONNX model."""
    opset_imports: dict[str, int]
    """Domain (``ai.onnx`` for ONNX's own) -> opset."""
    ir_version: int
    operators: dict[str, dict[str, tuple[Kernels, ...]]]
    """What the model asks of a runtime, after the optimisation that ships, in the words of ``runtime.json``."""
    element_types: tuple[ElementType, ...]
    """Of all tensors, sorted."""
    min_runtime: Version
    """ONNX Runtime's version."""
    max_runtime_tested: Version
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    preprocessing: Preprocessing
    providers: Annotated[tuple[ProviderChoice, ...], Field(min_length=1)]
    """In order of preference."""
    threads: Annotated[int, Field(ge=1)] | None
    """For the first provider that takes a number of threads; null: the device decides."""
    quantization: Quantization | None
    golden: tuple[Golden, ...]
    drift_reference: tuple[Histogram, ...] | None
    budget: Budget | None
    source_model: Sha256
    created: str
    """In UTC (``2026-01-31T12:00:00Z``)."""
