"""A bill of materials, apart from any format."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from armlet import digest

CYCLONEDX = "sbom.cdx.json"
SPDX = "sbom.spdx.json"
NOTICE = "NOTICE"

Role = Literal["linked", "shipped", "optional", "build"]
"""Compiled into what ships; a file of its own in what ships; used where it is there; or only used to make it."""

_WHY = re.compile(r"^Why: (.*(?:\n  .*)*)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    name: str
    """As in the source set."""
    sha256: str
    why: str
    """Empty where its header does not say: upstream's own do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    path: str
    size: int
    """Bytes."""
    sha256: str
    sha1: str
    """SPDX 2 wants it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A component: a library of the source set, the compiler's runtime, a tool."""

    name: str
    version: str
    role: Role
    tool: bool = False
    """A program, of whose name there may be a library as well."""
    licence: str | None = None
    """SPDX expression; None: not known here."""
    licence_name: str = ""
    """What the author says of a licence that is no SPDX expression."""
    sha256: str | None = None
    """Of its archive."""
    archive: str = ""
    """Name of that file."""
    urls: tuple[str, ...] = ()
    """Places of the archive."""
    purl: str | None = None
    cpe: str | None = None
    supplier: str = ""
    patches: tuple[Patch, ...] = ()
    inside: tuple[str, ...] = ()
    """Paths of the files that have code of it, or that are its own."""
    texts: tuple[Path, ...] = ()
    """Its licences' files."""
    says: str = ""
    """A remark."""

    @property
    def key(self) -> str:
        """No other part of a bill has it."""
        return f"{'tool' if self.tool else 'component'}:{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    name: str
    version: str
    kind: Literal["library", "application", "machine-learning-model"]
    licence: str | None
    description: str
    licence_name: str = ""
    facts: Mapping[str, str]
    """What else is known of it: build id, target, compiler, image."""
    parts: tuple[Part, ...]
    files: tuple[File, ...]
    created: int
    """Seconds since 1970, UTC: of the content, never the clock's."""

    @property
    def delivered(self) -> tuple[Part, ...]:
        return tuple(part for part in self.parts if part.role in ("linked", "shipped"))

    @property
    def build_only(self) -> tuple[Part, ...]:
        return tuple(part for part in self.parts if part.role == "build")


def file(path: str, place: Path) -> File:
    """What a bill says of a file on disk that ships at ``path``."""
    content = place.read_bytes()
    return File(
        path=path,
        size=len(content),
        sha256=digest.of_bytes(content),
        sha1=hashlib.sha1(content, usedforsecurity=False).hexdigest(),
    )


def serial(bill: Bill) -> uuid.UUID:
    """A number that equal bills share, and others do not."""
    told = asdict(replace(bill, parts=tuple(replace(part, texts=()) for part in bill.parts)))
    return uuid.uuid5(uuid.NAMESPACE_OID, digest.of_value(told))


def why(patch: bytes) -> str:
    """What a patch's header says it is for."""
    found = _WHY.search(patch.decode("utf-8", "replace"))
    return " ".join(found[1].split()) if found else ""


def joined(licences: Iterable[str | None]) -> str | None:
    """The expression for all of several licences at once; None where there are none."""
    known = sorted({one for one in licences if one})
    wrapped = [f"({one})" if " OR " in one else one for one in known]
    return " AND ".join(known if len(known) == 1 else wrapped) or None
