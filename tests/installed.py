"""Root file systems that dpkg knows, and packages in them."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
from pathlib import Path

from armlet import digest
from armlet.errors import Kind
from armlet.paths import Paths
from armlet.process import Command, HostRunner, checked
from armlet.qemu.run import Target
from armlet.steps.archive import write_tarball
from tests.emulated import emulator

AS_ROOT = () if os.geteuid() == 0 else ("unshare", "--map-root-user")
_FIRST = re.compile(r"^\S+ \(([^)]+)\)")


def run(*argv: str | Path, **environment: str) -> str:
    """What a command prints; it has to succeed."""
    command = Command(argv=tuple(map(str, argv)), env={"LC_ALL": "C", **environment})
    return checked(HostRunner(), command, what=str(argv[0]), kind=Kind.TARGET).output


def dpkg(rootfs: Path, *arguments: str | Path) -> str:
    """What dpkg says; it has to succeed. Maintainer scripts run here, and are told which folder is meant."""
    options = (f"--root={rootfs}", "--force-unsafe-io", "--force-script-chrootless")
    return run(*AS_ROOT, "dpkg", *options, *arguments)


def register(rootfs: Path) -> None:
    """Tells dpkg of what was only unpacked into a root file system, in the versions that its changelogs name."""
    (arch,) = (rootfs / "var/lib/dpkg/arch").read_text().split()
    found = {folder.name: _version(folder) for folder in sorted((rootfs / "usr/share/doc").iterdir())}
    stanzas = [
        f"Package: {name}\nStatus: install ok installed\nMaintainer: nobody <no@body>\n"
        f"Architecture: {arch}\nMulti-Arch: foreign\nVersion: {version}\nDescription: unpacked\n"
        for name, version in found.items()
        if version
    ]
    (rootfs / "var/lib/dpkg/status").write_text("\n".join(stanzas))
    for name in found:
        (rootfs / f"var/lib/dpkg/info/{name}.list").write_text("/.\n")


def _version(folder: Path) -> str | None:
    for file in sorted(folder.glob("changelog*.gz")):
        with gzip.open(file, "rt", encoding="utf-8", errors="replace") as stream:
            if told := _FIRST.match(stream.readline()):
                return told[1]
    return None


def installed(rootfs: Path, prefix: str) -> dict[str, str]:
    """Package -> dpkg's two letters, of those that it knows."""
    lines = dpkg(rootfs, "--list", f"{prefix}*").splitlines()
    return {line.split()[1].split(":")[0]: line[:2] for line in lines if re.match(r"[irhpu][a-mo-z] ", line)}


def twin(paths: Paths, sku: str, name: str, root: Path) -> Paths:
    """A project below ``root`` in which ``sku`` was built under another name, too."""
    (root / "recipes").mkdir(parents=True)
    for folder in ("device", "docs", "toolchains"):
        (root / folder).symlink_to(paths.root / folder)
    for place in (paths.root / "recipes").iterdir():
        if place.name != "skus":
            (root / "recipes" / place.name).symlink_to(place)
    shutil.copy(paths.root / "LICENSE", root)
    (root / "recipes/skus").mkdir()
    recipe = (paths.root / f"recipes/skus/{sku}.yaml").read_text()
    (root / f"recipes/skus/{name}.yaml").write_text(recipe.replace(f"name: {sku}", f"name: {name}"))
    dist = root / "dist" / name
    shutil.copytree(paths.dist(sku), dist, symlinks=True, ignore=shutil.ignore_patterns("models", "smoke.json"))
    for path in sorted(dist.glob(f"armlet-runtime-{sku}-*")):
        path.rename(path.with_name(path.name.replace(sku, name, 1)))
    for path in (dist / "runtime.json", *dist.glob("*/runtime.json")):
        made = json.loads(path.read_text())
        path.write_text(json.dumps({**made, "sku": name}))
    for tree in [path for path in dist.iterdir() if path.is_dir()]:
        write_tarball(tree, dist / f"{tree.name}.tar.xz", preset=0)
    files = sorted(path for path in dist.iterdir() if path.is_file() and path.name != "SHA256SUMS")
    (dist / "SHA256SUMS").write_text("".join(f"{digest.of_file(path)}  {path.name}\n" for path in files))
    return Paths(root=root, cache=paths.cache)


def serve(target: Target, *arguments: str) -> tuple[int, list[str]]:
    """The installed command on the target, which sees nothing but its own root file system."""
    shutil.copy(emulator(target.cpu), target.rootfs / "qemu")
    emulated = ("/qemu", "-cpu", target.cpu.qemu, "/usr/bin/python3", "/usr/bin/armlet-serve", *arguments)
    done = HostRunner().run(Command(argv=(*AS_ROOT, "chroot", str(target.rootfs), *emulated)))
    return done.code, list(done.tail)


def pretend_kernel(rootfs: Path) -> None:
    """What ONNX Runtime wants to know of the processor."""
    place = rootfs / "sys/devices/system/cpu"
    place.mkdir(parents=True)
    for name in ("possible", "present"):
        (place / name).write_text("0-3\n")
    (rootfs / "proc").mkdir(exist_ok=True)
    core = (
        "processor\t: 0",
        "CPU implementer\t: 0x41",
        "CPU architecture: 8",
        "CPU part\t: 0xd03",
        "CPU revision\t: 4",
    )
    (rootfs / "proc/cpuinfo").write_text("\n".join([*core, ""]))


def apt_would(rootfs: Path, cache: Path, *arguments: str | Path) -> list[str]:
    """What apt would do in a root file system, such as ``Inst <package>`` and ``Remv <package>``."""
    for name in ("lists/partial", "cache/archives/partial"):
        (cache / name).mkdir(parents=True, exist_ok=True)
    (arch,) = (rootfs / "var/lib/dpkg/arch").read_text().split()
    options = {
        "Dir::State::status": rootfs / "var/lib/dpkg/status",
        "Dir::State::lists": cache / "lists",
        "Dir::Cache": cache / "cache",
        "Dir::Etc::sourcelist": "/dev/null",
        "Dir::Etc::sourceparts": "/dev/null",
        "APT::Architecture": arch,
        "APT::Architectures::": arch,
        "APT::Get::AllowUnauthenticated": "true",
    }
    given = [f"--option={name}={value}" for name, value in options.items()]
    said = run("apt-get", "--simulate", *given, "install", *arguments)
    return [" ".join(line.split()[:2]) for line in said.splitlines() if line[:5] in ("Inst ", "Remv ")]
