from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from armlet import config, rules
from armlet.case import Case
from armlet.errors import ArmletError, Kind
from armlet.recipes import SKUS, SOURCE_SETS, TOOLCHAINS
from armlet.spec.cpu import CPUS
from tests.fakes.recipes import FakeProject

SKU = FakeProject.sku_file
TOOLCHAIN = FakeProject.toolchain_file
SOURCES = FakeProject.source_set_file


@pytest.fixture
def project(tmp_path: Path) -> FakeProject:
    return FakeProject(tmp_path / "Größe mit Leerzeichen")


def refused(project: FakeProject, sku: str = "demo-a53") -> str:
    with pytest.raises(ArmletError) as caught:
        config.resolve(project.paths, sku)
    assert caught.value.kind is Kind.INPUT
    return str(caught.value)


def test_the_demo_resolves_with_patches_and_origins(project: FakeProject) -> None:
    resolved = config.resolve(project.paths, "demo-a53")
    assert resolved.sku.runtime.providers == ("xnnpack", "cpu")
    assert resolved.cpu is CPUS["cortex-a53"]
    assert resolved.toolchain.triple == "aarch64-linux-gnu"
    assert resolved.patches == {"clamp.patch": project.patch}
    line = project.text(SKU).split("  flavor: minimal")[0].count("\n") + 1
    assert resolved.origins["runtime.flavor"] == f"{SKU}:{line}"
    assert resolved.origins["runtime.operators.models[0].path"] == "default (armlet/spec/sku.py)"
    assert resolved.origins["cpu.march"] == "armlet/spec/cpu.py"
    assert resolved.origins['source_set.opsets["ai.onnx"]'] == f"{SOURCES}:8"


@pytest.mark.parametrize(
    ("only", "built"),
    [
        ("{}", True),
        ("{arch: aarch64, provider: xnnpack, python: capi}", True),
        ("{arch: armhf}", False),
        ("{provider: acl}", False),
        ("{arch: aarch64, python: wheel}", False),
    ],
)
def test_a_component_is_built_for_the_skus_that_it_is_for(project: FakeProject, only: str, built: bool) -> None:
    project.change(project.source_set_file, "    size: 1\n", f"    size: 1\n    only: {only}\n")
    assert bool(config.resolve(project.paths, "demo-a53").components) == built


def test_every_value_of_a_resolved_sku_is_told_with_its_origin(project: FakeProject) -> None:
    rows = {key: (value, origin) for key, value, origin in config.describe(config.resolve(project.paths, "demo-a53"))}
    assert rows["runtime.providers"][0] == "xnnpack, cpu"
    assert rows["toolchain.base.image"][0] == "-"
    assert rows["runtime.operators.allow[0].opsets"][0] == "11, 18"
    assert all(origin.startswith(("recipes/", "toolchains/", "default (", "armlet/")) for _, origin in rows.values())


# (file, text, what stands there instead, the problem, the hint)
WRONG = [
    (SKU, "- Pad", "- HardSwish", '"HardSwish" has no kernel: it is a function', "in its place: HardSigmoid, Mul"),
    (SKU, "- Pad", "- ai.onnx:Mish", '"Mish" has no kernel: it is a function', "in its place: Softplus, Tanh, Mul"),
    (SKU, "flavor: minimal", "flavour: minimal", "runtime.flavour: unknown key", 'did you mean "flavor"?'),
    (SKU, "[xnnpack, cpu]", "[xnpack, cpu]", 'runtime.providers: unknown provider "xnpack"',
     'did you mean "xnnpack"? Known: cpu, xnnpack, acl, vsinpu, rknpu'),
    (SKU, "[xnnpack, cpu]", "[arm_nn, cpu]", 'runtime.providers: "arm_nn" is not taken any more', "use acl"),
    (SKU, "[xnnpack, cpu]", "[armnn, cpu]", 'runtime.providers: "armnn" is not taken any more', "use acl"),
    (SKU, "[xnnpack, cpu]", "[cpu, xnnpack]", "runtime.providers: cpu must come last", "nothing after it"),
    (SKU, "[xnnpack, cpu]", "[xnnpack]", "runtime.providers: cpu is missing", "add cpu at the end"),
    (SKU, "[xnnpack, cpu]", "[xnnpack, xnnpack, cpu]", 'runtime.providers: "xnnpack" is given twice', "keep the first"),
    (SKU, "[xnnpack, cpu]", "[]", "runtime.providers: is empty", "at least 1"),
    (SKU, "[xnnpack, cpu]", "cpu", 'runtime.providers: "cpu" is not a list', "write a list"),
    (SKU, "cpu: cortex-a53", "cpu: cortex-a35x", 'cpu: unknown CPU "cortex-a35x"', 'did you mean "cortex-a35"?'),
    (SKU, "cpu: cortex-a53", "cpu: cortex-a7", "cpu: cortex-a7 is an armhf core", "cortex-a53"),
    (SKU, "cpu: cortex-a53", "cpu:", "cpu: is empty", "give it a value"),
    (SKU, "toolchain: aarch64-bookworm", "toolchain: aarch64-bookwurm",
     'toolchain: unknown toolchain "aarch64-bookwurm"', 'did you mean "aarch64-bookworm"?'),
    (SKU, "source_set: onnxruntime-1.21.0", "source_set: onnxruntime-1.12.0", "runtime.source_set: unknown source set",
     'did you mean "onnxruntime-1.21.0"?'),
    (SKU, "flavor: minimal", "flavor: minmal", 'runtime.flavor: unknown flavor "minmal"', 'did you mean "minimal"?'),
    (SKU, "python: capi", "python: wheel", "runtime.python: upstream's Python wheel cannot be had with flavor: minimal",
     "needs exceptions, RTTI"),
    (SKU, 'glibc: "2.36"', "glibc: 2.30", "floors.glibc: 2.30 is a number", 'write it in quotes: "2.30"'),
    (SKU, 'glibc: "2.36"', 'glibc: "two"', 'floors.glibc: "two" is not taken', 'such as "2.36"'),
    (SKU, 'glibc: "2.36"', 'glibc: "2.31"', "floors.glibc: a rootfs with glibc 2.31 cannot run",
     "no aarch64 toolchain"),
    (SKU, "library_mib: 6", "library_mib: 0", "budgets.library_mib: ", "it is 0 now"),
    (SKU, "library_mib: 6", "library_mib: six", 'budgets.library_mib: "six" is not a number', "write a number"),
    (SKU, "library_mib: 6", "library_mib: true", "budgets.library_mib: true is not a number", "write a number"),
    (SKU, "name: demo-a53", "name: demo-a72", 'name: "demo-a72" is not the name of the file', "write name: demo-a53"),
    (SKU, "schema: 1", "schema: 2", "schema: unknown schema version 2", "Known: 1"),
    (SKU, "[11, 18]", "[18, 11]", "runtime.operators.allow[0].opsets: [18, 11] is upside down", "write [11, 18]"),
    (SKU, "[11, 18]", "[11, 99]", "allow[0].opsets: opset 99 is newer than ONNX Runtime 1.21.0 knows",
     "the newest is 22: write [11, 22]"),
    (SKU, "[11, 18]", "[0, 18]", "allow[0].opsets: there is no opset 0", "count from 1"),
    (SKU, "[11, 18]", "[11]", "allow[0].opsets: has too few values", "write 2 values"),
    (SKU, "[11, 18]", "[11, 12, 13]", "allow[0].opsets: has too many values", "[11, 12, 13]"),
    (SKU, "[11, 18]", "[11, 18.5]", "allow[0].opsets: 18.5 is not a whole number", "write a whole number"),
    (SKU, "- AveragePool", "- AveragePol", 'allow[0].operators: unknown operator "AveragePol"',
     'did you mean "AveragePool"?'),
    (SKU, "- Cast", "- cast", 'allow[0].operators: "cast" is not taken', "an operator, such as Conv"),
    (SKU, "- Cast", "- Add", 'allow[0].operators: "Add" is given twice', "keep one"),
    (SKU, "- Cast", "- FusedConv", 'unknown operator "FusedConv"', 'did you mean "com.microsoft:FusedConv"?'),
    (SKU, "- Cast", "- con.microsoft:FusedConv", 'unknown operator domain "con.microsoft"',
     'did you mean "com.microsoft"?'),
    (SKU, "- Cast", "- Gelu", "Gelu has no kernel for opset 18 or older", "it starts with opset 20"),
    (SKU, "- Cast", "- GroupNormalization", 'unknown operator "GroupNormalization"', "operators they consist of"),
    (SKU, "- Cast", "- Zzzzzz", 'unknown operator "Zzzzzz"', " hint: recipes/operators has all"),
    (SKU, "- Cast", "- ai.onnx.ml:TreeEnsembleRegressor", "flavor: minimal is built without ai.onnx.ml", "leave"),
    (SKU, "licence: Apache-2.0", "license: Apache-2.0", "models[0].license: unknown key", 'did you mean "licence"?'),
    (SKU, "sha256: e47a", "sha256: E47A", "models[0].sha256: ", "64 digits"),
    (SKU, "member: rapidocr", "member: ../rapidocr", "models[0].wheel.member: ", "without .."),
    (SKU, "x: [1, 3, 48, 192]", "x: [1, 3, 0, 192]", "models[0].inputs.x: ", "it is 0 now"),
    (SKU, "activation: int8 ", "activation: uint8 ", "models[0].quantise.activation: XNNPACK multiplies uint8",
     "write activation: int8"),
    (SKU, "weight: int8", "weight: uint8", "quantise.weight: uint8 weights have one scale", "per_channel: false"),
    (SKU, "weight: int8", "weight: uint8", "quantise.weight: no kernel multiplies", "write weight: int8"),
    (SKU, "format: qdq", "format: qoperator", 'quantise.format: unknown format "qoperator"', "Known: qdq"),
    (SKU, "weight: int8", "weight: int4", 'quantise.weight: unknown weight "int4"', 'did you mean "int8"'),
    (SKU, "    allow:\n", "      - {name: text-direction-int8, licence: MIT, path: a.onnx, sha256: \"" + "0" * 64
     + "\"}\n    allow:\n", 'models[1].name: "text-direction-int8" is what the int8 version of', "rename"),
    (SKU, "description: Text", 'description: "Text\\n"\n#', 'description: "Text\\n" is not taken', "one line"),
    (TOOLCHAIN, "  - git\n", "  - git --fix\n", 'packages: "git --fix" is not taken', "a Debian package"),
    (TOOLCHAIN, "compiler: gcc", "compiler: clang", 'compiler: unknown compiler "clang"', "Known: gcc"),
    (TOOLCHAIN, "image: null", "image: debian:bookworm", 'base.image: "debian:bookworm" is not taken', "digest"),
    (TOOLCHAIN, 'version: "3.31.6"', "version: 3.31", "wheels[0].version: 3.31 is a number", '"3.31"'),
    (SOURCES, "  - clamp.patch", "  - clam.patch", "the patch clam.patch cannot be read",
     "expected at recipes/patches/1.21.0/clam.patch"),
    (SOURCES, "size: 1\n", "size: -1\n", "components[0].size: ", "it is -1 now"),
    (SOURCES, "  ai.onnx: 22", "  1: 22", "a key must be text", "quotes"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new", "problem", "hint"), WRONG)
def test_a_wrong_value_is_told_with_file_line_and_remedy(
    project: FakeProject, file: str, old: str, new: str, problem: str, hint: str
) -> None:
    line = project.change(file, old, new)
    told = refused(project).splitlines()
    found = [index for index, text in enumerate(told) if problem in text]
    assert found, told
    assert told[found[0]].startswith(f"{file}:{line}: "), told
    assert told[found[0] + 1].startswith(" hint: "), told
    assert hint in told[found[0] + 1], told


def test_all_problems_of_all_files_are_told_at_once_in_their_order(project: FakeProject) -> None:
    lines = [
        project.change(SKU, "cpu: cortex-a53", "cpu: cortex-b53"),
        project.change(SKU, "flavor: minimal", "flavor: minimal\n  speed: high"),
        project.change(SKU, "[xnnpack, cpu]", "[xnpack]"),
        project.change(SKU, "python: capi", "python: wheel"),
        project.change(SKU, "- Pad", "- Pud"),
    ]
    compiler = project.change(TOOLCHAIN, "compiler: gcc", "compiler: icc")
    places = [text.split(": ")[0] for text in refused(project).splitlines() if not text.startswith(" hint")]
    assert places == [
        f"{SKU}:{lines[0]}",
        f"{SKU}:{lines[1] + 1}",
        f"{SKU}:{lines[2]}",
        f"{SKU}:{lines[2]}",
        f"{SKU}:{lines[3]}",
        f"{SKU}:{lines[4]}",
        f"{TOOLCHAIN}:{compiler}",
    ]


def test_a_missing_key_is_told_at_the_mapping_that_lacks_it(project: FakeProject) -> None:
    project.change(SKU, "  source_set: onnxruntime-1.21.0\n", "")
    line = project.text(SKU).split("\nruntime:")[0].count("\n") + 2
    assert f"{SKU}:{line}: runtime.source_set: is missing" in refused(project)


def test_a_model_has_exactly_one_place_and_a_name_of_its_own(project: FakeProject) -> None:
    second = "- name: text-direction\n        licence: MIT\n        sha256: " + "a" * 64
    line = project.change(
        SKU, "- name: text-direction", f"{second}\n      - name: text-direction\n        path: a.onnx"
    )
    told = refused(project)
    assert f"{SKU}:{line}: runtime.operators.models[0]: has no place" in told
    assert f"{SKU}:{line + 3}: runtime.operators.models[1]: has two places" in told
    assert f'{SKU}:{line + 3}: runtime.operators.models[1].name: "text-direction" is given twice' in told


def test_a_reduced_runtime_needs_some_operators(project: FakeProject) -> None:
    head, _, rest = project.text(SKU).partition("  operators:\n")
    project.write(SKU, head + "# The oldest" + rest.partition("# The oldest")[2])
    assert "runtime.operators: flavor: minimal keeps only named operators, and none are named" in refused(project)


def test_an_allow_entry_keeps_to_one_domain(project: FakeProject) -> None:
    project.change(SKU, "- Cast", "- com.microsoft:FusedConv")
    told = refused(project)
    assert "allow[0].operators: mixes domains: ai.onnx, com.microsoft" in told
    assert "opset 18 of com.microsoft is newer" in told


def test_both_names_of_onnx_own_domain_are_taken(project: FakeProject) -> None:
    project.change(SKU, "- Cast", "- ai.onnx:Cast")
    assert "ai.onnx:Cast" in config.resolve(project.paths, "demo-a53").sku.runtime.operators.allow[0].operators
    project.change(SKU, "- Clip", "- ai.onnx:Clop")
    assert 'unknown operator "Clop"' in refused(project)


def test_toolchains_with_an_older_glibc_are_named(project: FakeProject) -> None:
    old = project.text(TOOLCHAIN).replace("name: aarch64-bookworm", "name: aarch64-bullseye").replace("2.36", "2.31")
    project.write("toolchains/aarch64-bullseye.yaml", old)
    project.write("toolchains/broken.yaml", "schema: [")
    project.change(SKU, 'glibc: "2.36"', 'glibc: "2.31"')
    assert "hint: toolchains that fit: aarch64-bullseye" in refused(project)


FLAVOR = ("flavor: minimal", "flavor: reduced")
WHEEL = ("python: capi ", "python: wheel ")


@pytest.mark.parametrize(
    ("changes", "toolchain", "told"),
    [
        ([WHEEL], None, "runtime.python: upstream's Python wheel cannot be had with flavor: minimal"),
        ([("python: capi ", 'cpython: "3.11" ')], None, "runtime.cpython: is only asked for by a wheel"),
        (
            [FLAVOR, ("python: capi ", 'python: wheel\n  cpython: "3.13" ')],
            None,
            "runtime.cpython: aarch64-bookworm has no headers of CPython 3.13: it has those of 3.11",
        ),
        (
            [FLAVOR, WHEEL],
            "",
            "aarch64-bookworm has no headers of any CPython: it has none\n hint: no aarch64 toolchain has",
        ),
        (
            [FLAVOR, WHEEL],
            'cpython: "3.9"',
            "runtime.python: the wheel of ONNX Runtime 1.21.0 is for CPython 3.10 to 3.13, not for 3.9",
        ),
    ],
)
def test_a_wheel_that_cannot_be_had_is_told(
    project: FakeProject, changes: list[tuple[str, str]], toolchain: str | None, told: str
) -> None:
    for old, new in changes:
        project.change(SKU, old, new)
    if toolchain is not None:
        project.change(TOOLCHAIN, 'cpython: "3.11"', toolchain)
    assert told in refused(project)


def test_toolchains_with_headers_are_named(project: FakeProject) -> None:
    other = project.text(TOOLCHAIN).replace("name: aarch64-bookworm", "name: aarch64-other").replace("3.11", "3.13")
    project.write("toolchains/aarch64-other.yaml", other)
    project.change(SKU, *FLAVOR)
    project.change(SKU, "python: capi ", 'python: wheel\n  cpython: "3.13" ')
    assert "wheels can be had of: aarch64-bookworm (CPython 3.11), aarch64-other (CPython 3.13)" in refused(project)


def test_full_has_nothing_to_allow(project: FakeProject) -> None:
    project.change(SKU, "flavor: minimal", "flavor: full")
    assert "runtime.operators.allow: flavor: full keeps every operator" in refused(project)


def test_an_unknown_sku_names_the_nearest(project: FakeProject) -> None:
    assert 'unknown SKU "demo-a35"\n hint: did you mean "demo-a53"?' in refused(project, "demo-a35")
    assert SKUS.names(project.paths) == ("demo-a53",)


@pytest.mark.parametrize("sku", ["../demo-a53", "", "demo-a53.yaml", "/etc/passwd", "demo\n"])
def test_a_sku_is_a_name_and_never_a_path(project: FakeProject, sku: str) -> None:
    assert "unknown SKU" in refused(project, sku)


def test_a_source_set_without_its_table_of_operators_is_told(project: FakeProject) -> None:
    table = project.root / "recipes/operators/onnxruntime-1.21.0.json"
    table.write_text("[1]")
    assert "recipes/operators/onnxruntime-1.21.0.json: the table of operators cannot be read" in refused(project)
    table.unlink()
    assert "runtime.operators.allow: the operators of onnxruntime-1.21.0 are not known" in refused(project)


def test_loading_alone(project: FakeProject) -> None:
    assert SOURCE_SETS.load(project.paths, "onnxruntime-1.21.0").opsets["ai.onnx"] == 22
    assert TOOLCHAINS.load(project.paths, "aarch64-bookworm").floors.glibc == "2.36"
    with pytest.raises(ArmletError, match='unknown toolchain "x"'):
        TOOLCHAINS.load(project.paths, "x")
    project.change(SOURCES, "version:", "versoin:")
    with pytest.raises(ArmletError, match=r"onnxruntime-1\.21\.0\.yaml:3: versoin: unknown key"):
        SOURCE_SETS.load(project.paths, "onnxruntime-1.21.0")


def test_every_rule_holds_its_peace_on_an_empty_sku(project: FakeProject) -> None:
    project.write(SKU, "schema: 1\nruntime: 3\nfloors: []\n")
    told = refused(project)
    assert f"{SKU}:2: runtime: 3 is not keys and values" in told
    assert f"{SKU}:1: name: is missing" in told


def test_a_rule_that_looks_at_the_toolchain_waits_for_a_sound_one(project: FakeProject) -> None:
    resolved = config.resolve(project.paths, "demo-a53")
    document = SKUS.inspect(project.paths, "demo-a53")[1]
    assert document is not None
    case = Case(sku=document, toolchain=None, source_set=None, toolchains=(), operators=None)
    assert rules.check(case) == []
    other = resolved.toolchain.model_copy(update={"arch": "armhf"})
    told = [problem.what for problem in rules.check(replace(case, toolchain=other))]
    assert "cpu: cortex-a53 is an aarch64 core, and aarch64-bookworm compiles for armhf" in told
