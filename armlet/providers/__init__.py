"""The execution providers a runtime can be built with: one module and one row each. docs/providers.md explains them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from armlet.providers import acl, cpu, rknpu, vsinpu, xnnpack
from armlet.providers.base import ProviderRow, Sdk

__all__ = ["PROVIDERS", "ProviderRow", "Sdk", "rows", "sdks"]

PROVIDERS: dict[str, ProviderRow] = {
    "cpu": cpu.ROW,
    "xnnpack": xnnpack.ROW,
    "acl": acl.ROW,
    "vsinpu": vsinpu.ROW,
    "rknpu": rknpu.ROW,
}


def rows(providers: Iterable[str]) -> tuple[ProviderRow, ...]:
    """The rows of a SKU's providers, in its order."""
    return tuple(PROVIDERS[name] for name in providers)


def sdks(providers: Iterable[str]) -> Iterator[Sdk]:
    """The vendors' files that a SKU's providers need."""
    for row in rows(providers):
        yield from row.sdks
