"""The Python wheel: its headers, its platform tag, and the gates on it."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from armlet import gates
from armlet.config import resolve
from armlet.elf import read
from armlet.errors import ArmletError, Kind
from armlet.paths import Paths
from armlet.process import Command, Done
from armlet.recipes import TOOLCHAINS
from armlet.steps import python_headers
from armlet.steps.wheel import platform_tag
from tests.fakes.elf_file import FakeElf
from tests.fakes.recipes import ROOT, FakeProject
from tests.fakes.runner import FakeRunner, done

TOOLCHAIN = TOOLCHAINS.load(Paths(root=ROOT, cache=ROOT / "no-cache"), "aarch64-bookworm")
INIT = "PyInit_onnxruntime_pybind11_state"
ASKS = (("malloc", "GLIBC_2.17"), ("hypot", "GLIBC_2.35"))


def unpacks(version: str) -> FakeRunner:
    """An unpacking that leaves what Debian's ``libpython3-dev`` brings."""

    def made(command: Command) -> Done:
        include = Path(command.argv[command.argv.index("--directory") + 1], "usr/include")
        for folder, text in ((version, "#include <aarch64-linux-gnu/...>"), (f"aarch64-linux-gnu/{version}", "real")):
            (include / folder).mkdir(parents=True)
            (include / folder / "pyconfig.h").write_text(text)
        (include / version / "Python.h").write_text("")
        return done()

    return FakeRunner({"tar --extract": made})


@pytest.fixture(autouse=True)
def mirror(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARMLET_DEBIAN_MIRROR", "http://mirror.invalid/debian")


def test_headers_are_the_targets_own_and_made_once(paths: Paths) -> None:
    runner = unpacks("python3.11")
    folder = python_headers.ensure(TOOLCHAIN, paths, runner=runner)
    assert (folder / "Python.h").is_file()
    assert (folder / "pyconfig.h").read_text() == "real"
    assert "--include=libpython3-dev" in runner.commands[0].argv
    again = FakeRunner()
    assert python_headers.ensure(TOOLCHAIN, paths, runner=again) == folder
    assert again.commands == []


def test_another_python_than_the_toolchain_says_is_told(paths: Paths) -> None:
    with pytest.raises(ArmletError) as told:
        python_headers.ensure(TOOLCHAIN, paths, runner=unpacks("python3.13"))
    assert told.value.kind is Kind.INPUT
    assert "it has: python3.13" in told.value.what
    assert told.value.where == "toolchains/aarch64-bookworm.yaml"


@pytest.mark.parametrize(
    ("arch", "needed", "tag"),
    [
        ("aarch64", ("libm.so.6", "libc.so.6"), "manylinux_2_35_aarch64"),
        ("armhf", ("libc.so.6", "ld-linux-armhf.so.3"), "manylinux_2_35_armv7l"),
        ("aarch64", ("libc.so.6", "libarm_compute.so"), "linux_aarch64"),
    ],
)
def test_the_platform_tag_says_what_the_module_asks_for(arch: str, needed: tuple[str, ...], tag: str) -> None:
    module = read(FakeElf(needed=needed, asks=ASKS).build(), name="module")
    assert platform_tag(module, arch) == tag


def wheel_of(folder: Path, module: FakeElf) -> Path:
    path = folder / "onnxruntime-1.21.0-cp311-cp311-manylinux_2_35_aarch64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("onnxruntime/__init__.py", "")
        archive.writestr(gates.MODULE, module.build())
    return path


@pytest.mark.parametrize(
    ("changes", "failed"),
    [
        ({}, set()),
        ({"runpath": "$ORIGIN"}, {"rpath"}),
        ({"undefined": ("PyList_New", "onnx_missing")}, {"undefined"}),
        ({"exports": (INIT, "OrtGetApiBase")}, {"exports"}),
        ({"asks": (("malloc", "GLIBC_2.38"),)}, {"glibc"}),
    ],
)
def test_a_wheel_is_judged_like_the_library(tmp_path: Path, changes: dict[str, Any], failed: set[str]) -> None:
    resolved = resolve(FakeProject(tmp_path).paths, "demo-a53")
    name = Path(gates.MODULE).name
    module = replace(
        FakeElf(soname="", exports=(INIT,), undefined=("PyList_New",), asks=ASKS, debug_link=f"{name}.debug"), **changes
    )
    debug = [(f"lib/{name}.debug", FakeElf(symbols=("a",), debug_data=b"data").build())]
    results = gates.judge_wheel(resolved, wheel_of(tmp_path, module), debug, forbidden=())
    assert {result.name for result in results if not result.ok} == failed
    assert {result.of for result in results} == {"wheel"}
    (tmp_path / "gates.json").write_text(gates.record(results))
    assert gates.recorded(tmp_path / "gates.json") == results


def test_a_wheel_without_its_module_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("onnxruntime/__init__.py", "")
    with pytest.raises(ArmletError, match="the main library is missing"):
        gates.judge_wheel(resolve(FakeProject(tmp_path).paths, "demo-a53"), path, (), forbidden=())


def test_a_damaged_wheel_is_told(tmp_path: Path) -> None:
    path = tmp_path / "cut.whl"
    path.write_bytes(b"PK\x03\x04")
    with pytest.raises(ArmletError, match="cannot read the archive"):
        gates.judge_wheel(resolve(FakeProject(tmp_path).paths, "demo-a53"), path, (), forbidden=())
