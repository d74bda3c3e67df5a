"""CPython's headers for the target, from the distribution that the toolchain stands on."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from armlet.errors import ArmletError, Kind, host_error
from armlet.events import Sink, silent
from armlet.files import copy_tree
from armlet.paths import Paths
from armlet.process import Runner
from armlet.qemu import rootfs
from armlet.spec.toolchain import Toolchain

PACKAGES = ("libpython3-dev",)


def ensure(toolchain: Toolchain, paths: Paths, *, emit: Sink = silent, runner: Runner | None = None) -> Path:
    """The folder with ``Python.h`` and the target's own ``pyconfig.h``: made once, then answered from the cache.

    Raises:
        ArmletError: (HOST) the packages cannot be had or the disk is full; (INPUT) the distribution has another
            CPython than the toolchain says.
    """
    version = f"python{toolchain.cpython}"
    suite, arch = toolchain.base.suite, toolchain.debian_arch
    target = paths.images / f"headers-{version}-{arch}-{suite}"
    if target.is_dir():
        return target
    include = rootfs.make(paths, suite=suite, architecture=arch, packages=PACKAGES, emit=emit, runner=runner) / (
        "usr/include"
    )
    if not (include / version / "Python.h").is_file():
        found = ", ".join(sorted(path.name for path in include.glob("python3*"))) or "none"
        raise ArmletError(
            f"Debian {suite} has no headers of {version} for {arch}; it has: {found}",
            where=f"toolchains/{toolchain.name}.yaml",
            hint="correct cpython: in that file",
            kind=Kind.INPUT,
        )
    try:
        with tempfile.TemporaryDirectory(dir=paths.images, prefix=f".{target.name}-") as staging:
            made = Path(staging, "include")
            copy_tree(include / version, made)
            # Debian's own only leads to the one of the architecture, by a path below /usr/include.
            shutil.copyfile(include / rootfs.FOLDERS[arch] / version / "pyconfig.h", made / "pyconfig.h")
            made.rename(target)
    except OSError as error:
        if not target.is_dir():  # Unless another build made the same one meanwhile.
            raise host_error(error, target) from error
    return target
