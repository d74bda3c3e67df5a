"""What distributions' own tools, which Debian has as packages, say of ours: lintian of debs, rpm of rpms."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from armlet.packages.runtime import Made, Options, package
from tests.emulated import PATHS, built
from tests.smoked import HEAVY

pytestmark = HEAVY


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[Made]:
    for program in ("lintian", "rpm"):
        assert shutil.which(program), f"apt-get install --no-install-recommends {program}"
    built("demo-a53")
    options = Options(formats=("deb", "rpm"), maintainer="Armlet's tests <armlet@lists.debian.org>")
    return package(PATHS, "demo-a53", tmp_path_factory.mktemp("out"), options)


def told(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout


def test_lintian_has_nothing_to_say(made: list[Made]) -> None:
    debs = [one.path for one in made if one.path.suffix == ".deb"]
    assert told("lintian", "--allow-root", "--fail-on", "error,warning", "--tag-display-limit", "0", *debs) == ""


def test_rpm_reads_what_is_in_it_and_what_it_needs(made: list[Made]) -> None:
    rpms = [one.path for one in made if one.path.suffix == ".rpm"]
    assert told("rpm", "--checksig", "--nosignature", *rpms).count("digests OK") == len(rpms) == 4
    (runtime,) = (one.path for one in made if one.what == "runtime" and one.path.suffix == ".rpm")
    needed = told("rpm", "--query", "--package", "--requires", runtime).split("\n")
    assert {"libc.so.6(GLIBC_2.35)(64bit)", "libm.so.6()(64bit)"} <= {*needed}
    assert "/usr/lib64/libonnxruntime.so.1" in told("rpm", "--query", "--package", "--list", runtime).split("\n")


def test_rpm_installs_replaces_and_erases(made: list[Made], tmp_path: Path) -> None:
    """Into an empty folder, so without its C library and without running anything."""
    options = Options(formats=("rpm",), revision=2)
    second = {one.what: one.path for one in package(PATHS, "demo-a53", tmp_path / "second", options)}
    first = {one.what: one.path for one in made if one.path.suffix == ".rpm"}
    root = tmp_path / "root"
    root.mkdir()

    def rpm(*arguments: str | Path) -> list[str]:
        return told("rpm", "--root", root, "--dbpath", "/rpmdb", *arguments).split()

    unpacked = ("--ignorearch", "--nodeps", "--noscripts")
    rpm("--install", *unpacked, first["runtime"], first["dev"], first["service"])
    assert (root / "usr/lib64/libonnxruntime.so").resolve().name == "libonnxruntime.so.1.21.0"
    conf = root / "etc/armlet/device.conf"
    conf.write_text("[models]\ncores = 1\n")
    rpm("--upgrade", *unpacked, second["runtime"], second["dev"])
    found = [line for line in rpm("--query", "--all") if line.startswith("armlet-runtime-demo-a53-1")]
    assert found == ["armlet-runtime-demo-a53-1.21.0-2.aarch64"]
    rpm("--upgrade", "--oldpackage", *unpacked, first["runtime"], first["dev"])
    names = ("armlet-runtime-demo-a53", "armlet-runtime-demo-a53-devel", "armlet-serve")
    rpm("--erase", "--nodeps", "--noscripts", *names)
    assert not (root / "usr/share/armlet/runtime.json").exists()
    assert not conf.exists()
    assert conf.with_name("device.conf.rpmsave").read_text() == "[models]\ncores = 1\n"


@pytest.mark.parametrize(
    ("one", "other"), [("1.21.0-1", "1.21.0-2"), ("1.21.0-9", "1.21.0-10"), ("1.21.0-10", "1.21.1-1")]
)
def test_rpm_orders_revisions(one: str, other: str) -> None:
    assert told("rpm", "--eval", f'%{{lua: print(rpm.vercmp("{one}", "{other}"))}}').strip() == "-1"
