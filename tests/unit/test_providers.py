"""Providers that need more than ONNX Runtime's own sources: what is refused, and what reaches the compile."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from armlet import config, digest, mounts, sdks
from armlet.config import Resolved
from armlet.emit import cmake
from armlet.errors import ArmletError
from armlet.gates import expected_of
from armlet.steps import compile as compile_step
from armlet.steps import foreign
from tests.fakes.recipes import ROOT, FakeProject

SKU = FakeProject.sku_file
ACL = """\
  - name: acl
    version: "24.11"
    licence: MIT
    sha256: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
    size: 1
    debian: pool/main/a/acl/acl_24.11.deb
    ships: [usr/lib/libarm_compute.so.43.0.0]
    needs: {glibc: "2.38", glibcxx: "3.4.32"}
    only: {provider: acl, arch: aarch64}
"""
SDKS: dict[str, dict[str, tuple[str, ...]]] = {
    "vsinpu": {
        "tim-vx": ("include/tim/vx/graph.h", "lib/libtim-vx.so"),
        "vivante": ("drivers/libGAL.so",),
    },
    "rknpu": {"rknpu-ddk": ("include/rknpu/rknpu_pub.h", "lib64/librknpu_ddk.so")},
}
VARIABLES = ("TIM_VX_INSTALL", "VIVANTE_SDK_DIR", "RKNPU_DDK_PATH")


@pytest.fixture(autouse=True)
def _no_sdk_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def project(tmp_path: Path) -> FakeProject:
    """``demo-a53`` with a source set that has an ACL, and the toolchains that there are."""
    project = FakeProject(tmp_path / "project")
    project.write(project.source_set_file, project.text(project.source_set_file) + ACL)
    for name in ("aarch64-trixie", "armhf-bookworm"):
        project.write(f"toolchains/{name}.yaml", (ROOT / f"toolchains/{name}.yaml").read_text(encoding="utf-8"))
    return project


def ask(project: FakeProject, providers: str, *, toolchain: str = "aarch64-trixie", cxx: str | None = "3.4.33") -> None:
    project.change(SKU, "[xnnpack, cpu]", f"[{providers}]")
    project.change(SKU, "toolchain: aarch64-bookworm", f"toolchain: {toolchain}")
    floors = 'glibc: "2.41"' + (f'\n  glibcxx: "{cxx}"' if cxx else "")
    project.change(SKU, 'glibc: "2.36"', floors)


def resolved(project: FakeProject) -> Resolved:
    return config.resolve(project.paths, "demo-a53")


def refusal(project: FakeProject) -> str:
    with pytest.raises(ArmletError) as caught:
        resolved(project)
    return f"{caught.value}"


def fake_sdks(folder: Path, provider: str) -> dict[str, Path]:
    for name, files in SDKS[provider].items():
        for file in files:
            (folder / name / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / name / file).write_text(file)
    return {name: folder / name for name in SDKS[provider]}


def name_sdks(project: FakeProject, places: dict[str, Path]) -> None:
    lines = "".join(f"    {name}: {place}\n" for name, place in places.items())
    project.change(SKU, "  python: capi", f"  sdks:\n{lines}  python: capi")


def test_acl_uses_the_rootfs_cxx_runtime_and_keeps_exceptions(project: FakeProject) -> None:
    ask(project, "acl, xnnpack, cpu")
    made = resolved(project)
    definitions = cmake.definitions(made)
    assert definitions["onnxruntime_USE_ACL"] == definitions["onnxruntime_USE_XNNPACK"] == "ON"
    assert definitions["onnxruntime_DISABLE_EXCEPTIONS"] == definitions["onnxruntime_DISABLE_RTTI"] == "OFF"
    assert "static-lib" not in definitions["CMAKE_SHARED_LINKER_FLAGS"]
    expected = expected_of(made)
    assert expected.glibcxx == "3.4.33"
    assert {"libstdc++.so.6", "libgcc_s.so.1"} <= expected.needed
    assert expected.foreign == {"lib/libarm_compute.so.43.0.0"}
    assert "OrtSessionOptionsAppendExecutionProvider_ACL" in expected.exports


def test_without_it_all_stays_linked_in(project: FakeProject) -> None:
    made = resolved(project)
    assert "-static-libstdc++ -static-libgcc" in cmake.definitions(made)["CMAKE_SHARED_LINKER_FLAGS"]
    assert cmake.definitions(made)["onnxruntime_DISABLE_EXCEPTIONS"] == "ON"
    assert expected_of(made).glibcxx is None
    assert not expected_of(made).foreign
    assert foreign.facts(made) == {}


def test_the_linker_finds_the_library_that_travels(project: FakeProject, tmp_path: Path) -> None:
    ask(project, "acl, cpu")
    for _ in range(2):  # A compile that goes on where it stopped finds its links.
        foreign.link_libraries(resolved(project), tmp_path)
    link = tmp_path / "libraries/libarm_compute.so"
    assert str(link.readlink()) == "/src/acl/usr/lib/libarm_compute.so.43.0.0"
    foreign.link_libraries(resolved(project), tmp_path, mounts.View(prefix="/mnt/x"))
    assert str(link.readlink()) == "/mnt/x/src/acl/usr/lib/libarm_compute.so.43.0.0"


@pytest.mark.parametrize(
    ("toolchain", "reason"),
    [
        ("armhf-bookworm", "is only tested with 64-bit Arm"),
        ("aarch64-bookworm", "acl 24.11 needs glibc 2.38, and it has 2.36"),
    ],
)
def test_acl_is_refused_where_it_cannot_be_linked(project: FakeProject, toolchain: str, reason: str) -> None:
    ask(project, "acl, cpu", toolchain=toolchain)
    told = refusal(project)
    assert f'the provider "acl" cannot be built with {toolchain}: ' in told
    assert reason in told
    assert "available: cpu, xnnpack" in told
    assert "acl can be had for a rootfs with glibc 2.41 (aarch64-trixie)" in told


def test_acl_is_refused_where_the_source_set_has_none(project: FakeProject) -> None:
    ask(project, "acl, cpu")
    project.write(project.source_set_file, project.text(project.source_set_file).replace(ACL, ""))
    assert "onnxruntime-1.21.0 has no library for it" in refusal(project)


def test_the_rootfs_cxx_runtime_has_to_be_stated(project: FakeProject) -> None:
    ask(project, "acl, cpu", cxx=None)
    told = refusal(project)
    assert "acl uses the rootfs's libstdc++, and floors.glibcxx does not say which it has" in told
    assert 'glibcxx: "3.4.32"' in told


def test_a_rootfs_with_an_older_cxx_runtime_cannot_have_it(project: FakeProject) -> None:
    ask(project, "acl, cpu", cxx="3.4.30")
    assert "acl needs a libstdc++ with GLIBCXX_3.4.32, and the rootfs has 3.4.30" in refusal(project)


def test_a_wheel_cannot_have_it(project: FakeProject) -> None:
    ask(project, "acl, cpu")
    project.change(SKU, "python: capi", "python: wheel")
    project.change(SKU, "flavor: minimal", "flavor: reduced")
    assert "acl is not to be had with python: wheel" in refusal(project)


def test_rknpu_needs_a_flavor_that_reads_onnx(project: FakeProject) -> None:
    ask(project, "rknpu, cpu")
    assert "rknpu is not to be had with flavor: minimal" in refusal(project)


def test_a_missing_sdk_is_told_with_what_is_expected_and_where_to_get_it(project: FakeProject) -> None:
    ask(project, "vsinpu, cpu")
    told = refusal(project)
    for name, variable in (("tim-vx", "TIM_VX_INSTALL"), ("vivante", "VIVANTE_SDK_DIR")):
        assert f"{name} is missing: there is no {name} in runtime.sdks, and {variable} is not set" in told
    assert "include/tim/vx/graph.h, lib/libtim-vx.so" in told
    assert "drivers or lib" in told
    assert "VeriSilicon" in told


def test_a_folder_that_is_no_sdk_is_told_with_what_it_lacks(project: FakeProject, tmp_path: Path) -> None:
    ask(project, "vsinpu, cpu")
    places = fake_sdks(tmp_path / "vendor", "vsinpu")
    (places["tim-vx"] / "lib/libtim-vx.so").unlink()
    (places["vivante"] / "drivers/libGAL.so").unlink()
    (places["vivante"] / "drivers").rmdir()
    name_sdks(project, places)
    told = refusal(project)
    assert f"runtime.sdks.tim-vx: {places['tim-vx']} is no tim-vx: it lacks lib/libtim-vx.so" in told
    assert f"{places['vivante']} is no vivante: it lacks drivers or lib" in told


def test_an_sdk_that_nothing_needs_is_told(project: FakeProject) -> None:
    name_sdks(project, {"tim-vx": Path("/opt/tim-vx")})
    assert 'none of the providers needs an SDK "tim-vx"' in refusal(project)


def test_an_sdk_reaches_upstreams_cmake(project: FakeProject, tmp_path: Path) -> None:
    ask(project, "vsinpu, cpu")
    places = fake_sdks(tmp_path / "vendor", "vsinpu")
    name_sdks(project, places)
    made = resolved(project)
    assert made.sdks == places
    definitions = cmake.definitions(made)
    assert definitions["onnxruntime_USE_VSINPU"] == "ON"
    assert definitions["TIMVX_LIBRARY"] == "/sdk/tim-vx/lib/libtim-vx.so"
    assert "-ffile-prefix-map=/sdk=" in definitions["CMAKE_CXX_FLAGS"]
    assert foreign.environment(made) == {"TIM_VX_INSTALL": "/sdk/tim-vx", "VIVANTE_SDK_DIR": "/sdk/vivante"}
    mounted = {mount.target: (mount.source, mount.read_only) for mount in foreign.mounts_of(made)}
    assert mounted == {f"/sdk/{name}": (place, True) for name, place in places.items()}
    assert "libtim-vx.so" in expected_of(made).needed


def test_an_sdk_may_come_from_upstreams_variable(
    project: FakeProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(project, "rknpu, cpu")
    (place,) = fake_sdks(tmp_path / "vendor", "rknpu").values()
    monkeypatch.setenv("RKNPU_DDK_PATH", str(place))
    told = refusal(project)
    # The flavor is against it still; the SDK is not.
    assert "rknpu is not to be had" in told
    assert "rknpu-ddk" not in told
    monkeypatch.setenv("RKNPU_DDK_PATH", str(tmp_path))
    assert f"{tmp_path} (RKNPU_DDK_PATH) is no rknpu-ddk: it lacks include/rknpu/rknpu_pub.h" in refusal(project)


def test_the_id_follows_the_content_of_an_sdk_and_not_its_name(project: FakeProject, tmp_path: Path) -> None:
    ask(project, "vsinpu, cpu")
    here, there = fake_sdks(tmp_path / "here", "vsinpu"), fake_sdks(tmp_path / "there", "vsinpu")
    name_sdks(project, here)
    made = resolved(project)
    facts = digest.of_value(compile_step.STEP.facts(made))
    assert str(tmp_path) not in str(compile_step.STEP.facts(made))
    assert digest.of_value(compile_step.STEP.facts(replace(made, sdks=there))) == facts
    (there["tim-vx"] / "lib/libtim-vx.so").write_text("another release")
    assert digest.of_value(compile_step.STEP.facts(replace(made, sdks=there))) != facts


def test_a_link_in_an_sdk_counts_by_where_it_points(tmp_path: Path) -> None:
    (tmp_path / "libx.so").symlink_to("libx.so.1")
    before = sdks.content(tmp_path)
    (tmp_path / "libx.so").unlink()
    (tmp_path / "libx.so").symlink_to("libx.so.2")
    assert sdks.content(tmp_path) != before
