"""A root file system of the target's architecture, for programs run by QEMU's user mode.

Packages are only unpacked: nothing of them runs, so neither root, nor namespaces, nor a registered interpreter for
foreign programs is needed.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from armlet import digest
from armlet.errors import Kind, host_error
from armlet.events import Note, Sink, silent
from armlet.paths import Paths
from armlet.process import Command, HostRunner, Runner, checked
from armlet.steps.rootfs import explain, mmdebstrap
from armlet.store import remove_tree

PACKAGES = ("python3-minimal", "libpython3-stdlib", "python3-numpy", "python3-nacl")

_RECIPE = 2
"""Raised whenever this module makes something else of the same packages."""
_ALTERNATIVES = ("blas/libblas.so.3", "lapack/liblapack.so.3")
"""What installing would have linked one folder up, in the architecture's library folder: NumPy needs both."""
FOLDERS = {"arm64": "aarch64-linux-gnu", "armhf": "arm-linux-gnueabihf"}


def make(
    paths: Paths,
    *,
    suite: str,
    architecture: str = "arm64",
    packages: tuple[str, ...] = PACKAGES,
    emit: Sink = silent,
    runner: Runner | None = None,
) -> Path:
    """The folder with the root file system: made once, then answered from the cache.

    Args:
        suite: Debian's name of a release.
        architecture: Debian's name of the target's architecture.

    Raises:
        ArmletError: (HOST) mmdebstrap or tar is missing, the mirror does not answer, the disk is full.
    """
    key = digest.of_value([_RECIPE, suite, architecture, packages])
    target = paths.images / f"rootfs-{architecture}-{suite}-{key[:16]}"
    if target.is_dir():
        return target
    emit(Note(text=f"unpacking a Debian {suite} root file system for {architecture}"))
    try:
        paths.images.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=paths.images))
    except OSError as error:
        raise host_error(error, target) from error
    try:
        made = _unpack(staging, suite, architecture, packages, runner or HostRunner(), emit)
        _merge_usr(made)
        _link_alternatives(made / "usr" / "lib" / FOLDERS[architecture])
        _publish(made, target)
    finally:
        remove_tree(staging)
    return target


def _unpack(
    staging: Path, suite: str, architecture: str, packages: tuple[str, ...], runner: Runner, emit: Sink
) -> Path:
    archive, folder = staging / "rootfs.tar", staging / "rootfs"
    folder.mkdir()
    options = ("--mode=chrootless", "--variant=extract", f"--architectures={architecture}")
    bootstrap = mmdebstrap(*options, f"--include={','.join(packages)}", suite=suite, out=archive)
    extract = ("tar", "--extract", "--file", str(archive), "--directory", str(folder), "--no-same-owner")
    # The devices in the archive are root's to make, and programs see this machine's anyway.
    for command in (bootstrap, Command(argv=(*extract, "--exclude=./dev/*"), explain=explain)):
        checked(
            runner,
            command,
            what=f"cannot make a Debian {suite} root file system for {architecture}",
            kind=Kind.HOST,
            emit=emit,
        )
    return folder


def _merge_usr(root: Path) -> None:
    """Makes the links to ``/usr`` that Debian 13 leaves to the installer; older releases have them in a package."""
    for name in ("bin", "lib", "sbin"):
        if not (root / name).exists():
            (root / name).symlink_to(f"usr/{name}")


def _link_alternatives(libraries: Path) -> None:
    for name in _ALTERNATIVES:
        link = libraries / Path(name).name
        if (libraries / name).exists() and not link.is_symlink():
            link.symlink_to(name)


def _publish(made: Path, target: Path) -> None:
    try:
        made.rename(target)
    except OSError as error:
        if not target.is_dir():  # Unless another process made the same one meanwhile.
            raise host_error(error, target) from error
