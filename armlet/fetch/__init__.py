"""Verified downloads into the cache, and safe unpacking."""

from armlet.fetch.archive import normalise, unpack
from armlet.fetch.fetcher import fetch
from armlet.fetch.patching import apply_patch
from armlet.fetch.places import Places
from armlet.fetch.transport import Patience
from armlet.fetch.wanted import Wanted, from_component, from_wheel

__all__ = [
    "Patience",
    "Places",
    "Wanted",
    "apply_patch",
    "fetch",
    "from_component",
    "from_wheel",
    "normalise",
    "unpack",
]
