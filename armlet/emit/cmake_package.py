"""The CMake package of a runtime: ``find_package(onnxruntime)`` gives ``onnxruntime::onnxruntime``."""

from __future__ import annotations

from collections.abc import Sequence
from string import Template

FOLDER = "lib/cmake/onnxruntime"
"""Where both files belong, below the runtime's folder."""
CONFIG = f"{FOLDER}/onnxruntimeConfig.cmake"
VERSION = f"{FOLDER}/onnxruntimeConfigVersion.cmake"

_CONFIG = Template("""\
# Relocatable: paths are found from where this file lies.
get_filename_component(_onnxruntime_prefix "$${CMAKE_CURRENT_LIST_DIR}/$up" $how)

if(NOT TARGET onnxruntime::onnxruntime)
  add_library(onnxruntime::onnxruntime SHARED IMPORTED)
  set_target_properties(onnxruntime::onnxruntime PROPERTIES
    IMPORTED_LOCATION "$${_onnxruntime_prefix}/$library"
    IMPORTED_SONAME "$soname"$beside
    INTERFACE_INCLUDE_DIRECTORIES "$${_onnxruntime_prefix}/include/onnxruntime")
endif()

unset(_onnxruntime_prefix)
""")

_VERSION = Template("""\
set(PACKAGE_VERSION "$version")

# A library keeps its promises within a major version; a newer request cannot be met.
if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION OR NOT PACKAGE_FIND_VERSION_MAJOR EQUAL $major)
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
endif()

# Empty while no language is enabled: then nothing can be said.
if(CMAKE_SIZEOF_VOID_P AND NOT CMAKE_SIZEOF_VOID_P EQUAL $pointer_bytes)
  set(PACKAGE_VERSION_UNSUITABLE TRUE)
endif()
""")


def config(*, library: str, soname: str, foreign: Sequence[str] = (), installed: bool = False) -> str:
    """``onnxruntimeConfig.cmake``; ``library`` is the path of the real file below the runtime's folder.

    Args:
        foreign: those of the libraries that it needs and that lie beside it: a linker has to be told.
        installed: below ``/usr``, which has a link to its libraries in the root folder: CMake may come that way.
    """
    # The folder of this file is as deep below that of the libraries as that is above it.
    up = "/".join([".."] * (library.count("/") + 2))
    paths = ";".join(f"${{_onnxruntime_prefix}}/{path}" for path in foreign)
    beside = f'\n    IMPORTED_LINK_DEPENDENT_LIBRARIES "{paths}"' if foreign else ""
    how = "REALPATH" if installed else "ABSOLUTE"
    return _CONFIG.substitute(library=library, soname=soname, beside=beside, up=up, how=how)


def version_file(*, version: str, pointer_bytes: int) -> str:
    """``onnxruntimeConfigVersion.cmake``: any version of the same major that is not older than asked for."""
    return _VERSION.substitute(version=version, major=version.split(".")[0], pointer_bytes=pointer_bytes)
