"""Libraries that travel in the package and were linked by somebody else: laid out, judged and listed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from armlet import config
from armlet.config import Resolved
from armlet.emit import cmake_package, pkgconfig
from armlet.gates import Artefact, run_gates
from armlet.manifest import assemble
from armlet.spec.source_set import Component, Only
from armlet.steps.runtime_tree import lay_out
from tests.fakes.artefacts import EXPECTED, fake_artefact
from tests.fakes.elf_file import FakeElf
from tests.fakes.recipes import FakeProject

FILE, SONAME = "libarm_compute.so.43.0.0", "libarm_compute.so.43"
CXX = ("libstdc++.so.6", "libgcc_s.so.1")
# As Debian's is: partial RELRO, the C++ runtime of the rootfs.
LIBRARY = FakeElf(
    soname=SONAME,
    needed=("libstdc++.so.6", "libc.so.6"),
    bind_now=False,
    asks=(("malloc", "GLIBC_2.17"), ("_Znwm", "GLIBCXX_3.4.32")),
    exports=("anything",),
)
MAIN = FakeElf(needed=(SONAME, "libc.so.6", "libgcc_s.so.1"))
EXPECTS = replace(
    EXPECTED, foreign=frozenset({f"lib/{FILE}"}), glibcxx="3.4.33", needed=EXPECTED.needed.union(CXX)
)  # fmt: skip


def artefact(library: FakeElf = LIBRARY, *, main: FakeElf = MAIN, link: str = FILE) -> Artefact:
    more: Mapping[str, bytes | str] = {f"lib/{FILE}": library.build(), f"lib/{SONAME}": link}
    return fake_artefact(main, expected=EXPECTS, more=more)


def failed(made: Artefact) -> dict[str, str]:
    return {result.name: result.problems[0].what for result in run_gates(made) if not result.ok}


def test_a_good_one_passes_and_is_shown() -> None:
    results = {result.name: result for result in run_gates(artefact())}
    assert [result.name for result in results.values() if not result.ok] == []
    assert f"; {FILE} " in results["size"].measured
    assert results["relro"].measured == f"full; {FILE} partial"
    assert results["glibcxx"].measured == "3.4.32 (at most 3.4.33)"


@pytest.mark.parametrize(
    ("made", "gate", "told"),
    [
        (artefact(replace(LIBRARY, relro=False)), "relro", f"lib/{FILE}: RELRO is none"),
        (artefact(main=replace(MAIN, bind_now=False)), "relro", "libonnxruntime.so.1.21.0: RELRO is partial"),
        (artefact(replace(LIBRARY, runpath="/opt")), "rpath", f"lib/{FILE}: RPATH/RUNPATH is /opt"),
        (artefact(replace(LIBRARY, needed=("libgomp.so.1",))), "needed", f"lib/{FILE}: needs libgomp.so.1"),
        (artefact(replace(LIBRARY, asks=(("a", "GLIBC_2.38"),))), "glibc", "a@GLIBC_2.38"),
        (artefact(replace(LIBRARY, asks=(("a", "GLIBC_2.17"), ("b", "GLIBCXX_3.5")))), "glibcxx", "b@GLIBCXX_3.5"),
        (artefact(replace(LIBRARY, symbols=("main",))), "debug", f"lib/{FILE}: is not stripped"),
        (artefact(link="elsewhere"), "soname", f"lib/{SONAME}: is no link to {FILE}"),
        (artefact(replace(LIBRARY, soname="")), "soname", f"lib/{FILE}: is no shared library that can be found"),
        (artefact(main=FakeElf()), "soname", "travels in the package, and"),
    ],
)  # fmt: skip
def test_a_bad_one_is_stopped(made: Artefact, gate: str, told: str) -> None:
    problems = failed(made)
    assert told in problems[gate]
    assert set(problems) <= {gate, "needed"}


def test_one_that_is_not_there_is_told() -> None:
    assert "is no shared library" in failed(fake_artefact(MAIN, expected=EXPECTS))["soname"]


@pytest.fixture
def resolved(tmp_path: Path) -> Resolved:
    made = config.resolve(FakeProject(tmp_path / "project").paths, "demo-a53")
    component = Component(
        name="acl",
        version="24.11",
        licence="MIT",
        sha256="b" * 64,
        size=1,
        urls=("https://example.org/acl_24.11.deb",),
        ships=(f"usr/lib/{FILE}",),
        only=Only(provider="xnnpack"),
    )
    components = (*made.source_set.components, component)
    return replace(made, source_set=made.source_set.model_copy(update={"components": components}))


def test_it_is_laid_out_beside_the_library(resolved: Resolved, tmp_path: Path) -> None:
    sources = tmp_path / "sources"
    session = sources / "onnxruntime/include/onnxruntime/core/session"
    session.mkdir(parents=True)
    for name in ("c_api", "cxx_api", "cxx_inline", "float16", "lite_custom_op", "run_options_config_keys",
                 "session_options_config_keys"):  # fmt: skip
        (session / f"onnxruntime_{name}.h").touch()
    (sources / "onnxruntime/LICENSE").touch()
    (sources / "acl/usr/lib").mkdir(parents=True)
    (sources / "acl/usr/lib" / FILE).write_bytes(LIBRARY.build())
    (sources / "acl/LICENSES").mkdir()
    (sources / "acl/LICENSES/MIT.txt").write_text("terms")
    for name in ("library", "licence"):
        (tmp_path / name).write_bytes(b"x")
    tree = tmp_path / "tree"
    lay_out(
        resolved,
        library=tmp_path / "library",
        sources=sources,
        toolchain_licences={"gcc-runtime": tmp_path / "licence"},
        tree=tree,
    )
    assert (tree / "lib" / FILE).read_bytes() == LIBRARY.build()
    assert str((tree / "lib" / SONAME).readlink()) == FILE
    assert (tree / "share/doc/armlet-runtime/licences/acl/MIT.txt").read_text() == "terms"
    assert "-Wl,-rpath-link,${libdir}" in (tree / pkgconfig.PATH).read_text()
    assert "IMPORTED_LINK_DEPENDENT_LIBRARIES" in (tree / cmake_package.CONFIG).read_text()


def test_the_manifest_lists_what_the_rootfs_has_to_bring(resolved: Resolved) -> None:
    made = assemble(
        resolved, artefact(), build_id="c" * 64, kernel="3.7.0", operators=None, image="sha256:0", compiler="gcc"
    )
    assert made.requires.libraries == ("libc.so.6", "libgcc_s.so.1", "libstdc++.so.6")
    assert made.requires.glibcxx == "3.4.32"
    assert f"lib/{FILE}" in {file.path for file in made.files}
