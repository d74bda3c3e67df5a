"""One product's runtime (``recipes/skus/*.yaml``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from armlet.spec.base import Line, Name, RelativePath, Sha256, Spec, Version, each_once
from armlet.spec.cpu import Arch
from armlet.spec.toolchain import Wheel

Flavor = Literal["full", "reduced", "minimal"]
Provider = Literal["cpu", "xnnpack", "acl", "vsinpu", "rknpu"]
PythonApi = Literal["capi", "wheel"]

BUILDABLE_PROVIDERS: Mapping[Provider, frozenset[Arch]] = {
    "cpu": frozenset({"aarch64", "armhf"}),
    "xnnpack": frozenset({"aarch64", "armhf"}),
    "acl": frozenset({"aarch64"}),
    "vsinpu": frozenset({"aarch64"}),
    "rknpu": frozenset({"aarch64"}),
}
"""Provider -> architectures that this version can build it for."""

DOMAINS_LEFT_OUT: Mapping[Flavor, frozenset[str]] = {"minimal": frozenset({"ai.onnx.ml"})}
"""Flavor -> operator domains that its build is configured without."""

TYPES_LEFT_OUT: Mapping[Flavor, tuple[str, ...]] = {"minimal": ("float8", "optional(", "sparse_tensor(")}
"""Flavor -> beginnings of the types that its build is configured without."""

ElementType = Literal[
    "bool",
    "float",
    "double",
    "float16",
    "bfloat16",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "string",
]
"""Types of tensor elements, as ONNX names them (onnx.proto, ``TensorProto.DataType``, in lower case)."""

OperatorName = Annotated[str, StringConstraints(pattern=r"^([a-z][a-z0-9._-]*:)?[A-Z][A-Za-z0-9_]*$")]
"""``Conv``, or ``com.microsoft:FusedConv`` for another domain than ONNX's own."""


class WheelMember(Wheel):
    """A file inside a wheel."""

    member: RelativePath


class Quantise(Spec):
    """How a model's int8 version is made: in ONNX's QDQ format, from the model's own samples."""

    format: Literal["qdq"] = "qdq"
    activation: Literal["int8", "uint8"] = "int8"
    weight: Literal["int8", "uint8"] = "int8"
    per_channel: bool = True
    """Whether every output channel's weights have a scale of their own; only for int8 weights."""


INT8_SUFFIX = "-int8"
"""What the name of a model's int8 version ends with."""


class Model(Spec):
    """A model the SKU must be able to run: its operators are kept in the build. One of ``path`` and ``wheel``."""

    name: Name
    licence: str
    """SPDX expression."""
    sha256: Sha256
    path: RelativePath | None = None
    """Below the project's root."""
    wheel: WheelMember | None = None
    inputs: dict[str, Annotated[tuple[Annotated[int, Field(gt=0)], ...], Field(min_length=1)]] = Field(
        default_factory=dict
    )
    """Input -> the shape it always has. XNNPACK takes a convolution only if its channels, height and width are known
    when the model is loaded, so a free dimension costs the provider."""
    samples: RelativePath | None = None
    """What it is tried and calibrated on: a folder of ``.npz`` files below the project's root, or one such file."""
    quantise: Quantise | None = None
    """Its int8 version is wanted too, as a model of its own named ``<name>-int8``."""


class ModelRecipe(Model):
    """A public model (``recipes/models/*.yaml``), for SKUs to copy and for tests."""

    schema_: Annotated[Literal[1], Field(alias="schema")]
    description: Line


class Allow(Spec):
    """Operators kept although no model needs them yet, for every opset of the range: room for next month's model."""

    opsets: tuple[int, int]
    operators: tuple[OperatorName, ...]


def _once(types: tuple[ElementType, ...]) -> tuple[ElementType, ...]:
    each_once(types)
    return types


class Operators(Spec):
    models: tuple[Model, ...] = ()
    allow: tuple[Allow, ...] = ()
    types: Annotated[tuple[ElementType, ...], Field(min_length=1), AfterValidator(_once)] | None = None
    """Kernels are compiled for tensors of these elements only, where ONNX Runtime can leave the others out; null: for
    all that it knows."""


class RuntimeSpec(Spec):
    source_set: Name
    flavor: Flavor
    providers: Annotated[tuple[Provider, ...], Field(min_length=1)]
    """In order of preference; ``cpu`` comes last."""
    python: PythonApi = "capi"
    cpython: Version | None = None
    """``3.11``: the CPython that a wheel is for; null: the one that the toolchain has headers for."""
    sdks: dict[Name, Line] = Field(default_factory=dict)
    """Vendors' files by name (docs/providers.md) -> the folder they are in: absolute, or below the project's root."""
    operators: Operators = Operators()


GLIBC = r"^2\.(1[7-9]|[2-9][0-9])$"


class SkuFloors(Spec):
    """What the product's rootfs has; the artefacts may ask for no more."""

    glibc: Annotated[str, StringConstraints(pattern=GLIBC)]
    """From 2.17, the first with 64-bit ARM, to 2.99."""
    glibcxx: Version | None = None
    """Newest ``GLIBCXX_`` version of the rootfs's libstdc++; only needed where a provider uses that library. Null: the
    C++ runtime is linked in, nothing is asked of the rootfs's."""


class Budgets(Spec):
    library_mib: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    """Upper bound of the stripped library's size, in MiB."""


class Sku(Spec):
    schema_: Annotated[Literal[1], Field(alias="schema")]
    name: Name
    description: Line
    toolchain: Name | None = None
    """None: the newest one for the CPU whose glibc is not newer than ``floors.glibc``."""
    cpu: Name
    runtime: RuntimeSpec
    floors: SkuFloors
    budgets: Budgets
