from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from armlet import digest, gates, lines, manifest
from armlet.config import Resolved, resolve
from armlet.engine import Mount
from armlet.errors import ArmletError, Kind
from armlet.events import Sink, silent
from armlet.process import Command, Done
from armlet.steps import image, package
from armlet.steps.base import Work
from armlet.steps.runtime_tree import licence_files
from tests.fakes.elf_file import FakeElf
from tests.fakes.recipes import FakeProject
from tests.fakes.runner import FakeRunner, done

_CLASS = "kCpuExecutionProvider_Conv_kOnnxDomain_ver22"
KERNEL = f"_ZN11onnxruntime21BuildKernelCreateInfoINS_{len(_CLASS)}{_CLASS}EEENS_16KernelCreateInfoEv"
REGISTRATIONS = """
  BuildKernelCreateInfo<ONNX_OPERATOR_KERNEL_CLASS_NAME(kCpuExecutionProvider, kOnnxDomain, 22, Conv)>,
  BuildKernelCreateInfo<ONNX_OPERATOR_KERNEL_CLASS_NAME(kCpuExecutionProvider, kOnnxDomain, 13, Dropped)>,
"""
LINK_MAP = """
Linker script and memory map

 .text          0x0000000000001000       0x40 libonnxruntime_session.a(onnxruntime_c_api.cc.o)
 .text          0x0000000000002000       0x40 /usr/lib/gcc-cross/aarch64-linux-gnu/12/libstdc++.a(new.o)
 .debug_info    0x0000000000000000       0x40 _deps/abseil_cpp-build/absl/libabsl_hash.a(hash.cc.o)
"""
LIBRARY = "libonnxruntime.so.1.21.0"
HEADERS = ("c_api", "cxx_api", "cxx_inline", "float16", "lite_custom_op", "run_options_config_keys",
           "session_options_config_keys")  # fmt: skip


class FakeToolchain:
    """The few tools that packing needs: splits a ``FakeElf`` as objcopy would split a real one."""

    def __init__(self, mounts: Sequence[Mount], library: FakeElf) -> None:
        self._folders = {mount.target: mount.source for mount in mounts}
        self._library = library
        self._debug = FakeElf(symbols=(KERNEL,), debug_data=b"lines")

    def run(self, command: Command, emit: Sink = silent) -> Done:
        name, *arguments = command.argv
        scratch = self._folders["/scratch"]
        if name.endswith("-objcopy"):
            if arguments[0] == "--only-keep-debug":
                (scratch / arguments[-1]).write_bytes(self._debug.build())
                (scratch / arguments[-1]).chmod(0o755)
            elif arguments[0] == "--strip-unneeded":
                (scratch / arguments[-1]).write_bytes(self._library.build())
        elif name == "cp":
            content = b"terms" if arguments[-1].endswith("copyright") else FakeElf(kernel=(3, 7, 0)).build()
            (scratch / arguments[-1]).write_bytes(content)
        elif arguments == ["-dumpversion"]:
            return Done(code=0, tail=("12",))
        elif arguments == ["--version"]:
            return Done(code=0, tail=("aarch64-linux-gnu-g++ (Debian 12.2.0-14) 12.2.0", "", "free software"))
        else:
            assert arguments == ["-print-file-name=libc.so.6"], arguments
            return Done(code=0, tail=("/usr/lib/libc.so.6",))
        return Done(code=0, tail=())


class FakeEngine:
    def __init__(self, library: FakeElf) -> None:
        self._library = library

    @contextmanager
    def container(self, *, image: str, mounts: Sequence[Mount], name: str) -> Iterator[FakeToolchain]:
        assert next(mount for mount in mounts if mount.target == "/in").read_only
        yield FakeToolchain(mounts, self._library)


@pytest.fixture
def resolved(tmp_path: Path) -> Resolved:
    return resolve(FakeProject(tmp_path / "project").paths, "demo-a53")


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    folder = tmp_path / "sources" / "onnxruntime"
    session = folder / "include/onnxruntime/core/session"
    session.mkdir(parents=True)
    for name in HEADERS:
        (session / f"onnxruntime_{name}.h").write_text("#pragma once\n")
    provider = folder / "include/onnxruntime/core/providers/cpu"
    provider.mkdir(parents=True)
    (provider / "cpu_provider_factory.h").write_text("#pragma once\n")
    (folder / "LICENSE").write_text("MIT")
    (folder / "cmake/patches").mkdir(parents=True)
    (folder / "cmake/patches/other.patch").write_text("--- a\n+++ b\n")
    return folder.parent


@pytest.fixture
def compiled(tmp_path: Path) -> Path:
    folder = tmp_path / "compile"
    (folder / "reduced").mkdir(parents=True)
    (folder / "reduced" / "cpu_execution_provider.cc").write_text(REGISTRATIONS)
    (folder / LIBRARY).write_bytes(FakeElf(symbols=(KERNEL,), debug_data=b"lines").build())
    (folder / "onnxruntime.map").write_text(LINK_MAP)
    return folder


class Bench:
    """Runs the step in a folder of its own."""

    def __init__(self, tmp_path: Path, resolved: Resolved, sources: Path, compiled: Path) -> None:
        self.tmp_path, self.resolved, self.sources, self.compiled = tmp_path, resolved, sources, compiled

    def run(self, name: str = "out", library: FakeElf | None = None) -> Path:
        out, scratch = self.tmp_path / name, self.tmp_path / f"{name}-scratch"
        out.mkdir()
        scratch.mkdir()
        (scratch / "left-over").write_text("of an interrupted run")
        engine: Any = FakeEngine(library or FakeElf())
        package.STEP.run(
            Work(
                id="c" * 64,
                resolved=self.resolved,
                paths=FakeProject(self.tmp_path / f"{name}-project").paths,
                engine=engine,
                inputs={"sources": self.sources, "compile": self.compiled, "image": self.tmp_path},
                out=out,
                scratch=scratch,
                emit=silent,
                jobs=1,
            )
        )
        return out


@pytest.fixture
def bench(tmp_path: Path, resolved: Resolved, sources: Path, compiled: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    info = image.ImageInfo(tag="t", id="i", digest="sha256:" + "1" * 64, compiler="gcc", packages={})
    monkeypatch.setattr(image, "ensure", lambda **_: info)
    # A FakeElf has no line tables that could be read.
    monkeypatch.setattr(lines, "sources", lambda _data: frozenset({"/usr/src/armlet/onnxruntime/session.cc"}))
    return Bench(tmp_path, resolved, sources, compiled)


BILLS = ("NOTICE", "sbom.cdx.json", "sbom.spdx.json")
NAME = "armlet-runtime-demo-a53-1.21.0-aarch64-linux-gnu"


def test_what_is_handed_over(bench: Bench) -> None:
    out = bench.run()
    assert sorted(path.name for path in out.iterdir()) == sorted(
        (NAME, f"{NAME}.tar.xz", f"{NAME}-dbg.tar.xz", "runtime.json", "gates.json", *BILLS, "SHA256SUMS")
    )
    files = {path.relative_to(out / NAME).as_posix() for path in (out / NAME).rglob("*") if not path.is_dir()}
    assert files == {
        "runtime.json",
        "lib/libonnxruntime.so",
        "lib/libonnxruntime.so.1",
        "lib/libonnxruntime.so.1.21.0",
        "lib/pkgconfig/libonnxruntime.pc",
        "lib/cmake/onnxruntime/onnxruntimeConfig.cmake",
        "lib/cmake/onnxruntime/onnxruntimeConfigVersion.cmake",
        *(f"include/onnxruntime/onnxruntime_{name}.h" for name in HEADERS),
        "include/onnxruntime/cpu_provider_factory.h",
        "share/doc/armlet-runtime/licences/onnxruntime/LICENSE",
        "share/doc/armlet-runtime/licences/gcc-runtime/copyright",
        "share/doc/armlet-runtime/licences/glibc/copyright",
        "share/doc/armlet-runtime/NOTICE",
    }
    assert (out / NAME / "lib/libonnxruntime.so").resolve().name == LIBRARY


def test_the_manifest_is_measured(bench: Bench) -> None:
    out = bench.run()
    made = manifest.read_manifest(out / "runtime.json")
    assert made == manifest.read_manifest(out / NAME / "runtime.json")
    assert made.build_id == "c" * 64
    assert made.operators is not None
    assert {domain: set(table) for domain, table in made.operators.items()} == {"ai.onnx": {"Conv"}}
    assert made.requires.kernel == "3.7"
    assert made.toolchain.compiler == "aarch64-linux-gnu-g++ (Debian 12.2.0-14) 12.2.0"
    assert made.toolchain.image == "sha256:" + "1" * 64
    for file in made.files:
        assert digest.of_file(out / NAME / file.path) == file.sha256


def test_sums_are_right(bench: Bench) -> None:
    out = bench.run()
    sums = (out / "SHA256SUMS").read_text().splitlines()
    listed = {name: expected for expected, name in (line.split("  ") for line in sums)}
    assert set(listed) == {f"{NAME}.tar.xz", f"{NAME}-dbg.tar.xz", "runtime.json", "gates.json", *BILLS}
    assert all(digest.of_file(out / name) == expected for name, expected in listed.items())


def test_two_runs_give_the_same_bytes(bench: Bench) -> None:
    assert (bench.run("one") / "SHA256SUMS").read_text() == (bench.run("two") / "SHA256SUMS").read_text()


def test_tarballs_say_nothing_of_who_packed_them(bench: Bench) -> None:
    out = bench.run()
    for name in (f"{NAME}.tar.xz", f"{NAME}-dbg.tar.xz"):
        with tarfile.open(out / name) as archive:
            members = archive.getmembers()
        assert [member.name for member in members] == sorted(member.name for member in members)
        assert {(member.uid, member.gid, member.uname, member.gname) for member in members} == {(0, 0, "root", "root")}
        assert len({member.mtime for member in members}) == 1
        assert not any(member.pax_headers for member in members)


def test_debug_data_is_no_program(bench: Bench) -> None:
    with tarfile.open(bench.run() / f"{NAME}-dbg.tar.xz") as archive:
        assert archive.getmember(f"{NAME}-dbg/lib/{LIBRARY}.debug").mode == 0o644


def test_the_gates_answers_are_recorded_and_the_same_when_measured_anew(bench: Bench) -> None:
    out = bench.run()
    recorded = gates.recorded(out / "gates.json")
    assert [result.name for result in recorded] == [gate.name for gate in gates.GATES]
    assert gates.evaluate(out, bench.resolved) == recorded


def test_a_failed_gate_fails_the_step(bench: Bench) -> None:
    with pytest.raises(ArmletError, match="RPATH/RUNPATH is /opt") as raised:
        bench.run(library=FakeElf(runpath="/opt"))
    assert raised.value.kind is Kind.GATE


def test_a_library_that_came_stripped_is_refused(bench: Bench) -> None:
    (bench.compiled / LIBRARY).write_bytes(FakeElf().build())
    with pytest.raises(ArmletError, match="2 kernels registered, 0 found") as raised:
        bench.run()
    assert raised.value.kind is Kind.BUILD


def test_a_missing_header_is_named(bench: Bench) -> None:
    header = bench.sources / "onnxruntime/include/onnxruntime/core/session/onnxruntime_c_api.h"
    header.unlink()
    with pytest.raises(ArmletError, match=r"onnxruntime_c_api\.h"):
        bench.run()


def test_a_component_without_a_licence_is_not_shipped(bench: Bench) -> None:
    (bench.sources / "onnxruntime" / "LICENSE").unlink()
    with pytest.raises(ArmletError, match="no licence text of onnxruntime") as raised:
        bench.run()
    assert "keep:" in raised.value.hint


def test_a_debian_package_keeps_its_licence_elsewhere(tmp_path: Path) -> None:
    place = tmp_path / "usr/share/doc/libsafeint-dev"
    place.mkdir(parents=True)
    (place / "copyright").write_text("MIT")
    assert licence_files(tmp_path, "safeint") == [place / "copyright"]


def test_the_step_depends_on_what_it_judges_by(resolved: Resolved) -> None:
    facts = digest.of_value(package.STEP.facts(resolved))
    lower = resolved.sku.floors.model_copy(update={"glibc": "2.17"})
    changed = {"sku": resolved.sku.model_copy(update={"floors": lower})}
    other = type(resolved)(**{name: changed.get(name, getattr(resolved, name)) for name in resolved.__slots__})
    assert digest.of_value(package.STEP.facts(other)) != facts


def test_emitted_packages_find_themselves_wherever_they_are_put(bench: Bench, tmp_path: Path) -> None:
    out = bench.run()
    moved = tmp_path / "some where else"
    shutil.move(out / NAME, moved)
    for file in moved.rglob("*"):
        if file.suffix in (".pc", ".cmake"):
            text = file.read_text()
            assert str(tmp_path) not in text
            assert "pcfiledir" in text or "CMAKE_CURRENT_LIST_DIR" in text or "PACKAGE_VERSION" in text


def test_gates_json_of_another_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "gates.json").write_text(json.dumps({"gates": 1}))
    with pytest.raises(ArmletError, match="cannot be read"):
        gates.recorded(tmp_path / "gates.json")


@pytest.mark.parametrize(
    ("said", "kind", "remedy"),
    [
        ("objcopy: out: No space left on device", Kind.HOST, "ARMLET_CACHE"),
        ("objcopy: in: file format not recognized", Kind.BUILD, "--verbose"),
    ],
)
def test_a_tool_that_fails_is_told_with_what_it_said(tmp_path: Path, said: str, kind: Kind, remedy: str) -> None:
    resolved = resolve(FakeProject(tmp_path).paths, "demo-a53")
    runner = FakeRunner({"--only-keep-debug": done(1, said)})
    with pytest.raises(ArmletError) as told:
        package.strip(runner, resolved, LIBRARY, scratch=tmp_path)
    assert told.value.kind is kind
    assert said in told.value.what
    assert remedy in told.value.hint
