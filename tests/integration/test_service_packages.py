"""The service as it ships: what is where, the same bytes twice, and that it runs from there."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from armlet_runtime import __version__
from armlet_runtime.serve.config import DeviceConfig, load

from armlet.nfpm import PackageFormat
from armlet.packages.texts import runtime_scripts
from armlet.paths import Paths
from armlet.service.package import Format, package
from armlet.service.scripts import SCRIPTS
from tests.conftest import ROOT
from tests.package_files import files, members

PRIVATE, DEBIAN = "usr/lib/armlet/python", "usr/lib/python3/dist-packages"
COMMON = {
    "usr/bin/armlet-serve": 0o755,
    "usr/lib/systemd/system/armlet-serve.service": 0o644,
    "etc/armlet/device.conf": 0o644,
    "usr/share/doc/armlet-serve/copyright": 0o644,
}
PLACES: dict[PackageFormat, dict[str, int]] = {
    "deb": {
        **COMMON,
        f"{DEBIAN}/armlet_runtime/serve/worker.py": 0o644,
        f"{DEBIAN}/armlet_runtime/py.typed": 0o644,
        "usr/share/doc/armlet-serve/examples/S90armlet-serve": 0o755,
    },
    "ipk": {
        **COMMON,
        f"{PRIVATE}/armlet_runtime/serve/worker.py": 0o644,
        "etc/init.d/S90armlet-serve": 0o755,
        "etc/init.d/armlet-serve": 0o755,
    },
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[Format, Path]:
    return package(Paths.of(ROOT), tmp_path_factory.mktemp("out"))


@pytest.mark.parametrize("kind", PLACES)
def test_what_is_in_a_package(kind: PackageFormat, made: dict[Format, Path]) -> None:
    parts = members(made[kind].read_bytes())
    inside = {name.removeprefix("./"): value for name, value in files(parts["data.tar.gz"]).items()}
    assert {name: inside[name][1].mode for name in PLACES[kind]} == PLACES[kind]
    assert not [name for name in inside if "__pycache__" in name or name.endswith(".pyc")]
    sources = {path.name for path in (ROOT / "device/armlet_runtime").rglob("*.py")}
    assert {Path(name).name for name in inside if "/armlet_runtime/" in name} == {*sources, "py.typed"}
    assert all((info.uid, info.gid) == (0, 0) for _, info in inside.values())
    control = {name.removeprefix("./"): content for name, (content, _) in files(parts["control.tar.gz"]).items()}
    assert control["conffiles"] == b"/etc/armlet/device.conf\n"
    assert control.keys() <= {"control", "conffiles", "md5sums", "postinst", "prerm", "postrm", "triggers"}
    assert f"Version: {__version__}" in control["control"].decode().splitlines()


OFFLINE = {"deb": ("DPKG_ROOT",), "ipk": ("IPKG_INSTROOT", "D")}
CALLS = {"postinstall": ("configure",), "preremove": ("remove",), "postremove": ("remove",)}


@pytest.mark.parametrize(("kind", "variable"), [(kind, name) for kind, names in OFFLINE.items() for name in names])
def test_scripts_touch_nothing_of_the_machine_that_makes_a_rootfs(
    kind: PackageFormat, variable: str, tmp_path: Path
) -> None:
    calls = tmp_path / "calls"
    for name in ("systemctl", "deb-systemd-invoke", "py3compile", "py3clean", "update-rc.d", "rm"):
        stub = tmp_path / "bin" / name
        stub.parent.mkdir(exist_ok=True)
        stub.write_text(f'#!/bin/sh\necho "{name} $*" >>{calls}\n')
        stub.chmod(0o755)
    for name, arguments in CALLS.items():
        script = ("/bin/sh", "-c", SCRIPTS[kind][name], name, *arguments)
        done = subprocess.run(script, env={"PATH": str(tmp_path / "bin"), variable: "/elsewhere"}, check=False)
        assert done.returncode == 0, name
    assert not calls.exists(), calls.read_text()


# (whether it is an upgrade, whether it is enabled) -> what OpenWrt's script is asked for by postinst and prerm.
ON_OPENWRT = {
    ("0", True): ["enable", "enabled", "restart", "disable", "stop"],
    ("1", True): ["enabled", "restart", "stop"],
    ("1", False): ["enabled", "stop"],
}


@pytest.mark.parametrize(("upgrade", "enabled"), ON_OPENWRT)
def test_openwrt_starts_it_with_the_device_unless_somebody_disabled_it(
    upgrade: str, enabled: bool, tmp_path: Path
) -> None:
    calls, init = tmp_path / "calls", tmp_path / "etc/init.d/armlet-serve"
    init.parent.mkdir(parents=True)
    init.write_text(f'#!/bin/sh\necho "$1" >>{calls}\n[ "$1" != enabled ] || exit {int(not enabled)}\n')
    init.chmod(0o755)
    (tmp_path / "etc/rc.common").touch()
    for name in ("postinstall", "preremove"):
        here = SCRIPTS["ipk"][name].replace("/run/", f"{tmp_path}/run/").replace("/etc/", f"{tmp_path}/etc/")
        environment = {"PATH": os.environ["PATH"], "PKG_UPGRADE": upgrade}
        subprocess.run(("/bin/sh", "-c", here), env=environment, check=True)
    assert calls.read_text().split() == ON_OPENWRT[upgrade, enabled]


@pytest.mark.parametrize("kind", SCRIPTS)
def test_scripts_are_clean(kind: PackageFormat, tmp_path: Path) -> None:
    shellcheck = Path(sys.executable).with_name("shellcheck")
    for name, text in {**SCRIPTS[kind], **runtime_scripts(kind)}.items():
        (tmp_path / name).write_text(text)
        subprocess.run((shellcheck, "--shell=sh", tmp_path / name), check=True)


def test_the_same_bytes_from_another_place(made: dict[Format, Path], tmp_path: Path) -> None:
    elsewhere = tmp_path / "another place"
    for name in ("device", "docs"):
        shutil.copytree(ROOT / name, elsewhere / name)
    shutil.copy(ROOT / "LICENSE", elsewhere)
    for path in (elsewhere / "device").rglob("*.py"):
        path.touch()
        path.chmod(0o600)
    again = package(Paths.of(elsewhere), tmp_path / "out")
    for kind in ("deb", "ipk", "rpm", "apk", "wheel"):
        assert again[kind].name == made[kind].name
        assert again[kind].read_bytes() == made[kind].read_bytes(), kind


def told(*command: str | Path, **environment: str) -> str:
    """What a command prints."""
    environment = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", **environment}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


def test_the_wheel_installs_the_command(made: dict[Format, Path], tmp_path: Path) -> None:
    install = ("-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-warn-script-location")
    told(sys.executable, *install, "--target", tmp_path, made["wheel"])
    assert told(tmp_path / "bin/armlet-serve", "--version", PYTHONPATH=str(tmp_path)) == f"armlet-serve {__version__}\n"


def test_the_folder_is_the_package_for_devices(made: dict[Format, Path]) -> None:
    parts = members(made["ipk"].read_bytes())
    packed = {
        name.removeprefix("./"): (content, info.mode) for name, (content, info) in files(parts["data.tar.gz"]).items()
    }
    del packed["usr/share/doc/armlet-serve/changelog.gz"]
    found = {
        path.relative_to(made["folder"]).as_posix(): (path.read_bytes(), path.stat().st_mode & 0o777)
        for path in made["folder"].rglob("*")
        if path.is_file()
    }
    assert found == packed
    assert (made["folder"] / "etc/armlet/keys").is_dir()


def test_the_file_that_comes_with_it_changes_nothing(made: dict[Format, Path]) -> None:
    config, problems, in_doubt = load(made["folder"] / "etc/armlet/device.conf")
    assert (problems, in_doubt) == ([], frozenset())
    assert dataclasses.replace(config, lines={}, key_lines={}, name="device.conf") == DeviceConfig()


def test_pages_name_no_file_that_is_not_there(made: dict[Format, Path]) -> None:
    pages = {path.name: path.read_text() for path in (made["folder"] / "usr/share/doc/armlet-serve").glob("*.md")}
    assert {"service.md", "service-api.md", "payloads.md", "contract.md"} == set(pages)
    links = {link for text in pages.values() for link in re.findall(r"\]\(([^)#]+)", text)}
    assert {link for link in links if not link.startswith("http")} <= set(pages)
    assert "](service-api.md#limits)" in pages["service.md"]
    assert "(importing)" in pages["payloads.md"]
