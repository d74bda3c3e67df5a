"""Where the build's container sees things. They are fixed, so that no machine's own path can reach an artefact."""

from __future__ import annotations

SOURCES = "/src"
BUILD = "/build"
HEADERS = "/python"
"""CPython's, for the target."""
SDKS = "/sdk"
"""Vendors' files, one folder each, read-only."""
LIBRARIES = f"{BUILD}/libraries"
"""Links to the shared libraries of components that travel in the package, by the name that a linker looks for."""
COMPILE_CACHE = "/compile-cache"
"""The folder of the socket behind which compiled objects are shared."""
