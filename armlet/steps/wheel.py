"""Upstream's Python wheel, packed by upstream's own ``setup.py`` for the target's platform."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from armlet import elf
from armlet.config import Resolved
from armlet.emit import cmake
from armlet.files import copy_tree
from armlet.gates import MODULE
from armlet.gates.symbols import highest

_MACHINES = {"aarch64": "aarch64", "armhf": "armv7l"}
"""What CPython calls the architecture (``sysconfig.get_platform``)."""
# Of glibc's libraries, those that PEP 600 lets a manylinux wheel ask for.
_MANYLINUX = ("libc.so.", "libm.so.", "libdl.so.", "libpthread.so.", "librt.so.", "ld-linux")
_UPSTREAM = f"{cmake.SOURCES}/onnxruntime"
_PACKAGE = MODULE.partition("/")[0]


def platform_tag(facts: elf.ElfFacts, arch: str) -> str:
    """The platform that a module may be installed on: ``manylinux_2_35_aarch64`` (PEP 600), or ``linux_aarch64``.

    The first says the oldest glibc; the second nothing, where the module asks for libraries that PEP 600 does not list.
    """
    machine = _MACHINES[arch]
    glibc = highest([facts], "GLIBC_")
    if glibc is None or not all(name.startswith(_MANYLINUX) for name in facts.needed):
        return f"linux_{machine}"
    return f"manylinux_{glibc.replace('.', '_')}_{machine}"


def pack(
    do: Callable[..., object], split: Callable[[str], Path], resolved: Resolved, *, compiled: Path, scratch: Path
) -> tuple[Path, Path]:
    """Writes the wheel of the package that was compiled to ``compiled``.

    Args:
        do: runs a command in the container, in ``scratch``, given its words.
        split: strips a file below ``scratch``, given its path there, and returns its debug file.
        scratch: a folder that the container shares.

    Returns:
        The wheel, and its module's debug file.
    """
    copy_tree(compiled / _PACKAGE, scratch / _PACKAGE)
    # The module has all of it inside, and no provider is in a library of its own.
    for library in (scratch / MODULE).parent.glob("libonnxruntime*.so*"):
        library.unlink()
    debug = split(MODULE)
    tag = platform_tag(elf.read((scratch / MODULE).read_bytes(), name=MODULE), resolved.toolchain.arch)
    do("cp", f"{_UPSTREAM}/VERSION_NUMBER", ".")
    do("python3", f"{_UPSTREAM}/setup.py", "--quiet", "bdist_wheel", "--plat-name", tag, "--dist-dir", "dist")
    (wheel,) = (scratch / "dist").glob("*.whl")
    return wheel, debug
