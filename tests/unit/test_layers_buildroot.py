"""The tree for Buildroot: what Kconfig, make and a shell make of its files."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import py_compile
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from armlet.errors import ArmletError, Kind
from armlet.layers import buildroot, kconfig
from armlet.layers.facts import Facts, Model, gather
from armlet.layers.tree import write
from armlet.paths import Paths
from armlet.payload.keys import Signer, load_signer, new_key
from armlet.payload.pack import pack
from armlet.payload.wish import Delivery, Made, Wish
from armlet.spec.cpu import CPUS
from tests.conftest import ROOT
from tests.fakes import buildroot as fake
from tests.fakes import models
from tests.fakes.built import SKU, fake_built

RUNTIME = "BR2_PACKAGE_ONNXRUNTIME_ARMLET"
MODEL = "BR2_PACKAGE_ARMLET_MODEL_TEXT_NET"


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> Paths:
    made = fake_built(tmp_path_factory.mktemp("project"))
    shutil.copytree(ROOT / buildroot.FOLDER, made.root / buildroot.FOLDER)
    return made


@pytest.fixture(scope="module")
def signer(tmp_path_factory: pytest.TempPathFactory) -> Signer:
    return load_signer(new_key("release", tmp_path_factory.mktemp("keys")).private, lambda: "")


@pytest.fixture(scope="module")
def payload(tmp_path_factory: pytest.TempPathFactory, signer: Signer) -> Made:
    folder = tmp_path_factory.mktemp("payload")
    model = models.dense(folder / "dense.onnx")
    models.record(model)
    wish = Wish(
        name="text_net",
        version="1.2.0~rc1",
        generation=7,
        description='Costs $(shell touch harm) # "quotes", \\ and 100 % of a line that a help text has no room for',
        licence="MIT AND (Apache-2.0 OR BSD-3-Clause)",
        samples=models.samples(folder / "samples"),
    )
    return pack(model, wish, signer=signer, delivery=Delivery(out=folder / "out", formats=("payload", "folder")))


@pytest.fixture(scope="module")
def facts(paths: Paths, payload: Made, tmp_path_factory: pytest.TempPathFactory) -> Facts:
    """Of two runtimes of different architectures, and a model that fits one of them."""
    folder = tmp_path_factory.mktemp("facts")
    found = gather(paths, skus=[SKU], layout=buildroot._LAYOUT, scratch=folder)
    (first,) = found.runtimes
    target = first.built.manifest.target.model_copy(
        update={"arch": "armhf", "isa": "armv7-a+neon-vfpv4", "cpu": "cortex-a7", "float_abi": "hard"}
    )
    needs = first.built.manifest.requires.model_copy(update={"libraries": ("libc.so.6", "libstdc++.so.6")})
    other = first.built.manifest.model_copy(update={"sku": "cam.a7", "target": target, "requires": needs})
    second = dataclasses.replace(first, sku="cam.a7", built=dataclasses.replace(first.built, manifest=other))
    model = Model(
        manifest=payload.manifest,
        package="armlet-model-text-net",
        folder=payload.files["folder"],
        skus=(SKU,),
        signed=True,
    )
    return dataclasses.replace(found, runtimes=(first, second), models=(model,))


@pytest.fixture(scope="module")
def tree(facts: Facts, paths: Paths, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("br2")
    write(out, "buildroot", buildroot.tree(facts, paths.root, tmp_path_factory.mktemp("made")))
    return out


CASES = {
    "a53": (fake.A53, "DEMO_A53"),
    "a7": (fake.A7, "CAM_A7"),
    "a32: armv8 in 32 bits": ({*fake.A7} - {"BR2_ARM_CPU_HAS_VFPV4"} | {"BR2_ARM_CPU_HAS_FP_ARMV8"}, "CAM_A7"),
    "a core without CRC": ({*fake.A53, "BR2_xgene1"}, None),
    "musl": ({*fake.A53} - {"BR2_TOOLCHAIN_USES_GLIBC"}, None),
    "static": ({*fake.A53, "BR2_STATIC_LIBS"}, None),
    "no threads": ({*fake.A53} - {"BR2_TOOLCHAIN_HAS_THREADS"}, None),
    "soft float": ({*fake.A7} - {"BR2_ARM_EABIHF"}, None),
    "no NEON": ({*fake.A7} - {"BR2_ARM_CPU_HAS_NEON"}, None),
    "a9: VFPv3": ({*fake.A7} - {"BR2_ARM_CPU_HAS_VFPV4"}, None),
    "no C++": ({*fake.A7} - {"BR2_INSTALL_LIBSTDCPP"}, None),
    "no C++ where none is asked for": ({*fake.A53} - {"BR2_INSTALL_LIBSTDCPP"}, "DEMO_A53"),
}


@pytest.mark.parametrize("case", CASES)
def test_kconfig_offers_what_runs_there(case: str, tree: Path, tmp_path: Path) -> None:
    chosen, sku = CASES[case]
    found = fake.kconfig(tree, chosen, tmp_path)
    found.syms[RUNTIME].set_value("y")
    assert found.syms[RUNTIME].str_value == ("y" if sku else "n")
    set_ones = {name for name in ("DEMO_A53", "CAM_A7") if found.syms[f"{RUNTIME}_{name}"].str_value == "y"}
    assert set_ones == ({sku} if sku else set())
    # Of a model, only where its runtime is; of the service, with what it imports.
    for name in (MODEL, "BR2_PACKAGE_ARMLET_SERVE"):
        found.syms[name].set_value("y")
    assert found.syms[MODEL].str_value == ("y" if sku == "DEMO_A53" else "n")
    assert found.syms["BR2_PACKAGE_PYTHON_PYNACL"].str_value == ("y" if sku else "n")
    assert found.syms["BR2_PACKAGE_PYTHON3"].str_value == ("y" if sku else "n")


def test_a_defconfig_chooses_what_it_names(tree: Path, tmp_path: Path) -> None:
    for sku, chosen in ((SKU, fake.A53), ("cam.a7", fake.A7)):
        found = fake.kconfig(tree, chosen, tmp_path)
        lines = (tree / f"configs/armlet_{sku}_qemu_defconfig").read_text().splitlines()
        ours = [line for line in lines if "ARMLET" in line]
        assert (f"{MODEL}=y" in ours) == (sku == SKU)
        (tmp_path / "ours").write_text("\n".join(ours) + "\n")
        found.load_config(str(tmp_path / "ours"), replace=False)
        assert [found.syms[line.partition("=")[0]].str_value for line in ours] == ["y"] * len(ours)
        assert "BR2_cortex_a53=y" in lines if sku == SKU else {"BR2_cortex_a7=y", "BR2_ARM_EABIHF=y"} <= {*lines}


def test_every_core_has_its_conditions() -> None:
    assert {cpu.march for cpu in CPUS.values()} == {*kconfig.CONDITIONS}


PACKAGES = {
    "onnxruntime-armlet": "1.21.0-demo-a53-",
    "python-armlet-runtime": "0.1.0-",
    "armlet-serve": "0.1.0-",
    "armlet-model-text-net": "1.2.0~rc1-g7",
}


def told(tree: Path, package: str, folder: Path, **symbols: str) -> dict[str, str]:
    lines = fake.make(tree, f"{package}-told", folder, symbols or {f"{RUNTIME}_DEMO_A53": "y"})
    return {line.partition(" ")[0]: line.partition(" ")[2] for line in lines}


@pytest.mark.parametrize("package", PACKAGES)
def test_make_reads_a_package_whose_hashes_are_right(package: str, tree: Path, tmp_path: Path) -> None:
    found = told(tree, package, tmp_path)
    assert found["VERSION"].startswith(PACKAGES[package])
    assert found["SITE"] == f"file {tree}/sources"
    source = tree / "sources" / found["SOURCE"]
    place = tree / "package" / package
    (hashes,) = [
        file for file in (place / found["VERSION"] / f"{package}.hash", place / f"{package}.hash") if file.exists()
    ]
    listed = {line.split("  ")[2]: line.split("  ")[1] for line in hashes.read_text().splitlines() if line[0] != "#"}
    assert {*listed} == {found["SOURCE"], *found["FILES"].split()}
    assert hashlib.sha256(source.read_bytes()).hexdigest() == listed.pop(found["SOURCE"])
    for name, sha256 in listed.items():
        beside = place / name
        data = beside.read_bytes() if beside.exists() else inside(source, name)
        assert hashlib.sha256(data).hexdigest() == sha256


def inside(archive: Path, name: str) -> bytes:
    """A file's content, below the one folder at the archive's top."""
    with tarfile.open(archive) as found:
        (member,) = [one for one in found if one.name.partition("/")[2] == name]
        stream = found.extractfile(member)
        assert stream is not None
        return stream.read()


def test_another_sku_is_another_version(tree: Path, tmp_path: Path) -> None:
    found = told(tree, "onnxruntime-armlet", tmp_path, **{f"{RUNTIME}_CAM_A7": "y"})
    assert found["VERSION"].startswith("1.21.0-cam.a7-")


def test_what_a_payload_says_is_nothing_that_runs(tree: Path, tmp_path: Path) -> None:
    found = told(tree, "armlet-model-text-net", tmp_path)
    assert found["LICENSE"] == "MIT, Apache-2.0 or BSD-3-Clause"
    assert not [*tmp_path.rglob("harm"), *tree.rglob("harm")]
    help_text = (tree / "package/armlet-model-text-net/Config.in").read_text()
    assert "$(shell touch harm)" in help_text
    assert max(map(len, help_text.splitlines())) < 72


def test_a_payload_is_installed_whole(tree: Path, payload: Made, tmp_path: Path) -> None:
    (tmp_path / "target/usr/lib/armlet/models/text_net/1.0").mkdir(parents=True)
    fake.make(tree, "armlet-model-text-net-install", tmp_path, {})
    place = tmp_path / "target/usr/lib/armlet/models/text_net"
    source = payload.files["folder"]
    assert [path.name for path in place.iterdir()] == ["1.2.0~rc1"]
    names = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    got = {path.relative_to(place / "1.2.0~rc1").as_posix(): path for path in place.rglob("*") if path.is_file()}
    assert {*got} == names
    assert all(path.read_bytes() == (source / name).read_bytes() for name, path in got.items())


def installed(tree: Path, package: str, archive: str, folder: Path, **symbols: str) -> Path:
    """What a package puts into the target's root, made of its archive."""
    (source,) = (tree / "sources").glob(archive)
    with tarfile.open(source) as found:
        found.extractall(folder, filter="data")
    work = folder / source.name.removesuffix(".tar.xz")
    fake.make(tree, f"{package}-install", work, symbols)
    return work / "target"


_HELP = (
    "import runpy, sys; sys.path.insert(0, sys.argv[1]); del sys.argv[1]; runpy.run_path(sys.argv[1], {}, '__main__')"
)


def test_the_service_starts_from_where_it_is_installed(facts: Facts, paths: Paths, tmp_path: Path) -> None:
    key, tree = tmp_path / "release.pub", tmp_path / "br2"
    key.write_bytes(b"key")
    made = tmp_path / "made"
    write(tree, "buildroot", buildroot.tree(dataclasses.replace(facts, keys=(key,)), paths.root, made))
    target = installed(tree, "armlet-serve", "armlet-serve-*", tmp_path)
    found = [path for path in target.rglob("*") if path.is_file()]
    assert {path.relative_to(target).as_posix(): path.stat().st_mode & 0o777 for path in found} == {
        "usr/bin/armlet-serve": 0o755,
        "etc/armlet/device.conf": 0o644,
        "etc/armlet/keys/release.pub": 0o644,
        "etc/init.d/S90armlet-serve": 0o755,
        "usr/lib/systemd/system/armlet-serve.service": 0o644,
    }
    python = installed(tree, "python-armlet-runtime", "armlet-runtime-0*", tmp_path)
    modules, command = python / "usr/lib/python3.12/site-packages", target / "usr/bin/armlet-serve"
    argv = (sys.executable, "-I", "-c", _HELP, str(modules), str(command), "--help")
    assert "--config" in subprocess.run(argv, check=True, capture_output=True, text=True, cwd=tmp_path).stdout


def test_the_runtime_is_installed_for_programs_and_for_compilers(tree: Path, tmp_path: Path) -> None:
    symbols = {f"{RUNTIME}_DEMO_A53": "y", "TARGET_CC": "/cc", "TARGET_READELF": "/readelf"}
    lines = fake.make(tree, "onnxruntime-armlet-install", tmp_path, symbols, dry=True)
    script = f"{tree}/package/onnxruntime-armlet/check-target.sh"
    assert lines[0] == f'{script} "/cc" "/readelf" demo-a53 libc.so.6:GLIBC_2.29 libm.so.6:'
    assert f"cp -dpf ./lib/*.so.* {tmp_path}/target/usr/lib/" in lines
    assert f"install -D -m 0644 ./runtime.json {tmp_path}/target/usr/share/armlet/runtime.json" in lines
    assert f"cp -dpfr ./include/onnxruntime {tmp_path}/staging/usr/include/" in lines


def checked(tree: Path, folder: Path, *asks: str) -> subprocess.CompletedProcess[str]:
    """``check-target.sh``, with a compiler and a readelf that tell what a target has."""
    (folder / "libc.so.6").write_bytes(b"")
    scripts = {
        "cc": f'#!/bin/sh\nname=${{1#*=}}\n[ -f {folder}/"$name" ] && echo {folder}/"$name" || echo "$name"\n',
        "readelf": "#!/bin/sh\ncat <<'END'\nVersion definition section '.gnu.version_d' contains 2 entries:\n"
        "  0x0001c: Rev: 1  Flags: none  Index: 2  Cnt: 2  Name: GLIBC_2.3\n"
        "  0x0038: Parent 1: GLIBC_2.17\n"
        "  0x0001c: Rev: 1  Flags: none  Index: 3  Cnt: 1  Name: GLIBC_2.36\n"
        "Version needs section '.gnu.version_r' contains 1 entry:\n"
        "  0x0010:   Name: GLIBC_2.38  Flags: none  Version: 14\nEND\n",
    }
    for name, text in scripts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    argv = (str(tree / "package/onnxruntime-armlet/check-target.sh"), str(folder / "cc"), str(folder / "readelf"), SKU)
    return subprocess.run((*argv, *asks), check=False, capture_output=True, text=True)


def test_an_older_c_library_is_refused(tree: Path, tmp_path: Path) -> None:
    assert checked(tree, tmp_path, "libc.so.6:GLIBC_2.36", "libc.so.6:").returncode == 0
    # One that it asks of another, one whose name only begins so, and a library that is not there.
    done = checked(tree, tmp_path, "libc.so.6:GLIBC_2.38", "libc.so.6:GLIBC_2.36", "libc.so.6:GLIBC_2.1", "libm.so.6:")
    assert done.returncode == 1
    assert "lacks: libc.so.6(GLIBC_2.38) libc.so.6(GLIBC_2.1) libm.so.6\n" in done.stderr
    assert SKU in done.stderr


def test_scripts_are_clean(tree: Path) -> None:
    shellcheck = Path(sys.executable).with_name("shellcheck")
    found = [str(path) for path in tree.rglob("*.sh")]
    assert found
    subprocess.run((shellcheck, *found), check=True)
    for test in tree.glob("support/testing/tests/package/*.py"):
        py_compile.compile(str(test), cfile=str(tree.parent / "compiled"), doraise=True)


def test_again_is_the_same_and_what_is_not_asked_for_goes(facts: Facts, paths: Paths, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = write(out, "buildroot", buildroot.tree(facts, paths.root, tmp_path / "1"))
    again = write(out, "buildroot", buildroot.tree(facts, paths.root, tmp_path / "2"))
    assert (again.written, again.removed, sorted(again.same)) == ([], [], sorted(first.written))
    (out / "configs/armlet_demo-a53_qemu_defconfig").write_text("BR2_aarch64=y\n")
    less = dataclasses.replace(facts, runtimes=facts.runtimes[:1], models=())
    told = write(out, "buildroot", buildroot.tree(less, paths.root, tmp_path / "3"))
    assert {"configs/armlet_cam.a7_qemu_defconfig", "package/armlet-model-text-net/Config.in"} <= {*told.removed}
    assert told.kept == ["configs/armlet_demo-a53_qemu_defconfig"]
    assert not (out / "package/armlet-model-text-net").exists()
    assert "CAM_A7" not in (out / "package/onnxruntime-armlet/onnxruntime-armlet.mk").read_text()
    listed = json.loads((out / ".armlet-layer.json").read_text())["files"]
    there = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert there - {*listed} == {".armlet-layer.json", "configs/armlet_demo-a53_qemu_defconfig.armlet-new"}


def test_a_payload_that_does_not_fit_is_refused(paths: Paths, payload: Made, tmp_path: Path) -> None:
    with pytest.raises(ArmletError, match="fits none") as caught:
        buildroot.emit(paths, tmp_path / "out", skus=[SKU], payloads=[payload.files["payload"]])
    assert caught.value.kind is Kind.GATE
    assert not (tmp_path / "out").exists()


def test_a_licence_that_is_none_is_refused(facts: Facts, paths: Paths, tmp_path: Path) -> None:
    (model,) = facts.models
    bad = dataclasses.replace(model, manifest=model.manifest.model_copy(update={"licence": "$(shell touch harm)"}))
    with pytest.raises(ArmletError, match="no SPDX expression"):
        buildroot.tree(dataclasses.replace(facts, models=(bad,)), paths.root, tmp_path)
