"""What the author of a model says of it, and what is made of that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from armlet_runtime import payload as device

from armlet.nfpm import MAINTAINER, PACKAGE_FORMATS
from armlet.spec.payload import Budget, PayloadManifest
from armlet.spec.sku import Provider

Format = Literal["payload", "deb", "ipk", "rpm", "apk", "folder"]
FORMATS: tuple[Format, ...] = get_args(Format)
PACKAGES = PACKAGE_FORMATS


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the author says of a model; the rest follows from its file, its record and its samples."""

    name: str
    version: str
    generation: int
    description: str
    licence: str
    samples: Path
    source: Path | None = None
    """The ONNX model of floats; None: the record tells."""
    providers: tuple[Provider, ...] = ()
    """Empty: those it was converted for, else the runtime's, else ``cpu``."""
    threads: int | None = None
    budget: Budget | None = None
    atol: float | None = None
    rtol: float | None = None
    golden: int = 5
    created: str = ""
    limit: int = device.LIMIT_BYTES
    """Bytes of all files together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What is made of the payload, and where."""

    out: Path
    formats: Sequence[Format] = ("payload",)
    licence_file: Path | None = None
    """The licence's text, for packages."""
    maintainer: str = MAINTAINER
    beside: bool = False
    """Packages have the version in their names, and several can be installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """``files``: what was asked for -> where it is. ``key`` is the fingerprint; None: it is not signed."""

    manifest: PayloadManifest
    sha256: str
    """Of ``payload.json``."""
    key: str | None
    golden_share: float
    """The largest share of the tolerance that this machine's run of the golden vectors took up."""
    files: dict[Format, Path]
