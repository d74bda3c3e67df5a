"""What the rules on a SKU look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from armlet.recipes import Table
from armlet.spec.source_set import SourceSet
from armlet.spec.toolchain import Toolchain
from armlet.yamlfile import Document, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A SKU as written, and what it refers to as far as that is there and sound."""

    sku: Document
    toolchain: Toolchain | None
    source_set: SourceSet | None
    toolchains: tuple[Toolchain, ...]
    operators: Table | None


Rule = Callable[[Case], Iterator[Problem]]
