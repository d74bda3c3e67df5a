"""Every toolchain's image: the compiler knows every core's flags, the C library is the floor, the tools are there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest

from armlet.emit.cmake import protoc
from armlet.engine import Engine
from armlet.events import silent
from armlet.paths import Paths
from armlet.process import Command, Runner
from armlet.recipes import TOOLCHAINS
from armlet.spec.cpu import CPUS
from armlet.spec.toolchain import Toolchain
from armlet.steps import image
from armlet.steps.image import ImageInfo
from tests.conftest import ROOT

pytestmark = [pytest.mark.heavy, pytest.mark.docker, pytest.mark.timeout(1800)]

PATHS = Paths.of(ROOT)
TMP = PurePosixPath("/tmp")

Inside = tuple[Toolchain, ImageInfo, Runner]


@pytest.fixture(scope="module", params=TOOLCHAINS.names(PATHS))
def inside(request: pytest.FixtureRequest) -> Iterator[Inside]:
    toolchain, engine = TOOLCHAINS.load(PATHS, request.param), Engine.connect()
    info = image.ensure(toolchain=toolchain, paths=PATHS, engine=engine, emit=silent)
    with engine.container(image=info.tag, name="armlet-test-toolchain") as runner:
        yield toolchain, info, runner


def said(runner: Runner, *argv: str) -> str:
    done = runner.run(Command(argv=argv, cwd=TMP))
    assert done.code == 0, done.output
    return done.output


def test_the_compiler_knows_the_flags_of_every_core(inside: Inside) -> None:
    toolchain, _, runner = inside
    for cpu in (cpu for cpu in CPUS.values() if cpu.arch == toolchain.arch):
        said(runner, f"{toolchain.triple}-g++", *cpu.flags, "-Werror", "-x", "c++", "-c", "/dev/null", "-o", "/tmp/a.o")


def test_the_floor_is_the_c_librarys_version(inside: Inside) -> None:
    toolchain, info, _ = inside
    version = info.packages[f"libc6-{toolchain.debian_arch}-cross"]
    assert version.startswith(f"{toolchain.floors.glibc}-")


def test_the_tools_have_the_versions_that_the_build_asks_for(inside: Inside) -> None:
    toolchain, _, runner = inside
    assert said(runner, protoc(toolchain), "--version").startswith("libprotoc 3.21.")
    assert "version 3.31." in said(runner, "cmake", "--version")
    said(runner, "python3", "-c", "import flatbuffers")
