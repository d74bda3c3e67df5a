"""Artefacts for gates: a good one, and what it takes to spoil it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from armlet.gates import Artefact, Expected, FileFacts
from armlet.gates.reading import read_artefact
from tests.fakes.elf_file import FakeElf

LIBRARY = "lib/libonnxruntime.so.1.21.0"
DEBUG = "lib/libonnxruntime.so.1.21.0.debug"

EXPECTED = Expected(
    library=LIBRARY,
    soname="libonnxruntime.so.1",
    arch="aarch64",
    needed=frozenset({"libc.so.6", "libm.so.6", "ld-linux-aarch64.so.1"}),
    exports=frozenset({"OrtGetApiBase", "OrtSessionOptionsAppendExecutionProvider_CPU"}),
    glibc="2.36",
    glibcxx=None,
    budget=1 << 20,
)
FORBIDDEN = ("/build", "/home/somebody/project")


def fake_artefact(
    library: FakeElf | None = None,
    *,
    expected: Expected = EXPECTED,
    more: Mapping[str, bytes | str] | None = None,
    debug: Mapping[str, bytes | str] | None = None,
) -> Artefact:
    """What the package step would hand to the gates: ``library`` instead of a good one, and ``more`` files."""
    files: dict[str, bytes | str] = {
        LIBRARY: (library or FakeElf()).build(),
        "lib/libonnxruntime.so.1": "libonnxruntime.so.1.21.0",
        "lib/libonnxruntime.so": "libonnxruntime.so.1",
        "include/onnxruntime/onnxruntime_c_api.h": b"#pragma once\n",
        **(more or {}),
    }
    if debug is None:
        debug = {DEBUG: FakeElf(symbols=("a",), debug_data=b"data").build()}
    return read_artefact(expected, files.items(), debug.items(), forbidden=FORBIDDEN)


def fake_armhf_artefact(*, flags: int = 0x5000400, **attributes: int) -> Artefact:
    """A good artefact for 32-bit ARM, but for what is given: ``e_flags`` and ``.ARM.attributes``."""
    tags: dict[str, int | str] = {"TAG_ABI_VFP_ARGS": 1, "TAG_ADVANCED_SIMD_ARCH": 2, **attributes}

    def converted(files: Mapping[str, FileFacts]) -> dict[str, FileFacts]:
        return {
            path: facts
            if facts.elf is None
            else replace(facts, elf=replace(facts.elf, machine="EM_ARM", bits=32, flags=flags, arm_attributes=tags))
            for path, facts in files.items()
        }

    good = fake_artefact(expected=replace(EXPECTED, arch="armhf"))
    return replace(good, files=converted(good.files), debug=converted(good.debug))
