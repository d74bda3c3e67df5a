"""A project folder with the real recipes and a small source set, to be spoilt at will."""

from __future__ import annotations

import shutil
from pathlib import Path

from armlet.paths import Paths

ROOT = Path(__file__).resolve().parents[2]

FAKE_SOURCE_SET = """\
schema: 1
name: onnxruntime-1.21.0
version: "1.21.0"
ort_format: [4, 6]
onnx_ir_max: 10
cpython: ["3.10", "3.13"]
opsets:
  ai.onnx: 22
  ai.onnx.ml: 4
  com.microsoft: 1
components:
  - name: onnxruntime
    version: "1.21.0"
    licence: MIT
    sha256: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
    size: 1
    debian: pool/main/o/onnxruntime/onnxruntime_1.21.0.orig.tar.xz
    patches:
      - clamp.patch
      - onnxruntime:cmake/patches/other.patch
"""


class FakeProject:
    """The files that resolving ``demo-a53`` reads, below a folder of one's own."""

    sku_file = "recipes/skus/demo-a53.yaml"
    toolchain_file = "toolchains/aarch64-bookworm.yaml"
    source_set_file = "recipes/sources/onnxruntime-1.21.0.yaml"
    patch = b"--- a/x\n+++ b/x\n"

    def __init__(self, root: Path) -> None:
        self.root = root
        self.paths = Paths(root=root, cache=root / "cache")
        for file in (self.sku_file, self.toolchain_file, "recipes/operators/onnxruntime-1.21.0.json"):
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / file, root / file)
        for folder in ("recipes/sources", "recipes/patches/1.21.0"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        (root / self.source_set_file).write_text(FAKE_SOURCE_SET, encoding="utf-8")
        (root / "recipes/patches/1.21.0/clamp.patch").write_bytes(self.patch)

    def text(self, file: str) -> str:
        return (self.root / file).read_text(encoding="utf-8")

    def write(self, file: str, text: str) -> None:
        (self.root / file).write_text(text, encoding="utf-8")

    def change(self, file: str, old: str, new: str) -> int:
        """Replaces the first ``old`` and returns the line it begins in."""
        text = self.text(file)
        assert old in text, old
        self.write(file, text.replace(old, new, 1))
        return text[: text.index(old)].count("\n") + 1
