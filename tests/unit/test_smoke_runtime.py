"""What a smoke takes from ``dist``: what the manifest there describes, or nothing."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from armlet.digest import of_bytes
from armlet.errors import ArmletError, Kind
from armlet.paths import Paths
from armlet.qemu.runtime import find_runtime, unpack
from armlet.spec import runtime as spec
from armlet.spec.runtime import RuntimeManifest
from tests.fakes.elf_file import EM_X86_64, FakeElf

WHEEL = "onnxruntime-1.21.0-cp311-cp311-manylinux_2_35_aarch64.whl"


def shipped(wheel: Path) -> spec.ShippedWheel:
    data = wheel.read_bytes()
    return spec.ShippedWheel(filename=wheel.name, size=len(data), sha256=of_bytes(data), cpython="3.11")


def manifest_for(library: Path, wheel: Path | None = None) -> bytes:
    data = library.read_bytes()
    return (
        RuntimeManifest(
            sku="demo",
            build_id="0" * 64,
            ort_version="1.21.0",
            ort_format_version=(4, 6),
            onnx_ir_max=10,
            opsets={"ai.onnx": 22},
            flavor="minimal",
            target=spec.Target(triple="t", arch="aarch64", float_abi="aapcs64", isa="armv8-a", cpu="cortex-a53"),
            requires=spec.Requires(glibc="2.36", glibcxx=None, kernel="5.15"),
            providers=("xnnpack", "cpu"),
            operators=None,
            files=(
                spec.ShippedFile(
                    path="lib/libonnxruntime.so.1.21.0",
                    size=len(data),
                    sha256=of_bytes(data),
                    stripped=True,
                    build_id=None,
                ),
            ),
            wheel=shipped(wheel) if wheel else None,
            source_set=spec.SourceSetRef(name="s", sha256="0" * 64),
            toolchain=spec.ToolchainRef(name="t", image="sha256:0", compiler="gcc"),
        )
        .model_dump_json(by_alias=True)
        .encode()
    )


def test_the_runtime_is_the_one_that_its_manifest_describes(paths: Paths) -> None:
    with pytest.raises(ArmletError) as caught:
        find_runtime(paths, "demo")
    assert (caught.value.kind, caught.value.hint) == (Kind.INPUT, "./inv build --sku demo")

    folder = paths.dist("demo") / "armlet-runtime-demo-1.21.0-t" / "lib"
    folder.mkdir(parents=True)
    library = folder / "libonnxruntime.so.1.21.0"
    library.write_bytes(b"ELF")
    (folder / "libonnxruntime.so.1").symlink_to(library.name)
    manifest = paths.dist("demo") / "runtime.json"
    manifest.write_bytes(manifest_for(library))
    assert find_runtime(paths, "demo").library == library

    library.write_bytes(b"another")
    with pytest.raises(ArmletError, match=r"not the one .*\.so\.1\.21\.0 is no ELF file"):
        find_runtime(paths, "demo")
    library.write_bytes(FakeElf(machine=EM_X86_64).build())
    with pytest.raises(ArmletError, match=r"not the one .*\.so\.1\.21\.0 is for X86_64"):
        find_runtime(paths, "demo")
    library.unlink()
    with pytest.raises(ArmletError, match="missing"):
        find_runtime(paths, "demo")
    manifest.write_bytes(b"{}")
    with pytest.raises(ArmletError) as caught:
        find_runtime(paths, "demo")
    assert (caught.value.kind, caught.value.where) == (Kind.INPUT, str(manifest))


@pytest.fixture
def wheel(paths: Paths) -> Path:
    """That of a built runtime, all of it as its manifest says."""
    folder = paths.dist("demo") / "armlet-runtime-demo-1.21.0-t" / "lib"
    folder.mkdir(parents=True)
    library, wheel = folder / "libonnxruntime.so.1.21.0", paths.dist("demo") / WHEEL
    library.write_bytes(b"ELF")
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("onnxruntime/__init__.py", "x = 1\n")
    (paths.dist("demo") / "runtime.json").write_bytes(manifest_for(library, wheel))
    return wheel


def refused(paths: Paths) -> str:
    with pytest.raises(ArmletError) as caught:
        find_runtime(paths, "demo")
    assert caught.value.kind is Kind.INPUT
    assert caught.value.hint == f"remove {paths.dist('demo')}, then: ./inv build --sku demo"
    return caught.value.what


def test_the_wheel_is_the_one_that_the_manifest_names(paths: Paths, wheel: Path) -> None:
    wheel.with_name("another-1.0-py3-none-any.whl").write_bytes(b"of another build")
    assert find_runtime(paths, "demo").wheel == wheel
    whole = wheel.read_bytes()
    wheel.write_bytes(whole[:-1])
    assert refused(paths) == f"the wheel is not the one that runtime.json describes: {WHEEL}"
    wheel.unlink()
    assert refused(paths) == f"the wheel is missing: {WHEEL}"
    wheel.mkdir()
    assert refused(paths) == f"the wheel is not the one that runtime.json describes: {WHEEL}"


def test_a_wheel_that_the_manifest_does_not_name_is_none_of_the_runtimes(paths: Paths, wheel: Path) -> None:
    library = find_runtime(paths, "demo").library
    (paths.dist("demo") / "runtime.json").write_bytes(manifest_for(library))
    assert find_runtime(paths, "demo").wheel is None


def test_a_wheel_is_unpacked_whole_or_refused(wheel: Path, tmp_path: Path) -> None:
    assert (unpack(wheel, tmp_path / "whole") / "onnxruntime/__init__.py").read_text() == "x = 1\n"
    whole = wheel.read_bytes()
    for garbled in (b"", whole[:-10], whole.replace(b"x = 1", b"x = 2")):
        wheel.write_bytes(garbled)
        with pytest.raises(ArmletError) as caught:
            unpack(wheel, tmp_path / "garbled")
        assert (caught.value.kind, caught.value.where) == (Kind.INPUT, str(wheel.parent))
