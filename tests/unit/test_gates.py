from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from armlet import gates
from armlet.config import Resolved, resolve
from armlet.digest import of_file
from armlet.errors import ArmletError, Kind
from armlet.gates import demand, demand_intact, evaluate, expected_of, run_gates, runtime_name
from armlet.gates.reading import forbidden_prefixes, leaks, tarball, tree
from armlet.steps.archive import write_tarball
from tests.fakes.artefacts import DEBUG, EXPECTED, LIBRARY, fake_artefact
from tests.fakes.elf_file import FakeElf
from tests.fakes.recipes import FakeProject


@pytest.fixture
def resolved(tmp_path: Path) -> Resolved:
    return resolve(FakeProject(tmp_path / "project").paths, "demo-a53")


def problems(artefact: gates.Artefact, name: str) -> list[str]:
    (result,) = [result for result in run_gates(artefact) if result.name == name]
    return [problem.what for problem in result.problems]


class TestLeaks:
    def test_only_the_start_of_a_path_counts(self) -> None:
        assert leaks(b"\0/src/a.cc\0", ("/src",)) == ("/src/a.cc",)
        assert leaks(b"\0/usr/src/armlet/a.cc\0x/src/b\0./src/c\0-/src/d", ("/src",)) == ()

    def test_the_folder_itself_counts_at_the_end_of_a_string(self) -> None:
        assert leaks(b"dir\0/build\0", ("/build",)) == ("/build",)
        assert leaks(b"dir\0/builder\0see /build for more", ("/build",)) == ()

    def test_names_with_spaces_and_umlauts_are_found(self) -> None:
        prefix = "/home/jürgen/my project"
        assert leaks(f"-I{prefix}/a.h".encode(), (prefix,)) == ()
        assert leaks(f"={prefix}/a.h".encode(), (prefix,)) == (f"{prefix}/a.h",)

    def test_a_few_are_enough(self) -> None:
        data = b"".join(b"\0/src/%d.cc" % number for number in range(100))
        assert len(leaks(data, ("/src",))) == 3

    def test_nothing_forbidden_finds_nothing(self) -> None:
        assert leaks(b"\0/src/a\0", ()) == ()

    def test_places_that_every_machine_has_are_no_secret(self) -> None:
        found = forbidden_prefixes(Path("/"), Path("/usr/src"), Path("/data/me/armlet"))
        assert "/" not in found
        assert "/usr/src" not in found
        assert "/data/me/armlet" in found

    def test_debug_files_and_link_targets_are_searched(self) -> None:
        debug = {DEBUG: FakeElf(symbols=("a",), debug_data=b"\0/home/somebody/project/x.cc\0").build()}
        assert problems(fake_artefact(debug=debug), "paths") == [
            f"{DEBUG}: names a place of the machine that built it: /home/somebody/project/x.cc"
        ]
        more = {"lib/other.so": "/build/other.so"}
        assert "lib/other.so" in problems(fake_artefact(more=more), "paths")[0]


class TestGlibc:
    @pytest.mark.parametrize(
        ("version", "passes"),
        [
            ("GLIBC_2.4", True),
            ("GLIBC_2.36", True),
            ("GLIBC_2.37", False),
            ("GLIBC_2.100", False),
            ("GLIBC_ABI_DT_RELR", True),
            ("GLIBC_ABI_GNU2_TLS", False),
            ("GLIBC_PRIVATE", False),
        ],
    )
    def test_versions_are_compared_as_numbers(self, version: str, passes: bool) -> None:
        found = problems(fake_artefact(FakeElf(asks=(("f", version), ("g", "GLIBC_2.17")))), "glibc")
        assert found == ([] if passes else [f"{LIBRARY}: asks for f@{version}; the SKU's rootfs has glibc 2.36"])

    def test_every_offending_symbol_is_named(self) -> None:
        (found,) = problems(fake_artefact(FakeElf(asks=(("b", "GLIBC_2.38"), ("a", "GLIBC_2.38")))), "glibc")
        assert "a@GLIBC_2.38, b@GLIBC_2.38" in found

    def test_a_library_for_another_libc_is_stopped(self) -> None:
        found = problems(fake_artefact(FakeElf(asks=(("f", "OTHER_1"),))), "glibc")
        assert found == [f"{LIBRARY}: asks for no glibc version at all"]


class TestSoname:
    def test_a_ring_of_links_leads_nowhere(self) -> None:
        more = {"lib/libonnxruntime.so": "libonnxruntime.so.1", "lib/libonnxruntime.so.1": "libonnxruntime.so"}
        assert len(problems(fake_artefact(more=more), "soname")) == 2

    def test_a_link_out_of_the_folder_leads_nowhere(self) -> None:
        more = {"lib/libonnxruntime.so": "/usr/lib/libonnxruntime.so.1.21.0"}
        assert problems(fake_artefact(more=more), "soname") == [
            "lib/libonnxruntime.so: is no link to libonnxruntime.so.1.21.0"
        ]


class TestDebug:
    def test_another_builds_debug_file_is_refused(self) -> None:
        debug = {DEBUG: FakeElf(build_id=b"another", debug_data=b"x").build()}
        (found,) = problems(fake_artefact(debug=debug), "debug")
        assert b"another".hex() in found

    def test_an_empty_debug_file_is_refused(self) -> None:
        (found,) = problems(fake_artefact(debug={DEBUG: FakeElf().build()}), "debug")
        assert "holds no debug data" in found

    def test_an_unstripped_library_is_refused(self) -> None:
        assert problems(fake_artefact(FakeElf(symbols=("a",))), "debug") == [f"{LIBRARY}: is not stripped"]


def test_a_library_of_the_package_may_be_needed() -> None:
    program = FakeElf(needed=("libonnxruntime.so.1", "libc.so.6"), soname="")
    assert problems(fake_artefact(more={"bin/tool": program.build()}), "needed") == []


def test_a_missing_export_is_named() -> None:
    (found,) = problems(fake_artefact(FakeElf(exports=("OrtGetApiBase",))), "exports")
    assert "does not export OrtSessionOptionsAppendExecutionProvider_CPU" in found


def test_a_missing_or_foreign_main_library_is_an_error_of_its_own() -> None:
    with pytest.raises(ArmletError, match="main library is no ELF file") as raised:
        fake_artefact(more={LIBRARY: b"text"})
    assert raised.value.kind is Kind.GATE
    with pytest.raises(ArmletError, match="main library is missing"):
        fake_artefact(expected=dataclasses.replace(EXPECTED, library="lib/other.so"))


def test_a_refusal_lists_every_problem_and_each_remedy_once() -> None:
    bad = FakeElf(stack=7, runpath="/opt", needed=("libstdc++.so.6", "libgcc_s.so.1"))
    with pytest.raises(ArmletError) as raised:
        demand(run_gates(fake_artefact(bad)))
    assert raised.value.kind is Kind.GATE
    for told in ("stack: ", "rpath: ", "libstdc++.so.6", "libgcc_s.so.1"):
        assert told in raised.value.what
    assert raised.value.hint.count("link it statically") == 1


def test_a_good_artefact_is_not_refused() -> None:
    demand(run_gates(fake_artefact()))


def test_expectations_follow_the_sku(resolved: Resolved) -> None:
    expected = expected_of(resolved)
    assert expected.library == "lib/libonnxruntime.so.1.21.0"
    assert expected.soname == "libonnxruntime.so.1"
    assert expected.exports == {"OrtGetApiBase", "OrtSessionOptionsAppendExecutionProvider_CPU"}
    assert expected.glibc == resolved.sku.floors.glibc
    assert expected.budget == resolved.sku.budgets.library_mib * 1024 * 1024
    assert "ld-linux-aarch64.so.1" in expected.needed
    assert not any(name.startswith(("libstdc++", "libgcc")) for name in expected.needed)


class TestEvaluate:
    def lay_out(self, dist: Path, resolved: Resolved, library: FakeElf, note: str = "") -> Path:
        """A runtime's tarball, returned, beside the folder it was made of, and its debug tarball."""
        name = runtime_name(resolved)
        lib = dist / name / "lib"
        lib.mkdir(parents=True)
        (lib / "libonnxruntime.so.1.21.0").write_bytes(library.build())
        (lib / "libonnxruntime.so.1").symlink_to("libonnxruntime.so.1.21.0")
        (lib / "libonnxruntime.so").symlink_to("libonnxruntime.so.1")
        debug = dist / f"{name}-dbg"
        (debug / "lib").mkdir(parents=True)
        (debug / DEBUG).write_bytes(FakeElf(debug_data=b"x").build())
        write_tarball(debug, dist / f"{name}-dbg.tar.xz")
        (dist / name / "note.txt").write_text(note)
        packed = dist / f"{name}.tar.xz"
        write_tarball(dist / name, packed)
        return packed

    def test_a_good_tarball_passes(self, tmp_path: Path, resolved: Resolved) -> None:
        self.lay_out(tmp_path / "dist", resolved, FakeElf())
        assert all(result.ok for result in evaluate(tmp_path / "dist", resolved))

    def test_the_tarball_counts_and_not_the_folder_beside_it(self, tmp_path: Path, resolved: Resolved) -> None:
        self.lay_out(tmp_path / "dist", resolved, FakeElf(stack=7))
        (tmp_path / "dist" / runtime_name(resolved) / LIBRARY).write_bytes(FakeElf().build())
        failed = [result.name for result in evaluate(tmp_path / "dist", resolved) if not result.ok]
        assert failed == ["stack"]

    def test_a_folder_that_was_changed_is_judged_too(self, tmp_path: Path, resolved: Resolved) -> None:
        self.lay_out(tmp_path / "dist", resolved, FakeElf())
        (tmp_path / "dist" / runtime_name(resolved) / LIBRARY).write_bytes(FakeElf(stack=7).build())
        failed = [result.name for result in evaluate(tmp_path / "dist", resolved) if not result.ok]
        assert failed == ["stack"]

    def test_a_folder_that_is_only_another_one_is_named(self, tmp_path: Path, resolved: Resolved) -> None:
        self.lay_out(tmp_path / "dist", resolved, FakeElf())
        (tmp_path / "dist" / runtime_name(resolved) / "note.txt").write_text("another")
        with pytest.raises(ArmletError, match=r"differs from .*: note\.txt") as raised:
            evaluate(tmp_path / "dist", resolved)
        assert raised.value.kind is Kind.GATE

    def test_private_places_are_searched_for(self, tmp_path: Path, resolved: Resolved) -> None:
        self.lay_out(tmp_path / "dist", resolved, FakeElf(), note="made in /data/me/armlet/dist")
        results = evaluate(tmp_path / "dist", resolved, private=[Path("/data/me/armlet")])
        assert [result.name for result in results if not result.ok] == ["paths"]

    def test_a_sku_that_was_not_built_is_the_users_to_build(self, tmp_path: Path, resolved: Resolved) -> None:
        with pytest.raises(ArmletError, match="no runtime of demo-a53") as raised:
            evaluate(tmp_path, resolved)
        assert raised.value.kind is Kind.INPUT
        assert "./inv build --sku demo-a53" in raised.value.hint

    @pytest.mark.parametrize("spoil", ["cut off", "first half", "second half"])
    def test_a_damaged_tarball_is_named(self, tmp_path: Path, resolved: Resolved, spoil: str) -> None:
        packed = self.lay_out(tmp_path / "dist", resolved, FakeElf(), note=str(list(range(9999))))
        data = bytearray(packed.read_bytes())
        if spoil == "cut off":
            del data[-200:]
        else:
            data[len(data) // 4 * (1 if spoil == "first half" else 3)] ^= 0xFF
        packed.write_bytes(data)
        with pytest.raises(ArmletError, match="cannot read the tarball") as raised:
            evaluate(tmp_path / "dist", resolved)
        assert raised.value.where == str(packed)


def test_a_tarball_holds_what_the_folder_does_whatever_its_owner_and_times(tmp_path: Path) -> None:
    packed = []
    for name, mode in (("one", 0o600), ("two", 0o664)):
        folder = tmp_path / name / "top"
        (folder / "lib").mkdir(parents=True)
        (folder / "lib" / "a.so").write_bytes(b"content")
        (folder / "lib" / "a.so").chmod(mode)
        (folder / "lib" / "b.so").symlink_to("a.so")
        write_tarball(folder, tmp_path / f"{name}.tar.xz")
        packed.append((tmp_path / f"{name}.tar.xz").read_bytes())
        assert list(tarball(tmp_path / f"{name}.tar.xz")) == list(tree(folder))
    assert packed[0] == packed[1]


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (lambda dist: (dist / "a.json").write_text("other"), "a.json"),
        (lambda dist: (dist / "a.json").unlink(), "a.json"),
        (lambda dist: (dist / "SHA256SUMS").write_bytes(b"\xff"), "SHA256SUMS"),
        (lambda dist: (dist / "SHA256SUMS").unlink(), "SHA256SUMS"),
        (lambda dist: (dist / "SHA256SUMS").write_bytes(b""), "SHA256SUMS"),
        (lambda dist: (dist / "stray-1-py3-none-any.whl").touch(), "stray-1-py3-none-any.whl"),
    ],
)
def test_files_that_are_not_as_the_build_left_them_are_named(
    tmp_path: Path, spoil: Callable[[Path], object], named: str
) -> None:
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "own").write_text("somebody's own file is nobody's business")
    (tmp_path / "SHA256SUMS").write_text(f"{of_file(tmp_path / 'a.json')}  a.json\n")
    demand_intact(tmp_path)
    spoil(tmp_path)
    with pytest.raises(ArmletError) as caught:
        demand_intact(tmp_path)
    assert caught.value.kind is Kind.GATE
    assert caught.value.what.endswith(f": {named}")


def test_where_nothing_was_built_nothing_is_missed(tmp_path: Path) -> None:
    demand_intact(tmp_path / "absent")
