"""SKUs for an old rootfs, whose floor chose the toolchain: built for real, and run on that rootfs."""

from __future__ import annotations

from pathlib import Path

import pytest

from armlet import pipeline
from armlet.config import resolve
from armlet.events import silent
from armlet.manifest import read_manifest
from armlet.paths import Paths
from armlet.qemu.smoke import smoke
from armlet.spec.base import version_key
from tests.smoked import HEAVY

pytestmark = HEAVY


@pytest.mark.parametrize(("sku", "toolchain"), [("legacy-a7", "armhf-bullseye"), ("gateway-a72", "aarch64-bullseye")])
def test_it_runs_on_the_rootfs_of_its_floor(root: Path, sku: str, toolchain: str) -> None:
    paths = Paths.of(root)
    assert resolve(paths, sku).toolchain.name == toolchain
    built = pipeline.build(paths, sku, silent)
    assert [gate.name for gate in built.gates if not gate.ok] == []
    manifest = read_manifest(built.dist / "runtime.json")
    assert version_key(manifest.requires.glibc) <= version_key("2.31")
    report = smoke(paths, sku)
    assert report.rootfs.startswith("Debian bullseye ")
    assert report.failed == ()
