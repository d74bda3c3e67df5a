"""The packages in the target's root file system: installed by dpkg, unpacked as opkg does, and run there."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from armlet_runtime import __version__

from armlet import manifest
from armlet.errors import Kind
from armlet.paths import Paths
from armlet.payload.keys import load_signer, new_key
from armlet.payload.pack import pack
from armlet.payload.wish import Delivery
from armlet.process import Command, HostRunner, checked
from armlet.qemu.run import Target
from armlet.service.package import package
from tests.conftest import ROOT
from tests.emulated import built, converted, emulator
from tests.package_files import members
from tests.smoked import REAL

pytestmark = REAL
SKUS = ("demo-a53", "demo-a7")
AS_ROOT = () if os.geteuid() == 0 else ("unshare", "--map-root-user")


def run(*argv: str | Path, **environment: str) -> str:
    """What a command prints; it has to succeed."""
    command = Command(argv=tuple(map(str, argv)), env=environment)
    return checked(HostRunner(), command, what=str(argv[0]), kind=Kind.TARGET).output


def install(rootfs: Path, packages: Sequence[Path]) -> None:
    """By dpkg, as for a rootfs of another processor: nothing of it runs."""
    # The root file system has the modules of python3, and not the package that asks for them all.
    run(*AS_ROOT, "dpkg", f"--root={rootfs}", "--force-depends", "--force-unsafe-io", "--install", *packages)


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


def copied(target: Target, folder: Path) -> Target:
    """With a root file system that a test may write to."""
    copy = folder / "rootfs"
    run("cp", "--archive", "--reflink=auto", target.rootfs, copy)
    return Target(rootfs=copy, cpu=target.cpu)


@pytest.mark.parametrize("sku", SKUS)
def test_debs_make_a_device_that_serves_its_model(sku: str, tmp_path: Path) -> None:
    target, runtime = built(sku)
    target = copied(target, tmp_path)
    made = package(Paths.of(ROOT), tmp_path / "out", ("deb",))
    model, said, _ = converted(sku, tmp_path)
    key = new_key("release", tmp_path)
    signer = load_signer(key.private, lambda: "")
    payload = pack(model, said, signer=signer, delivery=Delivery(out=tmp_path / "out", formats=("deb",)))
    install(target.rootfs, [made["deb"], payload.files["deb"]])
    assert serve(target, "--version") == (0, [f"armlet-serve {__version__}"])

    code, problems = serve(target, "--check")
    assert (code, len(problems)) == (2, 3), "neither keys, runtime.json nor library are there yet"
    shutil.copy(key.public, target.rootfs / "etc/armlet/keys")
    (target.rootfs / "usr/share/armlet").mkdir()
    (target.rootfs / "usr/share/armlet/runtime.json").write_bytes(manifest.render(runtime.manifest).encode())
    code, problems = serve(target, "--check")
    assert (code, len(problems)) == (2, 1), "nor the library"
    shutil.copy(runtime.library, target.rootfs / "usr/lib/libonnxruntime.so.1")
    code, problems = serve(target, "--check")
    # Nor what the kernel tells of the processor: the 64-bit library ends its process.
    assert (code, "SIGABRT" in "".join(problems[-1:])) == ((2, True) if target.cpu.arch == "aarch64" else (0, False))
    pretend_kernel(target.rootfs)
    code, (line,) = serve(target, "--check")
    assert (code, line.partition(" ")[0], "providers=xnnpack,cpu" in line) == (0, said.name, True)

    # An update leaves what was changed on the device, and takes away what is no longer in the package.
    conf = target.rootfs / "etc/armlet/device.conf"
    conf.write_text("[models]\nqueue = 0\n")
    install(target.rootfs, [made["deb"]])
    code, problems = serve(target, "--check")
    assert (code, problems) == (2, ['/etc/armlet/device.conf:2: queue is "0"; wanted: a whole number from 1 to 65536'])


def test_the_ipk_needs_no_folder_of_a_distribution(tmp_path: Path) -> None:
    target = copied(built("demo-a53")[0], tmp_path)
    made = package(Paths.of(ROOT), tmp_path / "out", ("ipk",))
    with tarfile.open(fileobj=io.BytesIO(members(made["ipk"].read_bytes())["data.tar.gz"])) as archive:
        archive.extractall(target.rootfs, filter="data")
    assert serve(target, "--version") == (0, [f"armlet-serve {__version__}"])
    assert not (target.rootfs / "usr/lib/python3/dist-packages/armlet_runtime").exists()
