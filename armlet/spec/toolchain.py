"""How to compile for one target ABI (``toolchains/*.yaml``)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from armlet.spec.base import Line, Name, Sha256, Spec, Version
from armlet.spec.cpu import Arch

TRIPLE = r"^(aarch64-([a-z0-9]+-)?linux-gnu|arm-([a-z0-9]+-)?linux-gnueabihf)$"
DebianPackage = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9+.-]+$")]


class Wheel(Spec):
    """A file on the Python package index, named by project, version and hash."""

    project: Name
    version: Annotated[str, StringConstraints(min_length=1)]
    filename: Annotated[str, StringConstraints(pattern=r"^[^/]+\.whl$")]
    sha256: Sha256


class BaseImage(Spec):
    """The root file system that the toolchain is installed into: pulled by digest, else bootstrapped."""

    distribution: Literal["debian"]
    suite: Name
    image: Annotated[str, StringConstraints(pattern=r"^[a-z0-9./:-]+@sha256:[0-9a-f]{64}$")] | None = None


class Floors(Spec):
    """The oldest target that a runtime of this toolchain runs on."""

    glibc: Version
    kernel: Version


class Toolchain(Spec):
    schema_: Annotated[Literal[1], Field(alias="schema")]
    name: Name
    description: Line
    arch: Arch
    triple: Annotated[str, StringConstraints(pattern=TRIPLE)]
    debian_arch: Literal["arm64", "armhf"]
    base: BaseImage
    compiler: Literal["gcc"]
    packages: tuple[DebianPackage, ...]
    """Debian packages installed into the image, beside the ones the template always installs."""
    wheels: tuple[Wheel, ...]
    """Build tools unpacked under ``/opt/wheels/<project>`` in the image."""
    floors: Floors
    cpython: Version | None = None
    """``3.11``: the CPython whose headers the distribution has for the target; null: no wheel is built."""
