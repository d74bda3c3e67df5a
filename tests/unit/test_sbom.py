"""Bills of materials: what is in them, in which form, and what is refused."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from armlet.config import Resolved, resolve
from armlet.errors import ArmletError, Kind
from armlet.sbom import cyclonedx, others, spdx
from armlet.sbom.bill import Bill, Part, file, joined, serial, why
from armlet.sbom.linked import GCC, GLIBC, components
from armlet.sbom.notice import notice
from armlet.sbom.runtime import Made, bill
from armlet.spec.source_set import Component
from tests.bills import cyclonedx_problems, spdx_problems
from tests.fakes.recipes import ROOT, FakeProject

LIBRARY = "lib/libonnxruntime.so.1.21.0"
MADE = Made(build_id="b" * 64, compiler="g++ 12.2.0", image="sha256:" + "1" * 64)
PACKAGES = {
    "g++-aarch64-linux-gnu": "4:12.2.0-3",
    "libc6-dev-arm64-cross": "2.36-8cross1",
    "libstdc++-12-dev-arm64-cross": "12.2.0-14cross1",
    "not-asked-for": "1",
}
MORE = """\
  - name: headers
    version: "2.0"
    licence: MIT OR Apache-2.0
    sha256: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
    size: 1
    urls: [https://files.example/headers-2.0.tar.gz]
  - name: onnx
    version: "1.17.0"
    licence: Apache-2.0
    purl: pkg:github/onnx/onnx@v{version}
    cpe: "cpe:2.3:a:linuxfoundation:onnx:{version}:*:*:*:*:*:*:*"
    sha256: cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc
    size: 1
    urls: [https://files.example/onnx-1.17.0.tar.gz]
    cmake: FETCHCONTENT_SOURCE_DIR_ONNX
"""
PATCH = b"Clamps\n\nWhy: it would be wrong\n  without it.\nUpstream status: sent.\n\n--- a/x\n+++ b/x\n"


@pytest.fixture
def project(tmp_path: Path) -> FakeProject:
    made = FakeProject(tmp_path / "project")
    made.write(made.source_set_file, made.text(made.source_set_file) + MORE)
    (made.root / "recipes/patches/1.21.0/clamp.patch").write_bytes(PATCH)
    return made


@pytest.fixture
def resolved(project: FakeProject) -> Resolved:
    return resolve(project.paths, "demo-a53")


@pytest.fixture
def made(resolved: Resolved, tmp_path: Path) -> Bill:
    for name in ("onnxruntime", "onnx", GCC, GLIBC):
        (tmp_path / f"{name}.txt").write_text("All rights.\n" if name != "onnx" else "Some rights.\n")
    shipped = tmp_path / "library"
    shipped.write_bytes(b"code")
    return bill(
        resolved,
        made=MADE,
        inside={LIBRARY: {"onnxruntime", "onnx", GCC, GLIBC}},
        packages=PACKAGES,
        texts=lambda name: [tmp_path / f"{name}.txt"],
        upstream=lambda path: path.encode(),
        files=[file(LIBRARY, shipped)],
    )


def by_name(text: str) -> dict[str, dict[str, Any]]:
    return {one["bom-ref"]: one for one in json.loads(text)["components"]}


def test_each_format_is_what_its_validator_takes(made: Bill, tmp_path: Path) -> None:
    assert cyclonedx_problems(cyclonedx.text(made)) == []
    assert spdx_problems(spdx.text(made), tmp_path) == []


def test_the_validators_see_what_is_wrong(made: Bill, tmp_path: Path) -> None:
    assert cyclonedx_problems(cyclonedx.text(made).replace('"file"', '"fyle"'))
    assert spdx_problems(spdx.text(made).replace("urn:uuid:", "no uri "), tmp_path)


def test_a_component_is_told_with_all_that_is_known(made: Bill) -> None:
    onnx = by_name(cyclonedx.text(made))["component:onnx"]
    assert (onnx["version"], onnx["scope"]) == ("1.17.0", "required")
    assert onnx["purl"] == "pkg:github/onnx/onnx@v1.17.0"
    assert onnx["cpe"] == "cpe:2.3:a:linuxfoundation:onnx:1.17.0:*:*:*:*:*:*:*"
    assert onnx["hashes"] == [{"alg": "SHA-256", "content": "c" * 64}]
    assert onnx["licenses"][0]["expression"] == "Apache-2.0"
    [package] = [one for one in json.loads(spdx.text(made))["packages"] if one["name"] == "onnx"]
    assert package["checksums"] == [{"algorithm": "SHA256", "checksumValue": "c" * 64}]
    assert {one["referenceType"] for one in package["externalRefs"]} == {"purl", "cpe23Type"}


def test_patches_come_with_their_hash_and_reason(made: Bill) -> None:
    [part] = [one for one in made.parts if one.name == "onnxruntime"]
    assert [patch.name for patch in part.patches] == ["clamp.patch", "onnxruntime:cmake/patches/other.patch"]
    assert part.patches[0].why == "it would be wrong without it."
    told = by_name(cyclonedx.text(made))["component:onnxruntime"]
    assert len(told["pedigree"]["patches"]) == 2
    assert part.patches[0].why in told["pedigree"]["notes"]
    [package] = [one for one in json.loads(spdx.text(made))["packages"] if one["name"] == "onnxruntime"]
    assert all(patch.sha256 in package["sourceInfo"] for patch in part.patches)
    assert why(b"--- a\n") == ""


def test_what_only_built_it_is_marked(made: Bill) -> None:
    listed = by_name(cyclonedx.text(made))
    assert listed["component:headers"]["scope"] == "excluded"
    assert listed["tool:g++-aarch64-linux-gnu"]["scope"] == "excluded"
    assert "tool:not-asked-for" not in listed
    assert "tool:cmake" in listed
    kinds = {one["spdxElementId"]: one["relationshipType"] for one in json.loads(spdx.text(made))["relationships"]}
    assert kinds["SPDXRef-component-headers"] == "BUILD_DEPENDENCY_OF"
    assert kinds["SPDXRef-tool-cmake"] == "BUILD_TOOL_OF"
    assert made.licence == "Apache-2.0 AND GPL-3.0-or-later WITH GCC-exception-3.1 AND LGPL-2.1-or-later AND MIT"


def test_a_tool_may_have_a_components_name(made: Bill, tmp_path: Path) -> None:
    more = replace(made, parts=(*made.parts, Part(name="onnx", version="9", role="build", tool=True)))
    assert {"component:onnx", "tool:onnx"} <= set(by_name(cyclonedx.text(more)))
    assert spdx_problems(spdx.text(more), tmp_path) == []


def test_dependencies_say_what_is_in_which_file(made: Bill) -> None:
    depends = {one["ref"]: set(one.get("dependsOn", ())) for one in json.loads(cyclonedx.text(made))["dependencies"]}
    assert depends[f"file:{LIBRARY}"] == {f"component:{one}" for one in ("onnxruntime", "onnx", GCC, GLIBC)}
    assert "component:headers" not in depends["root"]


def test_equal_bills_are_equal_bytes_and_other_ones_have_another_number(made: Bill) -> None:
    moved = replace(made, parts=tuple(replace(one, texts=(Path("/else/where"),)) for one in made.parts))
    assert (cyclonedx.text(moved), spdx.text(moved)) == (cyclonedx.text(made), spdx.text(made))
    assert serial(replace(made, version="9")) != serial(made)
    assert json.loads(cyclonedx.text(made))["metadata"]["timestamp"].startswith("2025-03-08T00:00:00")


def test_the_notice_has_each_text_of_what_ships_once_and_no_other(made: Bill) -> None:
    text = notice(made)
    assert text.count("All rights.") == text.count("Some rights.") == 1
    shipped, _, built = text.partition("Used to build it, and not part of it:")
    assert "headers 2.0" in built
    assert "headers" not in shipped
    assert "clamp.patch" in shipped


def test_of_a_text_per_licence_those_that_apply_count(made: Bill, tmp_path: Path) -> None:
    folder = tmp_path / "LICENSES"
    folder.mkdir()
    for name in ("MIT", "GPL-3.0-only"):
        (folder / f"{name}.txt").write_text(f"terms of {name}")
    third = tmp_path / "ThirdPartyNotices.txt"
    third.write_text("terms of all others")
    part = Part(name="x", version="1", role="linked", licence="MIT", texts=(*sorted(folder.iterdir()), third))
    text = notice(replace(made, parts=(part,)))
    assert "terms of MIT" in text
    assert "terms of GPL" not in text
    assert "terms of all others" not in text
    assert "ThirdPartyNotices.txt" in text


def test_a_component_that_ships_without_a_text_is_refused(made: Bill) -> None:
    with pytest.raises(ArmletError, match="no licence text of x") as told:
        notice(replace(made, parts=(Part(name="x", version="1", role="linked", licence="MIT"),)))
    assert told.value.kind is Kind.BUILD


@pytest.mark.parametrize("licence", ["MITT", "MIT and friends", '""', "GPL-2.0 WITH no-such-exception"])
def test_a_licence_that_spdx_does_not_know_is_refused_at_its_line(project: FakeProject, licence: str) -> None:
    line = project.change(project.source_set_file, "licence: MIT OR Apache-2.0", f"licence: {licence}")
    with pytest.raises(ArmletError, match="no SPDX expression") as told:
        resolve(project.paths, "demo-a53")
    assert f"{project.source_set_file}:{line}" in str(told.value)


@pytest.mark.parametrize("line", ['purl: "pkg:github/a/b@{versoin}"', 'cpe: "cpe:2.3:a:v:p:{version:*:*:*:*:*:*:*"'])
def test_a_name_for_scanners_with_another_word_in_braces_is_refused(project: FakeProject, line: str) -> None:
    licence = "licence: MIT OR Apache-2.0"
    project.change(project.source_set_file, licence, f"{licence}\n    {line}")
    with pytest.raises(ArmletError, match="is not taken"):
        resolve(project.paths, "demo-a53")


def test_a_licence_that_is_missing_is_told_at_its_component(project: FakeProject) -> None:
    line = project.change(project.source_set_file, "    licence: MIT OR Apache-2.0\n", "")
    with pytest.raises(ArmletError, match="licence") as told:
        resolve(project.paths, "demo-a53")
    assert f"{project.source_set_file}:{line - 2}" in str(told.value)


def test_a_licence_of_ones_own_is_taken(project: FakeProject, made: Bill, tmp_path: Path) -> None:
    project.change(project.source_set_file, "licence: MIT OR Apache-2.0", "licence: LicenseRef-House-1")
    assert resolve(project.paths, "demo-a53").components[1].licence == "LicenseRef-House-1"
    own = replace(made, parts=(Part(name="x", version="1", role="linked", licence="LicenseRef-House-1"),))
    assert spdx_problems(spdx.text(own), tmp_path) == []


def component(name: str, cmake: str | None = None) -> Component:
    return Component(
        name=name, version="1", licence="MIT", sha256="a" * 64, size=1, urls=("https://x.example/x",), cmake=cmake
    )


KNOWN = (
    component("onnxruntime"),
    component("onnx", "FETCHCONTENT_SOURCE_DIR_ONNX"),
    component("abseil", "FETCHCONTENT_SOURCE_DIR_ABSEIL_CPP"),
    component("eigen", "FETCHCONTENT_SOURCE_DIR_EIGEN"),
)


def link_map(*owners: str) -> str:
    lines = "".join(f" .text.x          0x0000000000001000       0x40 {one}\n" for one in owners)
    return f"Discarded\n .text.y  0x0000000000000000  0x10 libgone.a(x.o)\n\nLinker script and memory map\n\n{lines}"


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        ("libonnxruntime_session.a(unity_1_cxx.cxx.o)", "onnxruntime"),
        ("CMakeFiles/onnxruntime.dir/generated_source.c.o", "onnxruntime"),
        ("libonnx_proto.a(onnx-ml.pb.cc.o)", "onnx"),
        ("_deps/onnx-build/libonnx.a(schema.cc.o)", "onnx"),
        ("_deps/abseil_cpp-build/absl/hash/libabsl_hash.a(hash.cc.o)", "abseil"),
        ("/usr/lib/gcc-cross/aarch64-linux-gnu/12/libstdc++.a(new_op.o)", GCC),
        ("/usr/lib/gcc-cross/aarch64-linux-gnu/12/crtbeginS.o", GCC),
        ("/usr/lib/gcc-cross/aarch64-linux-gnu/12/../../../../aarch64-linux-gnu/lib/../lib/crti.o", GLIBC),
        ("/usr/aarch64-linux-gnu/lib/libc_nonshared.a(atexit.oS)", GLIBC),
        ("/sdk/tim-vx/lib/libovx.a(x.o)", "sdk-tim-vx"),
    ],
)
def test_whose_an_archive_is(owner: str, name: str) -> None:
    assert components(link_map(owner), (), KNOWN) == {name}


def test_what_the_linker_left_out_is_not_in_it_and_headers_are_where_their_code_is() -> None:
    sources = {"/usr/src/armlet/eigen/Eigen/src/Core/Dot.h", "/usr/include/stdio.h", "/usr/src/armlet-build/x.pb.cc"}
    text = link_map("libonnxruntime_session.a(x.o)")
    text += " .text.z          0x0000000000001000       0x0 _deps/abseil_cpp-build/libabsl_hash.a(x.o)\n"
    assert components(text, sources, KNOWN) == {"onnxruntime", "eigen"}
    assert GCC in components(link_map(), {"/usr/aarch64-linux-gnu/include/c++/12/bits/stl_vector.h"}, KNOWN)


def test_an_archive_of_nobody_is_refused() -> None:
    with pytest.raises(ArmletError, match=r"/opt/libsecret\.a") as told:
        components(link_map("/opt/libsecret.a(x.o)"), (), KNOWN)
    assert told.value.kind is Kind.BUILD


def test_licences_are_joined_once() -> None:
    assert joined(["MIT", None, "MIT"]) == "MIT"
    assert joined(["MIT OR X11", "Zlib"]) == "(MIT OR X11) AND Zlib"
    assert joined([None]) is None


def test_the_services_bill(tmp_path: Path) -> None:
    module = tmp_path / "armlet_runtime" / "a.py"
    module.parent.mkdir()
    module.write_text("x = 1\n")
    made = others.service("armlet-serve", "1.0", tmp_path, [module])
    assert cyclonedx_problems(cyclonedx.text(made)) == []
    assert spdx_problems(spdx.text(made), tmp_path) == []
    optional = {key for key, one in by_name(cyclonedx.text(made)).items() if one.get("scope") == "optional"}
    project = (ROOT / "device" / "pyproject.toml").read_text()
    _, _, extras = project.partition("[project.optional-dependencies]\n")
    # And what may take PyNaCl's place.
    wanted = {name.lower() for name in re.findall(r'\["([\w-]+)', extras.partition("\n[")[0])}
    assert optional == {f"component:{name}" for name in {*wanted, "cryptography"}}
