"""The surroundings of the two builds of ``build --twice``, with a small CMake project in place of ONNX Runtime."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

import pytest

from armlet import compare, lines, twice
from armlet.config import resolve
from armlet.emit import cmake
from armlet.engine import Engine, Mount
from armlet.events import silent
from armlet.paths import Paths
from armlet.process import Command
from armlet.reproducible import EPOCH
from armlet.steps import image
from tests.conftest import ROOT

pytestmark = pytest.mark.docker

_PROJECT = """
cmake_minimum_required(VERSION 3.20)
project(tiny C CXX ASM)
add_library(tiny SHARED tiny.cc start.S)
target_compile_definitions(tiny PRIVATE "FLAGS=\\"${LEAKED}\\"")
target_compile_options(tiny PRIVATE -g1)
"""
_HEADERS = {
    "gives_code.h": "inline int given(int n) { return n * 3 + 1; }\n",
    "gives_types.h": "struct Given { int number; };\n",
    "gives_nothing.h": "static inline int __attribute__((noinline, used)) unused_here(int n) { return n + 4; }\n",
}
_SOURCE = """
#include <cassert>
#include <vector>
#include <string>
#include "gives_code.h"
#include "gives_types.h"
#include "gives_nothing.h"
extern "C" int give(const Given& g) { return given(g.number); }
namespace { struct Hidden { std::vector<std::string> all; }; }
extern "C" const char* flags() { return FLAGS; }
extern "C" const char* place(int n) { assert(n > 0); Hidden h; h.all.resize(n); return h.all.empty() ? "" : __FILE__; }
"""
_ASSEMBLER = ".text\n.global tiny_start\ntiny_start:\n  nop\n"


def built(folder: Path, one: twice.Pass, leaked: str) -> Path:
    """The library's folder."""
    resolved = resolve(Paths.of(ROOT), "demo-a53")
    source, build = folder / "source", folder / "build"
    source.mkdir(parents=True)
    build.mkdir()
    for name, text in (("CMakeLists.txt", _PROJECT), ("tiny.cc", _SOURCE), ("start.S", _ASSEMBLER), *_HEADERS.items()):
        (source / name).write_text(text)
    (build / "toolchain.cmake").write_text(cmake.toolchain_file(resolved))
    engine = Engine.connect(one.surroundings)
    info = image.ensure(toolchain=resolved.toolchain, paths=Paths.of(ROOT), engine=engine, emit=silent)
    known = cmake.definitions(resolved)
    flags = {
        name: known[name]
        for name in (
            "CMAKE_C_FLAGS",
            "CMAKE_CXX_FLAGS",
            "CMAKE_ASM_FLAGS",
            "CMAKE_BUILD_TYPE",
            "CMAKE_SHARED_LINKER_FLAGS",
        )
    }
    definitions = {**flags, "CMAKE_TOOLCHAIN_FILE": f"{cmake.BUILD}/toolchain.cmake", "LEAKED": leaked}
    mounts = [
        Mount(source=source, target=cmake.SOURCES, read_only=True),
        Mount(source=build, target=cmake.BUILD),
    ]
    with engine.container(image=info.tag, mounts=mounts, name="armlet-test-twice", workdir=cmake.BUILD) as runner:
        for argv in (
            (
                "cmake",
                "-G",
                "Ninja",
                "-S",
                cmake.SOURCES,
                "-B",
                cmake.BUILD,
                *(f"-D{k}={v}" for k, v in definitions.items()),
            ),
            ("ninja", "-j", str(one.jobs)),
            ("sh", "-c", f"pwd >{cmake.BUILD}/place; umask >>place; hostname >>place; date +%z >>place; id -u >>place"),
        ):
            env = {"SOURCE_DATE_EPOCH": str(EPOCH)}
            done = runner.run(Command(argv=argv, env=env, cwd=PurePosixPath(cmake.BUILD)))
            assert done.code == 0, done.tail
    (build / "out").mkdir(exist_ok=True)
    (build / "libtiny.so").rename(build / "out/libtiny.so")
    return build


@pytest.fixture(scope="module")
def chosen() -> tuple[twice.Pass, twice.Pass]:
    return twice.passes(2, 8 << 30, None, root=os.geteuid() == 0)


def test_both_builds_differ_in_all_around_them_and_in_no_byte(
    tmp_path: Path, chosen: tuple[twice.Pass, twice.Pass]
) -> None:
    first, second = (built(tmp_path / name, one, "none") for name, one in zip("ab", chosen, strict=True))
    said = [(build / "place").read_text().split() for build in (first, second)]
    assert all(mine != other for mine, other in zip(*said, strict=True)), said
    assert not compare.folders(first / "out", second / "out")


def test_a_path_that_leaks_is_found_and_named(tmp_path: Path, chosen: tuple[twice.Pass, twice.Pass]) -> None:
    first, second = (built(tmp_path / name, one, " /build/x") for name, one in zip("ab", chosen, strict=True))
    found = compare.folders(first / "out", second / "out")
    assert any(one.path == "libtiny.so > .rodata" and chosen[1].surroundings.view.prefix in one.what for one in found)


def test_line_tables_tell_whose_code_is_in_a_library(tmp_path: Path, chosen: tuple[twice.Pass, twice.Pass]) -> None:
    """Of two header libraries, one gives code, the other a type; a function that nobody calls is left out."""
    build = built(tmp_path, chosen[0], "none")
    found = lines.sources((build / "out/libtiny.so").read_bytes())
    assert {path for path in found if path.startswith("/usr/src/armlet/")} == {
        "/usr/src/armlet/tiny.cc",
        "/usr/src/armlet/start.S",
        "/usr/src/armlet/gives_code.h",
    }
    assert any("/c++/" in path for path in found)


@pytest.mark.heavy
@pytest.mark.build
@pytest.mark.timeout(6 * 3600)
@pytest.mark.parametrize("sku", ["demo-a53", "demo-a7"])
def test_two_builds_from_nothing_give_the_same_bytes(sku: str) -> None:
    report = twice.build(Paths.of(ROOT), sku, silent)
    assert report.differences == ()
    assert report.files > 20
