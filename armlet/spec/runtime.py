"""``runtime.json``: what a build yielded, and the contract that models are checked against."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from armlet.spec.base import Name, Sha256, Spec, Version
from armlet.spec.sku import ElementType, Flavor, Provider


class Target(Spec):
    triple: str
    arch: str
    float_abi: Literal["hard", "soft", "aapcs64"]
    isa: str
    """The ``-march`` the code was compiled for."""
    cpu: str


class Requires(Spec):
    """The newest symbol versions the ELF files ask for; null where they ask for none."""

    glibc: Version
    glibcxx: Version | None
    """Null: the C++ runtime is linked in."""
    kernel: Version
    """The oldest Linux kernel that the toolchain's libc starts on."""
    libraries: tuple[str, ...] = ()
    """Sonames that the ELF files ask for and the package does not bring: the rootfs has to."""


class Kernels(Spec):
    """Kernels of one operator that take the same types; in a payload, nodes that have the same."""

    since_versions: tuple[int, ...]
    """Versions of the operator's definition (a node's ``since_version``) that the kernels take: a node is served
    exactly if its own is listed. A kernel registered for a closed range lists every number of the range; one that is
    registered with an open end takes only the version it names, as ONNX Runtime's registry does."""
    takes: tuple[dict[str, tuple[str, ...]], ...] | None = None
    """Type constraint, as the operator's definition names it (``T1``; where it names none, the input or output) ->
    types, as ONNX names them (``float`` for a tensor of them, ``seq(tensor(float))``). A node is served if one entry
    allows the type of every constraint that it names and the node has. A payload's entries have one type for each of
    a node's constraints. Null: not known."""


class ShippedFile(Spec):
    """One regular file of the package, ``runtime.json`` itself apart; links are not listed."""

    path: str
    """Below the package's top folder."""
    size: int
    """Bytes."""
    sha256: Sha256
    stripped: bool | None
    """Null for files that are no ELF objects."""
    build_id: str | None


class ShippedWheel(Spec):
    """Upstream's Python package beside the runtime's own; it holds ONNX Runtime a second time."""

    filename: str
    """Python, ABI and platform tags included (PEP 427)."""
    size: int
    """Bytes."""
    sha256: Sha256
    cpython: Version


class SourceSetRef(Spec):
    name: Name
    sha256: Sha256


class ToolchainRef(Spec):
    name: Name
    image: str
    """The image's digest."""
    compiler: str
    """What the compiler calls itself, with its version."""


class RuntimeManifest(Spec):
    schema_: Annotated[Literal[1], Field(alias="schema")] = 1
    sku: Name
    build_id: Sha256
    """Id of the step that packed it: the hash of everything that made it."""
    ort_version: Version
    ort_format_version: tuple[int, int]
    """Oldest and newest ORT-format version its loader takes."""
    onnx_ir_max: int
    opsets: dict[str, int]
    """Domain (``ai.onnx`` for ONNX's own) -> newest opset it implements."""
    flavor: Flavor
    target: Target
    requires: Requires
    providers: tuple[Provider, ...]
    operators: dict[str, dict[str, tuple[Kernels, ...]]] | None
    """Domain (``ai.onnx`` for ONNX's own) -> operator -> kernels; null for the flavor ``full``. An operator has several
    entries where newer versions take more types."""
    element_types: tuple[ElementType, ...] | None = None
    """Kernels that can be reduced were compiled for tensors of these elements only; null: for all."""
    files: tuple[ShippedFile, ...]
    wheel: ShippedWheel | None = None
    source_set: SourceSetRef
    toolchain: ToolchainRef
