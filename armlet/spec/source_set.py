"""The locked components of one ONNX Runtime version (``recipes/sources/*.yaml``)."""

from __future__ import annotations

import re
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from armlet.spec.base import (
    PART,
    RELATIVE_PATH,
    Licence,
    Name,
    RelativePath,
    Sha256,
    Spec,
    Version,
    each_once,
    version_key,
    wrong,
)
from armlet.spec.cpu import Arch, Feature
from armlet.spec.sku import Flavor, Provider, PythonApi

UPSTREAM_PATCH = "onnxruntime:"
"""How the name of a patch begins that ONNX Runtime's own tree carries."""

POOL_PATH = rf"^{PART}(/{PART})+$"
URL = rf"^https?://[A-Za-z0-9._-]+(:[0-9]{{1,5}})?/{PART}(/{PART})*$"
CMAKE_TARGET = r"^[A-Za-z0-9_.+-]+$"
PURL = r"^pkg:[a-z][a-z0-9.-]*(/[A-Za-z0-9._~%+-]+)+(@([A-Za-z0-9._~%+-]|\{version\})+)?$"
CPE = r"^cpe:2\.3:a(:([A-Za-z0-9._*~\\-]|\{version\})+){10}$"


def _patch(name: str) -> str:
    if name.startswith(UPSTREAM_PATCH) and not re.fullmatch(RELATIVE_PATH, name.removeprefix(UPSTREAM_PATCH)):
        raise wrong(f'"{name}" is not taken', f"after {UPSTREAM_PATCH} comes a path in ONNX Runtime's tree, without ..")
    return name


Patch = Annotated[RelativePath, AfterValidator(_patch)]


class Only(Spec):
    """What a SKU must have asked for that a component is part of its build; a key left out asks for nothing."""

    arch: Arch | None = None
    provider: Provider | None = None
    python: PythonApi | None = None


class Needs(Spec):
    """What the libraries that a component ships ask of a rootfs, as ``readelf -V`` has it."""

    glibc: Version
    glibcxx: Version | None = None


class Component(Spec):
    """One upstream archive and how it becomes a source folder.

    ``debian`` is a path below a Debian mirror (``pool/main/...``); ``urls`` are upstream's own places. Any of them
    will do: the hash decides.
    """

    name: Name
    version: str
    licence: Licence
    purl: Annotated[str, StringConstraints(pattern=PURL)] | None = None
    """Package URL, by which scanners know what this is elsewhere; ``{version}`` stands for the version."""
    cpe: Annotated[str, StringConstraints(pattern=CPE)] | None = None
    """CPE 2.3 name, as vulnerability databases have it; ``{version}`` stands for the version."""
    sha256: Sha256
    size: Annotated[int, Field(gt=0)]
    """Bytes."""
    debian: Annotated[str, StringConstraints(pattern=POOL_PATH)] | None = None
    snapshot: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")] | None = None
    """The sha1 by which snapshot.debian.org names the file: an address, never a check."""
    urls: tuple[Annotated[str, StringConstraints(pattern=URL)], ...] = ()
    strip: Annotated[int, Field(ge=0, le=5)] = 1
    """Leading path components dropped on unpacking."""
    keep: tuple[RelativePath, ...] = ()
    """Only these paths (after stripping) are unpacked; empty means all."""
    patches: tuple[Patch, ...] = ()
    """Applied in this order, ``-p1``; below ``recipes/patches/<version>/``, or ``onnxruntime:<path>`` for one that
    ONNX Runtime's own tree carries for this dependency."""
    cmake: str | None = None
    """The FetchContent name or variable that hands this folder to ONNX Runtime's CMake."""
    subdir: RelativePath | None = None
    """The part of the folder that is handed over."""
    ships: tuple[RelativePath, ...] = ()
    """Shared libraries inside it that travel in the package; each is a file that is called by its full version."""
    needs: Needs | None = None
    only: Only = Only()

    def named(self, template: str) -> str:
        """``purl`` or ``cpe`` with the version in its place."""
        return template.replace("{version}", self.version)

    @property
    def filename(self) -> str:
        place = self.debian or self.urls[0]
        return place.rsplit("/", 1)[1]

    @model_validator(mode="after")
    def _has_a_place(self) -> Component:
        if not self.debian and not self.urls:
            raise wrong("has no place", "give debian: or urls:, a place to fetch it from")
        return self


_ALL: tuple[Flavor, ...] = ("minimal", "reduced", "full")

Flavors = Annotated[tuple[Flavor, ...], Field(min_length=1)]


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise wrong(
            f"is no regular expression: {error}", "write one that Python's re takes; a dot of a name is \\."
        ) from error
    return pattern


Pattern = Annotated[str, StringConstraints(min_length=1), AfterValidator(_compiles)]
"""A regular expression, found anywhere in an absolute path."""


class Skip(Spec):
    """Sources that nothing in a reduced runtime refers to."""

    targets: Pattern
    """CMake targets whose whole name this regular expression matches."""
    sources: Pattern = "."
    unless: tuple[str, ...] = ()
    """Operators that need these sources: they stay when the SKU keeps one of them."""
    unless_cpu: tuple[Feature, ...] = ()
    """ISA extensions that these sources are for: they stay when the SKU's core has one of them."""
    flavors: Flavors = _ALL
    """Where nothing refers to them."""


class Sources(Spec):
    """Sources that are to be treated differently."""

    sources: Pattern
    flavors: Flavors = _ALL
    """Where they are."""


T = TypeVar("T", Sources, Skip)


class Acceleration(Spec):
    """How this version's sources compile faster. A wrong entry shows as a failed link, never as a wrong library."""

    keep: tuple[Sources, ...] = ()
    """Sources of the CPU provider that stay although no header leads to them."""
    skip: tuple[Skip, ...] = ()
    batches: dict[Annotated[str, StringConstraints(pattern=CMAKE_TARGET)], Annotated[int, Field(gt=0)]] = Field(
        default_factory=dict
    )
    """CMake target -> sources compiled together (CMake's unity build)."""
    apart: tuple[Sources, ...] = ()
    """Sources that cannot share a batch."""

    def of(self, flavor: Flavor) -> Acceleration:
        """The entries that hold for a flavor: a new one for another flavor alone is no reason to compile again."""

        def held(rules: tuple[T, ...]) -> tuple[T, ...]:
            return tuple(rule.model_copy(update={"flavors": (flavor,)}) for rule in rules if flavor in rule.flavors)

        return Acceleration(keep=held(self.keep), skip=held(self.skip), batches=self.batches, apart=held(self.apart))


R = TypeVar("R", int, str)


def _upwards(given: tuple[R, R]) -> tuple[R, R]:
    first, last = (version_key(str(one)) for one in given)
    if first > last:
        raise wrong(f"{given[0]} to {given[1]} is upside down", "write the oldest first")
    return given


def _named_once(components: tuple[Component, ...]) -> tuple[Component, ...]:
    each_once((one.name for one in components), "name")
    return components


class SourceSet(Spec):
    schema_: Annotated[Literal[1], Field(alias="schema")]
    name: Name
    version: Version
    """Of ONNX Runtime."""
    ort_format: Annotated[tuple[Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1)]], AfterValidator(_upwards)]
    """Oldest and newest ORT-format version its loader takes (``core/flatbuffers/ort_format_version.h``)."""
    onnx_ir_max: int
    opsets: Annotated[dict[str, Annotated[int, Field(ge=1)]], Field(min_length=1)]
    """Domain -> newest released opset that this version implements."""
    cpython: Annotated[tuple[Version, Version], AfterValidator(_upwards)] | None = None
    """Oldest and newest CPython that upstream's wheel is for; null: not known, no wheel is built."""
    components: Annotated[tuple[Component, ...], AfterValidator(_named_once)]
    acceleration: Acceleration = Acceleration()
