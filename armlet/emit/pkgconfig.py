"""The pkg-config file of a runtime."""

from __future__ import annotations

PATH = "lib/pkgconfig/libonnxruntime.pc"
"""Where it belongs, below the runtime's folder."""


def pkgconfig(*, version: str, foreign: bool = False, libraries: str = "") -> str:
    """Relocatable: the prefix is found from where the file lies, so that the folder can be put anywhere.

    Args:
        foreign: libraries that the main one needs lie beside it, where a linker does not look by itself.
        libraries: the folder below ``/usr`` that a distribution has them in. Then nothing is relocatable: for another
            root, pkg-config has PKG_CONFIG_SYSROOT_DIR.
    """
    prefix, folder = ("/usr", libraries.removeprefix("/usr/")) if libraries else ("${pcfiledir}/../..", "lib")
    beside = " -Wl,-rpath-link,${libdir}" if foreign else ""
    return f"""\
prefix={prefix}
libdir=${{prefix}}/{folder}
includedir=${{prefix}}/include/onnxruntime

Name: onnxruntime
Description: ONNX Runtime, the C API
URL: https://onnxruntime.ai
Version: {version}
Libs: -L${{libdir}} -lonnxruntime{beside}
Cflags: -I${{includedir}}
"""
