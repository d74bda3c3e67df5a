"""The inference service as packages, as a wheel, and as a folder to lay over a rootfs."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args

import armlet_runtime

from armlet import debian_texts, nfpm
from armlet.errors import Kind, host_error
from armlet.events import Sink, silent
from armlet.files import write_whole
from armlet.nfpm import MAINTAINER, Entry
from armlet.package_versions import demand_ordered
from armlet.paths import Paths
from armlet.process import Command, HostRunner, Runner, checked
from armlet.reproducible import EPOCH
from armlet.scratch import scratch
from armlet.service.contents import DEVICE, LAYOUTS, contents, modules
from armlet.service.scripts import SCRIPTS, TRIGGERS
from armlet.store import remove_tree

Format = Literal["deb", "ipk", "rpm", "apk", "wheel", "folder"]
FORMATS: tuple[Format, ...] = get_args(Format)
NAME = "armlet-serve"
RUNTIME = "armlet-runtime"
"""What every runtime's package provides (armlet/packages). Another library does as well, so nobody has to have one."""
# lintian's tags -> why they do not hold here.
_OVERRIDES = {
    "copyright-file-contains-full-apache-2-license": "A device need not have /usr/share/common-licenses.",
    "copyright-not-using-common-license-for-apache2": "A device need not have /usr/share/common-licenses.",
}
_DETAILS = """\
Serves the models in /usr/lib/armlet/models over HTTP, each in a process of its
own, on a loopback address or a Unix socket. A model is served when a key in
/etc/armlet/keys has signed it, and its own test vectors come out right.\
"""
VERSION = armlet_runtime.__version__
_BUILD = "import os, sys; os.umask(0o022); from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"


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
        ArmletError: (INPUT) the maintainer is no line of text; (BUILD) nfpm or setuptools failed; (HOST) the disk is
            full or not writable.
    """
    nfpm.demand_line("maintainer", maintainer)
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
                    entries = {
                        **contents(paths.root, LAYOUTS[kind], folder),
                        **_documents(kind, maintainer, folder),
                    }
                    described = _described(kind, entries, maintainer)
                    made[kind] = out / nfpm.file_name(kind, described)
                    nfpm.write_package(made[kind], kind, described, runner=runner, emit=emit)
    except OSError as error:
        raise host_error(error, out) from error
    return made


# Of a distribution with opkg nobody can say what it calls Python's parts: a wrong name could not be installed.
_DEPENDS: Mapping[nfpm.PackageFormat, tuple[str, ...]] = {
    "deb": ("python3 (>= 3.8)",),
    "rpm": ("python3 >= 3.8",),
    # It knows no recommendations.
    "apk": ("python3>=3.8", RUNTIME),
}
_RECOMMENDS: Mapping[nfpm.PackageFormat, tuple[str, ...]] = {
    "deb": (RUNTIME, "python3-nacl | python3-cryptography", "python3-paho-mqtt"),
    "ipk": (RUNTIME,),
    "rpm": (RUNTIME, "python3-pynacl", "python3-paho-mqtt"),
}


def _documents(kind: nfpm.PackageFormat, maintainer: str, folder: Path) -> dict[str, Entry]:
    """What changed; of a deb, what lintian is told."""
    changes, told = folder / "changelog.gz", folder / "overrides"
    changes.write_bytes(debian_texts.changelog(NAME, VERSION, maintainer, [f"Version {VERSION}, see its service.md."]))
    found = {f"/usr/share/doc/{NAME}/changelog.gz": Entry(source=changes)}
    if kind == "deb":
        told.write_text(debian_texts.overrides(NAME, _OVERRIDES), encoding="utf-8")
        found[f"/usr/share/lintian/overrides/{NAME}"] = Entry(source=told)
    return found


def _described(kind: nfpm.PackageFormat, entries: dict[str, Entry], maintainer: str) -> nfpm.Package:
    return nfpm.Package(
        name=NAME,
        version=demand_ordered(VERSION),
        release="1" if kind in ("rpm", "apk") else "",
        description="Inference service for ONNX Runtime on devices",
        details=_DETAILS,
        licence="Apache-2.0",
        maintainer=maintainer,
        created=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(EPOCH)),
        entries=entries,
        depends=_DEPENDS.get(kind, ()),
        recommends=_RECOMMENDS.get(kind, ()),
        scripts=SCRIPTS[kind],
        triggers=TRIGGERS.get(kind, {}),
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
