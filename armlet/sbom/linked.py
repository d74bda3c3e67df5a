"""Which components are inside a library: what the linker took, and what the code's line tables name. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from armlet import linkmap
from armlet.emit.cmake import MAPPED
from armlet.errors import ArmletError, Kind
from armlet.mounts import SDKS, SOURCES
from armlet.spec.source_set import Component

GCC, GLIBC = "gcc-runtime", "glibc"
"""The toolchain's own: libstdc++ and libgcc; start-up code of the C library."""
SDK = "sdk-"
"""How the name of a vendor's SDK begins."""

_FETCHED = re.compile(r"(?:^|/)_deps/([^/]+)-build/")
_ARCHIVE = re.compile(r"^lib([^/]+)\.a$")
_OBJECT = re.compile(r"^CMakeFiles/")
_GCC = re.compile(r"/gcc(?:-cross)?/[^/]+/[0-9.]+/(?:crt\w*\.o|lib(?:gcc|gcc_eh|stdc\+\+|atomic|supc\+\+)\.a)$")
_GLIBC = re.compile(r"/(?:S?crt[1in]\.o|lib[a-z]+_nonshared\.a)$")
_INCLUDED = re.compile(r"/c\+\+/|/gcc(?:-cross)?/")
_SDK = re.compile(rf"^{SDKS}/([^/]+)/")
_STUBS = "linker stubs"
_VARIABLE = "FETCHCONTENT_SOURCE_DIR_"


def components(link_map: str, sources: Collection[str], known: Iterable[Component]) -> frozenset[str]:
    """Names of the components that have code or data in a library.

    Args:
        link_map: the map of its link.
        sources: paths of the files that its code comes from (:func:`armlet.lines.sources`).
        known: the components of the build; ONNX Runtime's own is first.

    Raises:
        ArmletError: (BUILD) the linker took a library that nobody is known to have.
        ValueError: the text is no map of GNU ld.
    """
    known = tuple(known)
    folders = {
        one.cmake.removeprefix(_VARIABLE).lower(): one.name
        for one in known
        if one.cmake and one.cmake.startswith(_VARIABLE)
    }
    names = [one.name for one in known]
    taken = {_owner(place, folders, names) for place in linkmap.taken(link_map) if place != _STUBS}
    return frozenset(taken | {name for path in sources for name in _included(path, names)})


def _owner(place: str, folders: dict[str, str], names: list[str]) -> str:
    if found := _FETCHED.search(place):
        if found[1] in folders:
            return folders[found[1]]
    elif _OBJECT.match(place):
        return names[0]
    elif found := _ARCHIVE.match(place):
        # libonnx_proto.a is onnx's, libonnxruntime_session.a is not.
        for name in sorted(names, key=len, reverse=True):
            if found[1] == name or found[1].startswith(f"{name}_"):
                return name
    elif found := _SDK.match(place):
        return SDK + found[1]
    elif _GCC.search(place):
        return GCC
    elif _GLIBC.search(place):
        return GLIBC
    raise ArmletError(
        f"the linker took {place}, and no component is known to have it",
        hint="a library that ships must have a licence: add its component to the source set, or leave it out",
        kind=Kind.BUILD,
    )


def _included(path: str, names: Collection[str]) -> Iterable[str]:
    root = f"{MAPPED[SOURCES]}/"
    if path.startswith(root):
        name = path.removeprefix(root).partition("/")[0]
        return (name,) if name in names else ()
    return (GCC,) if _INCLUDED.search(path) else ()
