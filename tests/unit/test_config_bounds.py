"""What a recipe may hold: values that look right and would only fail later."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from armlet import config
from armlet.errors import ArmletError, Kind
from tests.fakes.recipes import ROOT, FakeProject

SKU = FakeProject.sku_file
TOOLCHAIN = FakeProject.toolchain_file
SOURCES = FakeProject.source_set_file
_LONG = "9" * 5001


@pytest.fixture
def project(tmp_path: Path) -> FakeProject:
    return FakeProject(tmp_path)


def refused(project: FakeProject) -> str:
    with pytest.raises(ArmletError) as caught:
        config.resolve(project.paths, "demo-a53")
    assert caught.value.kind is Kind.INPUT
    return str(caught.value)


# (file, text, what stands there instead, the problem, the hint)
WRONG = [
    (SKU, 'glibc: "2.36"', 'glibc: "٢.٣٦"', 'floors.glibc: "٢.٣٦" is not taken', 'such as "2.36"'),
    (SKU, 'glibc: "2.36"', f'glibc: "{_LONG}"', "floors.glibc: ", ""),
    (SKU, 'glibc: "2.36"', f'glibc: "2.{_LONG}"', "floors.glibc: ", ""),
    (TOOLCHAIN, 'kernel: "3.7"', f'kernel: "{_LONG}"', "floors.kernel: string should have at most 32", ""),
    *((SKU, 'glibc: "2.36"', f'glibc: "{one}"', f'floors.glibc: "{one}" is not taken', 'from "2.17" to "2.99"')
      for one in ("99", "236", "3.1", "2.100", "2.360", "2.16", "2.36.1")),
    (SKU, 'glibc: "2.36"', 'glibcxx: "3.4.30"\n  glibc: "2.36"',
     "floors.glibcxx: is only asked for by a provider", "leave it out"),
    (SKU, "x: [1, 3, 48, 192]", "x: []", "runtime.operators.models[0].inputs.x: is empty", "at least 1"),
    (SKU, "    allow:", "    types: [float, int8, float]\n    allow:",
     'runtime.operators.types: "float" is given twice',
     "keep one"),
    (TOOLCHAIN, "triple: aarch64-linux-gnu", "triple: arm-linux-gnueabihf",
     'triple: "arm-linux-gnueabihf" is not for arch: aarch64', "write triple: aarch64-linux-gnu"),
    (TOOLCHAIN, "debian_arch: arm64", "debian_arch: armhf", 'debian_arch: "armhf" is not for arch: aarch64',
     "write debian_arch: arm64"),
    *((SOURCES, "    size: 1\n", f"    urls: [{one!r}]\n    size: 1\n", f'components[0].urls: "{one}" is not taken',
       "https://host/path/file") for one in ("foo", "http://h/", "https://x/..", "https://x/a/../b", "https:///a",
                                             "https://x/a b", "ftp://x/a", "https://x:y/a", "https://x/a/")),
    *((SOURCES, "debian: pool/main/o/onnxruntime/onnxruntime_1.21.0.orig.tar.xz", f"debian: {one}",
       f'components[0].debian: "{one}" is not taken', "a path in a Debian mirror")
      for one in ("foo", "../foo", "/foo", "pool/..", "pool/")),
    *((SOURCES, "onnxruntime:cmake/patches/other.patch", f'"{one}"', f'components[0].patches: "{one}" is not taken',
       "without ..") for one in ("onnxruntime:", "onnxruntime:../x", "onnxruntime:a/../x", "onnxruntime:/x", "../x")),
    (SOURCES, "    size: 1\n", "    only: {provider: arm_nn}\n    size: 1\n",
     'components[0].only.provider: "arm_nn" is not taken any more', "use acl"),
    (SOURCES, "  ai.onnx: 22", "  ai.onnx: 0", 'opsets["ai.onnx"]: ', "it is 0 now"),
    (SOURCES, '["3.10", "3.13"]', '["3.13", "3.9"]', "cpython: 3.13 to 3.9 is upside down", "the oldest first"),
    (SOURCES, "[4, 6]", "[6, 4]", "ort_format: 6 to 4 is upside down", "the oldest first"),
    (SOURCES, 'cpython: ["3.10",', 'cpython: ["٣.10",', 'cpython: "٣.10" is not taken', 'such as "2.36"'),
]  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new", "problem", "hint"), WRONG)
def test_it_is_told_once_with_file_line_and_remedy(
    project: FakeProject, file: str, old: str, new: str, problem: str, hint: str
) -> None:
    line = project.change(file, old, new)
    told = refused(project)
    assert len(told) < 1000
    what, remedy = told.splitlines()
    assert what.startswith(f"{file}:{line}: {problem}")
    assert remedy.startswith(" hint: ")
    assert hint in remedy


@pytest.mark.parametrize("version", ["", "٣.٣", _LONG])
def test_a_cpython_that_is_no_version_is_told_once(project: FakeProject, version: str) -> None:
    project.change(SKU, "flavor: minimal", "flavor: reduced")
    line = project.change(SKU, "python: capi ", f'python: wheel\n  cpython: "{version}" ') + 1
    told = refused(project)
    assert len(told) < 1000
    what, _ = told.splitlines()
    assert what.startswith(f"{SKU}:{line}: runtime.cpython: ")


def test_a_long_floor_without_a_toolchain(project: FakeProject) -> None:
    project.change(SKU, "toolchain: aarch64-bookworm\n", "")
    line = project.change(SKU, 'glibc: "2.36"', f'glibc: "{_LONG}"')
    what, _ = refused(project).splitlines()
    assert what.startswith(f"{SKU}:{line}: floors.glibc: ")


@pytest.mark.parametrize(
    ("rules", "key"),
    [
        ("skip: [{targets: 'a(', sources: b}]", "skip[0].targets"),
        ("skip: [{targets: a, sources: '*'}]", "skip[0].sources"),
        ("keep: [{sources: '[z-a]'}]", "keep[0].sources"),
        ("apart: [{sources: 'a{99999999999999999999}'}]", "apart[0].sources"),
    ],
)
def test_a_pattern_that_does_not_compile_is_told(project: FakeProject, rules: str, key: str) -> None:
    line = project.change(SOURCES, "components:\n", f"acceleration:\n  {rules}\ncomponents:\n") + 1
    assert f"{SOURCES}:{line}: acceleration.{key}: is no regular expression: " in refused(project)


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ("keep: [{sources: a, flavors: []}]", "acceleration.keep[0].flavors: is empty"),
        ("skip: [{targets: a, flavors: []}]", "acceleration.skip[0].flavors: is empty"),
        ("batches: {'a b': 4}", 'acceleration.batches["a b"]: "a b" is not taken\n hint: the name of a CMake target'),
        ("batches: {a;b: 4}", 'acceleration.batches["a;b"]: "a;b" is not taken\n hint: the name of a CMake target'),
    ],
)
def test_an_acceleration_without_a_meaning_is_told(project: FakeProject, rules: str, told: str) -> None:
    line = project.change(SOURCES, "components:\n", f"acceleration:\n  {rules}\ncomponents:\n") + 1
    assert f"{SOURCES}:{line}: {told}" in refused(project)


def test_a_source_set_without_opsets_is_told(project: FakeProject) -> None:
    line = project.change(SOURCES, "opsets:\n  ai.onnx: 22\n  ai.onnx.ml: 4\n  com.microsoft: 1\n", "opsets: {}\n")
    assert f"{SOURCES}:{line}: opsets: is empty" in refused(project)


def test_two_components_of_one_name_are_told_at_the_second(project: FakeProject) -> None:
    head, _, component = project.text(SOURCES).partition("components:\n")
    project.write(SOURCES, f"{head}components:\n{component}{component}")
    line = project.text(SOURCES).rindex("  - name: onnxruntime")
    number = project.text(SOURCES)[:line].count("\n") + 1
    assert f'{SOURCES}:{number}: components[1].name: "onnxruntime" is given twice' in refused(project)


def test_a_component_without_a_place_is_told(project: FakeProject) -> None:
    project.change(SOURCES, "    debian: pool/main/o/onnxruntime/onnxruntime_1.21.0.orig.tar.xz\n", "")
    assert f"{SOURCES}:12: components[0]: has no place\n hint: give debian: or urls:" in refused(project)


def test_another_architecture_asks_for_another_triple_and_debian_architecture(project: FakeProject) -> None:
    line = project.change(TOOLCHAIN, "arch: aarch64", "arch: armhf")
    told = refused(project)
    assert f'{TOOLCHAIN}:{line + 1}: triple: "aarch64-linux-gnu" is not for arch: armhf' in told
    assert f'{TOOLCHAIN}:{line + 2}: debian_arch: "arm64" is not for arch: armhf' in told
    assert "write triple: arm-linux-gnueabihf, or arch: aarch64" in told


def test_a_toolchain_without_packages_is_told(project: FakeProject) -> None:
    head, _, rest = project.text(TOOLCHAIN).partition("\npackages:\n")
    project.write(TOOLCHAIN, f"{head}\npackages: []\n# Tools{rest.partition('# Tools')[2]}")
    assert f"{TOOLCHAIN}:{head.count(chr(10)) + 2}: packages: is empty" in refused(project)


@pytest.mark.parametrize("given", ["cortex-a53", "Cortex-A53", "CORTEX-A53"])
def test_a_64_bit_core_under_a_32_bit_rootfs_has_a_name_of_its_own(project: FakeProject, given: str) -> None:
    shutil.copyfile(ROOT / "toolchains/armhf-bookworm.yaml", project.root / "toolchains/armhf-bookworm.yaml")
    project.change(SKU, "toolchain: aarch64-bookworm", "toolchain: armhf-bookworm")
    project.change(SKU, "cpu: cortex-a53", f"cpu: {given}")
    assert 'did you mean "cortex-a53-aarch32"?' in refused(project)


def test_a_source_set_that_knows_no_cpython_builds_no_wheel(project: FakeProject) -> None:
    project.change(SOURCES, 'cpython: ["3.10", "3.13"]\n', "")
    project.change(SKU, "flavor: minimal", "flavor: reduced")
    project.change(SKU, "python: capi ", "python: wheel ")
    told = refused(project)
    assert "runtime.python: onnxruntime-1.21.0 does not say which CPython its wheel is for" in told
