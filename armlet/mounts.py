"""Where the build's container sees things. They are fixed, so that no machine's own path can reach an artefact."""

from __future__ import annotations

import re
from dataclasses import dataclass

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
ROOTS = (SOURCES, BUILD, HEADERS, SDKS, COMPILE_CACHE, "/armlet", "/ccache", "/in", "/scratch")
"""Every folder that a build's containers are given."""

# Not the end of a longer path, as in -ffile-prefix-map=/src=/usr/src/armlet, and not the beginning of a longer name.
_ROOT = re.compile(rf"(?<![\w./+-])({'|'.join(ROOTS)})(?![\w.+-])")


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Where one container really has what is known by the names above: below ``prefix``, an absolute path."""

    prefix: str = ""

    def inside(self, text: str) -> str:
        """A text with paths as that container has them."""
        return _ROOT.sub(lambda found: self.prefix + found[1], text)

    def outside(self, text: str) -> str:
        """A text of that container's with the paths as all else knows them."""
        if not self.prefix:
            return text
        return re.sub(rf"{re.escape(self.prefix)}(?=({'|'.join(ROOTS)})(?![\w.+-]))", "", text)


PLAIN = View()
