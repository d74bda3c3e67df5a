"""A runtime's packages in the target's root file system: dpkg installs, replaces and removes them, and what is
installed serves a model."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import pytest
from armlet_runtime import __version__

from armlet.errors import ArmletError
from armlet.packages.runtime import Options, package
from armlet.payload.keys import Signer, load_signer, new_key
from armlet.payload.pack import pack
from armlet.payload.wish import Delivery
from armlet.qemu.run import Target
from tests.emulated import PATHS, built, converted, service, target_python
from tests.installed import apt_would, dpkg, installed, pretend_kernel, register, serve, twin
from tests.served import Device, free_port
from tests.smoked import REAL

pytestmark = REAL
SKUS = ("demo-a53", pytest.param("demo-a7", marks=pytest.mark.heavy))
DEBS: tuple[Literal["deb"]] = ("deb",)


@dataclass
class Bench:
    """A root file system that dpkg knows, and the packages for it: part -> file."""

    sku: str
    target: Target
    signer: Signer
    first: dict[str, Path]
    second: dict[str, Path]
    payloads: dict[str, Path]

    @property
    def rootfs(self) -> Path:
        return self.target.rootfs

    @property
    def name(self) -> str:
        """The runtime's package."""
        return f"armlet-runtime-{self.sku}"

    def dpkg(self, *arguments: str | Path) -> str:
        return dpkg(self.rootfs, *arguments)


@pytest.fixture(scope="module", params=SKUS)
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    sku, folder = request.param, tmp_path_factory.mktemp(request.param)
    target, _ = built(sku)
    rootfs = folder / "rootfs"
    shutil.copytree(target.rootfs, rootfs, symlinks=True)
    register(rootfs)
    made = [
        {
            one.what: one.path
            for one in package(PATHS, sku, folder / f"r{number}", Options(formats=DEBS, revision=number))
        }
        for number in (1, 2)
    ]
    key = new_key("release", folder)
    signer = load_signer(key.private, lambda: "")
    (rootfs / "etc/armlet/keys").mkdir(parents=True)
    shutil.copy(key.public, rootfs / "etc/armlet/keys")
    model, said, _ = converted(sku, folder)
    payloads = {}
    for version, generation in (("1.2.0", 7), ("1.3.0", 8)):
        delivery = Delivery(out=folder / version, formats=DEBS, beside=True)
        wish = replace(said, version=version, generation=generation)
        payloads[version] = pack(model, wish, signer=signer, delivery=delivery).files["deb"]
    return Bench(sku, Target(rootfs=rootfs, cpu=target.cpu), signer, made[0], made[1], payloads)


def test_what_is_installed_serves_its_models(bench: Bench, tmp_path: Path) -> None:
    bench.dpkg("--install", bench.first["service"])
    assert serve(bench.target, "--version") == (0, [f"armlet-serve {__version__}"])
    wants = bench.rootfs / "etc/systemd/system/multi-user.target.wants/armlet-serve.service"
    assert wants.is_symlink(), "the service starts with the device"
    code, problems = serve(bench.target, "--check")
    assert (code, len(problems)) == (2, 3), "there are neither runtime.json nor library nor models yet"
    bench.dpkg("--install", bench.first["runtime"], *bench.payloads.values())
    assert set(installed(bench.rootfs, "armlet").values()) == {"ii"}
    pretend_kernel(bench.rootfs)
    code, (line,) = serve(bench.target, "--check")
    assert (code, line.partition(" ")[0]) == (0, "text-direction"), "all is where the service looks by itself"

    device = Device(bench.rootfs / "etc/armlet", bench.signer, free_port())
    # QEMU leads to the root file system only what a program opens, and not what it merely looks for.
    there = bench.rootfs / "usr/lib/armlet/models"
    places = {
        "payloads": there,
        "keys": device.root / "keys",
        "scratch": tmp_path,
        "listen": f"127.0.0.1:{device.port}",
    }
    device.conf.write_text("\n".join(["[service]", *(f"{name} = {place}" for name, place in places.items()), ""]))
    python, environment = target_python(bench.target)
    with device.serving(service(python, tmp_path), environment, seconds=240):
        assert device.state("text-direction") == ("READY", "")
        assert sorted(path.name for path in (there / "text-direction").iterdir()) == ["1.2.0", "1.3.0"]
        assert device.demand_golden(there / "text-direction/1.3.0") == 2

    # What was changed on the device stays in an update, and goes with a purge; keys were never the package's.
    bench.dpkg("--install", bench.second["service"])
    assert f":{device.port}" in device.conf.read_text()
    bench.dpkg("--remove", "armlet-serve")
    assert device.conf.exists()
    bench.dpkg("--purge", "armlet-serve")
    assert not device.conf.exists()
    assert not wants.is_symlink()
    assert [path.name for path in (bench.rootfs / "etc/armlet/keys").iterdir()] == ["release.pub"]


def test_versions_of_the_runtime_take_each_others_place(bench: Bench) -> None:
    parts = ("runtime", "dev", "dbg")
    bench.dpkg("--install", *(bench.first[part] for part in parts))
    listed = {part: version for part, version in versions(bench).items() if part.startswith(bench.name)}
    assert set(listed.values()) == {"1.21.0+armlet1"}
    bench.dpkg("--install", *(bench.second[part] for part in parts))
    assert {versions(bench)[part] for part in listed} == {"1.21.0+armlet2"}
    bench.dpkg("--install", *(bench.first[part] for part in parts))
    assert {versions(bench)[part] for part in listed} == {"1.21.0+armlet1"}, "a downgrade that was asked for"


def test_another_skus_runtime_takes_the_place_of_the_first(bench: Bench, tmp_path: Path) -> None:
    name = bench.name
    bench.dpkg("--install", bench.first["runtime"], bench.first["service"])
    bench.dpkg("--remove", f"{name}-dev", f"{name}-dbg")
    other = twin(PATHS, bench.sku, "other", tmp_path / "project")
    made = {one.what: one.path for one in package(other, "other", tmp_path / "out", Options(formats=DEBS))}
    file = made["runtime"]
    assert apt_would(bench.rootfs, tmp_path / "apt", file) == [f"Remv {name}", "Inst armlet-runtime-other"]
    # dpkg itself never removes a package for another one that only takes its place; nothing of it is there then.
    with pytest.raises(ArmletError):
        bench.dpkg("--install", file)
    assert json.loads((bench.rootfs / "usr/share/armlet/runtime.json").read_text())["sku"] != "other"
    bench.dpkg("--remove", name)
    bench.dpkg("--install", file)
    left = installed(bench.rootfs, "armlet-runtime")
    assert (left["armlet-runtime-other"], left.get(name, "un")) == ("ii", "un")
    assert json.loads((bench.rootfs / "usr/share/armlet/runtime.json").read_text())["sku"] == "other"
    bench.dpkg("--purge", "armlet-runtime-other")
    assert not [*bench.rootfs.glob("usr/lib/*/libonnxruntime*")]


def versions(bench: Bench) -> dict[str, str]:
    """Package -> version, of ours."""
    shown = bench.dpkg("--list", "armlet*").splitlines()
    return {line.split()[1].split(":")[0]: line.split()[2] for line in shown if line[:2] == "ii"}
