"""The service's ipk in the target's root file system, unpacked as opkg does, and run there."""

from __future__ import annotations

import io
import shutil
import tarfile
from pathlib import Path

from armlet_runtime import __version__

from armlet.paths import Paths
from armlet.qemu.run import Target
from armlet.service.package import package
from tests.conftest import ROOT
from tests.emulated import built
from tests.installed import serve
from tests.package_files import members
from tests.smoked import REAL

pytestmark = REAL


def test_the_ipk_needs_no_folder_of_a_distribution(tmp_path: Path) -> None:
    found, _ = built("demo-a53")
    target = Target(rootfs=tmp_path / "rootfs", cpu=found.cpu)
    shutil.copytree(found.rootfs, target.rootfs, symlinks=True)
    made = package(Paths.of(ROOT), tmp_path / "out", ("ipk",))
    with tarfile.open(fileobj=io.BytesIO(members(made["ipk"].read_bytes())["data.tar.gz"])) as archive:
        archive.extractall(target.rootfs, filter="data")
    assert serve(target, "--version") == (0, [f"armlet-serve {__version__}"])
    assert not (target.rootfs / "usr/lib/python3/dist-packages/armlet_runtime").exists()
