"""The C++ example: built in the toolchain image against what -dev installs, by CMake and by pkg-config, and run on the
target."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest

from armlet.config import Resolved, resolve
from armlet.engine import Engine, Mount
from armlet.events import silent
from armlet.packages.runtime import Options, package
from armlet.payload.pack import pack
from armlet.payload.wish import Delivery
from armlet.process import Command, Runner
from armlet.qemu.run import Target
from armlet.steps import image
from tests.conftest import ROOT
from tests.emulated import PATHS, built, converted, emulator
from tests.installed import run
from tests.smoked import REAL

pytestmark = REAL
EXAMPLE = ROOT / "examples/cpp"
# The root file system of the tests has no libstdc++.
INSIDE = "-static-libstdc++ -static-libgcc"


def by_cmake(runner: Runner, resolved: Resolved, _root: Path) -> None:
    triple = resolved.toolchain.triple
    settings = {
        "CMAKE_SYSTEM_NAME": "Linux",
        "CMAKE_SYSTEM_PROCESSOR": triple.split("-")[0],
        "CMAKE_CXX_COMPILER": f"{triple}-g++",
        "CMAKE_FIND_ROOT_PATH": "/work/root",
        "CMAKE_FIND_ROOT_PATH_MODE_PACKAGE": "ONLY",
        "CMAKE_EXE_LINKER_FLAGS": INSIDE,
    }
    defined = (f"-D{name}={value}" for name, value in settings.items())
    do(runner, "cmake", "-G", "Ninja", "-S", "/example", "-B", "/work/cmake", *defined)
    do(runner, "cmake", "--build", "/work/cmake")


def by_pkg_config(runner: Runner, resolved: Resolved, root: Path) -> None:
    (folder,) = root.glob("usr/lib/*/pkgconfig")
    asked = ("pkg-config", "--cflags", "--libs", "libonnxruntime")
    flags = shlex.split(run(*asked, PKG_CONFIG_LIBDIR=str(folder), PKG_CONFIG_SYSROOT_DIR="/work/root"))
    (libraries,) = (f"/work/root/usr/lib/{path.name}" for path in root.glob("usr/lib/*-linux-*"))
    assert flags == ["-I/work/root/usr/include/onnxruntime", f"-L{libraries}", "-lonnxruntime"]
    do(runner, "mkdir", "/work/pkg-config")
    compiler = f"{resolved.toolchain.triple}-g++"
    out = ("-std=c++17", *INSIDE.split(), "-o", "/work/pkg-config/run_model", "/example/run_model.cc")
    do(runner, compiler, *out, *flags)


def do(runner: Runner, *argv: str) -> None:
    done = runner.run(Command(argv=argv))
    assert done.code == 0, done.output


WAYS: dict[str, Callable[[Runner, Resolved, Path], None]] = {"cmake": by_cmake, "pkg-config": by_pkg_config}


@pytest.mark.parametrize("sku", ["demo-a53", pytest.param("demo-a7", marks=pytest.mark.heavy)])
def test_a_program_of_ones_own_gets_the_right_answer(sku: str, tmp_path: Path) -> None:
    target, _ = built(sku)
    resolved = resolve(PATHS, sku)
    work = tmp_path / "work"
    root = work / "root"
    root.mkdir(parents=True)
    made = {one.what: one.path for one in package(PATHS, sku, tmp_path / "out", Options(formats=("deb",)))}
    for part in ("runtime", "dev"):
        run("dpkg-deb", "--extract", made[part], root)
    model, said, _ = converted(sku, tmp_path)
    payload = pack(model, said, signer=None, delivery=Delivery(out=tmp_path / "out", formats=("folder",)))
    folder = payload.files["folder"]
    (case, *_) = json.loads((folder / "payload.json").read_text())["golden"]
    wanted = numpy.fromfile(folder / case["outputs"][0]["file"], dtype=numpy.float32)

    engine = Engine.connect()
    found = image.ensure(toolchain=resolved.toolchain, paths=PATHS, engine=engine, emit=silent)
    mounts = (Mount(source=EXAMPLE, target="/example", read_only=True), Mount(source=work, target="/work"))
    with engine.container(image=found.tag, mounts=mounts, name="armlet-example") as runner:
        for build in WAYS.values():
            build(runner, resolved, root)
    for way in WAYS:
        got = answer(target, work / way / "run_model", root, model, folder / case["inputs"][0]["file"])
        assert numpy.allclose(got, wanted, atol=case["atol"], rtol=case["rtol"]), way


def answer(target: Target, program: Path, root: Path, model: Path, data: Path) -> numpy.ndarray:
    """What the program prints, with the installed library."""
    (libraries,) = root.glob("usr/lib/*-linux-*")
    emulated = (emulator(target.cpu), "-cpu", target.cpu.qemu, "-L", target.rootfs, program, model, data)
    return numpy.array(run(*emulated, LD_LIBRARY_PATH=str(libraries)).split(), dtype=numpy.float32)
