"""What a caller wants: a file, by hash."""

from __future__ import annotations

from dataclasses import dataclass

from armlet.spec.source_set import Component
from armlet.spec.toolchain import Wheel


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One file. Where it comes from does not matter: ``sha256`` decides, and ``size`` (bytes) where it is known.

    ``sha256`` is empty only while a file is being locked.
    """

    filename: str
    sha256: str
    size: int | None
    debian: str | None = None
    """Path below a Debian mirror."""
    snapshot: str | None = None
    """sha1, the file's address at snapshot.debian.org."""
    urls: tuple[str, ...] = ()
    wheel: Wheel | None = None


def from_component(component: Component) -> Wanted:
    return Wanted(
        filename=component.filename,
        sha256=component.sha256,
        size=component.size,
        debian=component.debian,
        snapshot=component.snapshot,
        urls=component.urls,
    )


def from_wheel(wheel: Wheel) -> Wanted:
    return Wanted(filename=wheel.filename, sha256=wheel.sha256, size=None, wheel=wheel)
