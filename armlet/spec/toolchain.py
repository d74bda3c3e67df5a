"""How to compile for one target ABI (``toolchains/*.yaml``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, ValidationInfo

from armlet.spec.base import Line, Name, Sha256, Spec, Version, wrong
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


_OF_ARCH: Mapping[Arch, Mapping[str, str]] = {
    "aarch64": {"triple": "aarch64-linux-gnu", "debian_arch": "arm64"},
    "armhf": {"triple": "arm-linux-gnueabihf", "debian_arch": "armhf"},
}
"""Architecture -> key -> its value, where a triple may have a vendor in the middle."""


def _of_the_arch(given: str, info: ValidationInfo) -> str:
    arch: Arch | None = info.data.get("arch")
    if arch is None or info.field_name is None:
        return given  # The architecture is told.
    usual = _OF_ARCH[arch][info.field_name]
    first, _, last = usual.partition("-")
    if given.startswith(first) and given.endswith(last):
        return given
    other = next(name for name in _OF_ARCH if name != arch)
    raise wrong(f'"{given}" is not for arch: {arch}', f"write {info.field_name}: {usual}, or arch: {other}")


class Toolchain(Spec):
    schema_: Annotated[Literal[1], Field(alias="schema")]
    name: Name
    description: Line
    arch: Arch
    triple: Annotated[str, StringConstraints(pattern=TRIPLE), AfterValidator(_of_the_arch)]
    debian_arch: Annotated[Literal["arm64", "armhf"], AfterValidator(_of_the_arch)]
    base: BaseImage
    compiler: Literal["gcc"]
    packages: Annotated[tuple[DebianPackage, ...], Field(min_length=1)]
    """Debian packages installed into the image, beside the ones the template always installs."""
    wheels: tuple[Wheel, ...]
    """Build tools unpacked under ``/opt/wheels/<project>`` in the image."""
    floors: Floors
    cpython: Version | None = None
    """``3.11``: the CPython whose headers the distribution has for the target; null: no wheel is built."""
