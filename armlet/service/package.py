"""The inference service as packages, as a wheel, and as a folder to lay over a rootfs."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

import armlet_runtime

from armlet import nfpm
from armlet.errors import Kind, host_error
from armlet.events import Sink, silent
from armlet.files import write_whole
from armlet.nfpm import MAINTAINER, Entry
from armlet.paths import Paths
from armlet.process import Command, HostRunner, Runner, checked
from armlet.reproducible import EPOCH
from armlet.scratch import scratch
from armlet.service.contents import DEBIAN, DEVICE, contents, modules
from armlet.store import remove_tree

Format = Literal["deb", "ipk", "wheel", "folder"]
FORMATS: tuple[Format, ...] = get_args(Format)
NAME = "armlet-serve"
VERSION = armlet_runtime.__version__
_BUILD = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"


def package(
    paths: Paths,
    out: Path,
    formats: Sequence[Format] = FORMATS,
    *,
    maintainer: str = MAINTAINER,
    runner: Runner | None = None,
    emit: Sink = silent,
) -> dict[Format, Path]:
    """Makes what is asked for in ``out``; equal sources give equal bytes.

    Raises:
        ArmletError: (BUILD) nfpm or setuptools failed; (HOST) the disk is full or not writable.
    """
    made: dict[Format, Path] = {}
    try:
        out.mkdir(parents=True, exist_ok=True)
        for kind in formats:
            with scratch("service") as folder:
                if kind == "wheel":
                    made[kind] = _wheel(paths.root, out, folder, runner or HostRunner(), emit)
                elif kind == "folder":
                    made[kind] = _folder(contents(paths.root, DEVICE, folder), out / f"{NAME}-{VERSION}")
                else:
                    made[kind] = out / f"{NAME}_{VERSION}_all.{kind}"
                    entries = contents(paths.root, DEBIAN if kind == "deb" else DEVICE, folder)
                    nfpm.write_package(
                        made[kind], kind, _described(kind, entries, maintainer), runner=runner, emit=emit
                    )
    except OSError as error:
        raise host_error(error, out) from error
    return made


def _described(kind: nfpm.PackageFormat, entries: dict[str, Entry], maintainer: str) -> nfpm.Package:
    # Distributions with opkg split Python each in another way; a wrong name could not be installed.
    debian = kind == "deb"
    return nfpm.Package(
        name=NAME,
        version=VERSION,
        description="Inference service for ONNX Runtime on devices",
        licence="Apache-2.0",
        maintainer=maintainer,
        created=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(EPOCH)),
        entries=entries,
        depends=("python3 (>= 3.8)",) if debian else (),
        recommends=("python3-nacl | python3-cryptography", "python3-paho-mqtt") if debian else (),
    )


def _folder(entries: dict[str, Entry], target: Path) -> Path:
    remove_tree(target)
    for place, entry in entries.items():
        path = target / place.lstrip("/")
        if entry.source is None:
            path.mkdir(parents=True, exist_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(entry.source, path)
        path.chmod(entry.mode)
        os.utime(path, (EPOCH, EPOCH))
    return target


def _wheel(root: Path, out: Path, folder: Path, runner: Runner, emit: Sink) -> Path:
    """By setuptools, from a copy: what it leaves behind stays out of the sources, and modes and times are ours."""
    source, made = folder / "source", folder / "made"
    device = root / "device"
    files = [device / "pyproject.toml", device / "README.md", *modules(device)]
    _folder({path.relative_to(device).as_posix(): Entry(source=path) for path in files}, source)
    made.mkdir()
    checked(
        runner,
        Command(
            argv=(sys.executable, "-I", "-W", "ignore", "-c", _BUILD, str(made)),
            cwd=source,
            env={"SOURCE_DATE_EPOCH": str(EPOCH)},
        ),
        what="cannot make the wheel",
        kind=Kind.BUILD,
        emit=emit,
    )
    (wheel,) = made.glob("*.whl")
    write_whole(out / wheel.name, wheel.read_bytes())
    return out / wheel.name
