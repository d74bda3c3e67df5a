"""A dist folder as a build leaves it, with a library written by hand."""

from __future__ import annotations

import shutil
from pathlib import Path

from armlet import digest, manifest
from armlet.config import resolve
from armlet.gates import expected_of
from armlet.gates.reading import read_artefact, tree
from armlet.paths import Paths
from armlet.reproducible import EPOCH
from armlet.sbom import cyclonedx, spdx
from armlet.sbom.bill import CYCLONEDX, SPDX, Bill, Part
from armlet.steps.archive import write_tarball
from tests.fakes.elf_file import FakeElf
from tests.fakes.recipes import ROOT, FakeProject

SKU = "demo-a53"
LICENCE = "MIT AND MPL-2.0 AND Apache-2.0 AND MIT"
"""Of what is in the library, as the link has measured it."""
NAME = f"armlet-runtime-{SKU}-1.21.0-aarch64-linux-gnu"


def fake_built(root: Path, library: FakeElf | None = None) -> Paths:
    """A project in which ``demo-a53`` is built."""
    project = FakeProject(root)
    for name in ("device", "docs"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "LICENSE", root)
    dist = project.paths.dist(SKU)
    folder, debug = dist / NAME, root / f"{NAME}-dbg"
    elf = library or FakeElf()
    files = {
        folder / "lib/libonnxruntime.so.1.21.0": elf.build(),
        folder / "include/onnxruntime/onnxruntime_c_api.h": b"#pragma once\n",
        folder / "lib/pkgconfig/libonnxruntime.pc": b"Name: onnxruntime\n",
        folder / "lib/cmake/onnxruntime/onnxruntimeConfig.cmake": b"# Relocatable\n",
        folder / "share/doc/armlet-runtime/licences/onnxruntime/LICENSE": b"MIT License\n\nCopyright (c) Somebody\n",
        folder / "share/doc/armlet-runtime/NOTICE": b"Somebody's code is in it.\n",
        debug / "lib/libonnxruntime.so.1.21.0.debug": elf.build(),
    }
    for path, data in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (folder / "lib/libonnxruntime.so.1").symlink_to("libonnxruntime.so.1.21.0")
    (folder / "lib/libonnxruntime.so").symlink_to("libonnxruntime.so.1")
    resolved = resolve(project.paths, SKU)
    artefact = read_artefact(expected_of(resolved), tree(folder), tree(debug), forbidden=())
    made = manifest.assemble(
        resolved, artefact, build_id="b" * 64, kernel="3.7.0", operators={}, image="sha256:1", compiler="gcc 12"
    )
    for path in (folder / manifest.FILE, dist / manifest.FILE):
        path.write_text(manifest.render(made))
    for name, text in _bills().items():
        (dist / name).write_text(text)
    write_tarball(folder, dist / f"{NAME}.tar.xz")
    write_tarball(debug, dist / f"{NAME}-dbg.tar.xz")
    shutil.rmtree(debug)
    sums = sorted(path for path in dist.iterdir() if path.is_file())
    (dist / "SHA256SUMS").write_text("".join(f"{digest.of_file(path)}  {path.name}\n" for path in sums))
    return project.paths


def _bills() -> dict[str, str]:
    bill = Bill(
        name=f"armlet-runtime-{SKU}",
        version="1.21.0",
        kind="library",
        licence=LICENCE,
        description="What ships",
        facts={},
        parts=(
            Part(name="onnxruntime", version="1.21.0", role="linked", licence="MIT"),
            Part(name="boost", version="1.83.0", role="build", licence="BSL-1.0"),
        ),
        files=(),
        created=EPOCH,
    )
    return {CYCLONEDX: cyclonedx.text(bill), SPDX: spdx.text(bill)}
