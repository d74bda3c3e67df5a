from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from armlet import digest, kernels, manifest
from armlet.config import Resolved, resolve
from armlet.errors import ArmletError, Kind
from armlet.registrations import ONNX_DOMAIN, Registration, parse
from armlet.spec.runtime import Kernels, RuntimeManifest
from tests.fakes.artefacts import LIBRARY, fake_artefact
from tests.fakes.elf_file import FakeElf
from tests.fakes.recipes import FakeProject

OPERATORS = {"ai.onnx": {"Relu": (Kernels(since_versions=(14,), takes=({"T": ("float",)},)),)}}


@pytest.fixture
def resolved(tmp_path: Path) -> Resolved:
    return resolve(FakeProject(tmp_path / "project").paths, "demo-a53")


@pytest.fixture
def made(resolved: Resolved) -> RuntimeManifest:
    return manifest.assemble(
        resolved,
        fake_artefact(),
        build_id="b" * 64,
        kernel="3.7.0",
        operators=OPERATORS,
        image="sha256:" + "1" * 64,
        compiler="aarch64-linux-gnu-g++ 12.2.0",
    )


def symbol(kernel: str, namespace: str = "") -> bytes:
    function = f"21BuildKernelCreateInfoINS_{len(kernel)}{kernel}EE"
    return f"_ZN11onnxruntime{namespace}{function}ENS_16KernelCreateInfoEv".encode()


def registration(op: str, since: int, until: int | None = None, *types: str, domain: str = ONNX_DOMAIN) -> Registration:
    return Registration(domain=domain, op=op, since=since, until=until, types=types)


class TestKernels:
    def test_symbols_name_kernels(self) -> None:
        names = b"\0".join(
            (
                symbol("kCpuExecutionProvider_Relu_kOnnxDomain_ver6_12_float"),
                symbol("kCpuExecutionProvider_Conv_kOnnxDomain_ver22"),
                symbol("kCpuExecutionProvider_FusedConv_kMSDomain_ver1_float", "7contrib"),
                symbol("kCpuExecutionProvider_GatherBlockQuantized_kMSDomain_ver1_UInt4x2_int32_t", "7contrib"),
                symbol("kXnnpackExecutionProvider_Conv_kMSInternalNHWCDomain_ver11"),
                b"_ZN11onnxruntime4Conv7ComputeEv",
            )
        )
        assert kernels.linked(names) == {
            registration("Relu", 6, 12, "float"),
            registration("Conv", 22),
            registration("FusedConv", 1, None, "float", domain="com.microsoft"),
            registration("GatherBlockQuantized", 1, None, "UInt4x2_int32_t", domain="com.microsoft"),
        }
        assert [one.op for one in kernels.linked(names, provider="kXnnpackExecutionProvider")] == ["Conv"]

    def test_what_the_preprocessor_dropped_is_not_promised(self) -> None:
        macro = "ONNX_OPERATOR_TYPED_KERNEL_CLASS_NAME"
        entry = f"BuildKernelCreateInfo<{macro}(kCpuExecutionProvider, kOnnxDomain, 21, {{}}, Q)>"
        float8 = entry.format("Float8E5M2")
        text = f"{entry.format('int8_t')},\n#if !defined(DISABLE_FLOAT8_TYPES)\n{float8},\n#endif\n"
        linked = kernels.linked(symbol("kCpuExecutionProvider_Q_kOnnxDomain_ver21_int8_t"))
        found = kernels.contract(parse(text), linked, {registration("Q", 21, None, "int8_t"): {"T2": ("int8",)}})
        assert found == {"ai.onnx": {"Q": (Kernels(since_versions=(21,), takes=({"T2": ("int8",)},)),)}}

    def test_what_is_linked_and_not_registered_is_not_promised(self) -> None:
        assert kernels.contract([], kernels.linked(symbol("kCpuExecutionProvider_Abs_kOnnxDomain_ver13")), {}) == {}

    def test_a_closed_range_takes_every_version_and_an_open_one_its_first(self) -> None:
        registered = [registration("Conv", 8, 11), registration("Conv", 22)]
        types = {one: {"T": ("float",)} for one in registered}
        assert kernels.contract(registered, frozenset(registered), types) == {
            "ai.onnx": {"Conv": (Kernels(since_versions=(8, 9, 10, 11, 22), takes=({"T": ("float",)},)),)}
        }

    def test_newer_versions_with_more_types_are_an_entry_of_their_own(self) -> None:
        types = {
            registration("Add", 7, 8, "float"): {"T": ("float",)},
            registration("Add", 14, None, "float"): {"T": ("float",)},
            registration("Add", 14, None, "int8_t"): {"T": ("int8",)},
        }
        assert kernels.contract(types, frozenset(types), types)["ai.onnx"]["Add"] == (
            Kernels(since_versions=(7, 8), takes=({"T": ("float",)},)),
            Kernels(since_versions=(14,), takes=({"T": ("float", "int8")},)),
        )

    @pytest.mark.parametrize("types", [None, {registration("Max", 13, None, "float"): {"T": ("float",)}}])
    def test_a_kernel_that_no_table_knows_leaves_the_version_unknown(self, types: kernels.KernelTypes | None) -> None:
        registered = [registration("Max", 13, None, "float"), registration("Max", 13)]
        (entry,) = kernels.contract(registered, frozenset(registered), types)["ai.onnx"]["Max"]
        assert entry.takes is None

    def test_entries_are_joined_only_where_that_promises_nothing_new(self) -> None:
        unsigned: kernels.Takes = {"T1": ("uint8",), "T2": ("int8", "uint8")}
        signed: kernels.Takes = {"T1": ("int8",), "T2": ("int8",)}
        assert kernels.merged([unsigned, signed]) == (signed, unsigned)
        assert kernels.merged([signed, {"T1": ("uint8",), "T2": ("int8",)}]) == (
            {"T1": ("int8", "uint8"), "T2": ("int8",)},
        )
        assert kernels.merged([signed, signed, {"T1": ("int8",)}]) == (signed, {"T1": ("int8",)})

    @given(st.lists(st.dictionaries(st.just("A") | st.just("B"), st.sampled_from("xyz").map(lambda one: (one,)))))
    def test_joining_keeps_what_is_taken(self, takes: list[dict[str, tuple[str, ...]]]) -> None:
        def served(alternatives: Iterable[kernels.Takes]) -> set[tuple[str, str]]:
            return {
                (a, b)
                for a in "xyz"
                for b in "xyz"
                if any(a in one.get("A", a) and b in one.get("B", b) for one in alternatives)
            }

        assert served(kernels.merged(takes)) == served(takes)


class TestAssemble:
    def test_requirements_are_measured(self, resolved: Resolved, made: RuntimeManifest) -> None:
        assert made.requires.glibc == "2.29", "the library's, not the SKU's floor"
        assert resolved.sku.floors.glibc != "2.29"
        assert made.requires.glibcxx is None
        assert made.requires.kernel == "3.7"

    def test_files_are_listed_with_size_and_hash_and_links_are_not(self, made: RuntimeManifest) -> None:
        library = FakeElf().build()
        listed = {file.path: file for file in made.files}
        assert set(listed) == {LIBRARY, "include/onnxruntime/onnxruntime_c_api.h"}
        assert (listed[LIBRARY].size, listed[LIBRARY].sha256) == (len(library), digest.of_bytes(library))
        assert listed[LIBRARY].stripped is True
        assert listed[LIBRARY].build_id == bytes(range(20)).hex()
        assert listed["include/onnxruntime/onnxruntime_c_api.h"].stripped is None

    def test_it_says_where_it_comes_from(self, resolved: Resolved, made: RuntimeManifest) -> None:
        lock = resolved.source_set.model_dump(mode="json", by_alias=True)
        assert made.source_set.sha256 == digest.of_value(lock)
        assert made.providers == ("xnnpack", "cpu")
        assert made.target.isa == resolved.cpu.march
        # This flavor is configured without the classical operators.
        assert "ai.onnx.ml" in resolved.source_set.opsets
        assert made.opsets == {"ai.onnx": resolved.source_set.opsets["ai.onnx"], "com.microsoft": 1}

    def test_the_full_flavor_lists_no_operators(self, resolved: Resolved) -> None:
        found = manifest.assemble(
            resolved, fake_artefact(), build_id="b" * 64, kernel="3.7", operators=None, image="x", compiler="x"
        )
        assert found.operators is None


class TestFile:
    def write(self, path: Path, made: RuntimeManifest, **changes: Any) -> Path:
        path.write_text(json.dumps({**json.loads(manifest.render(made)), **changes}))
        return path

    def test_the_text_is_sorted_and_ends_with_a_newline(self, made: RuntimeManifest) -> None:
        text = manifest.render(made)
        data = json.loads(text)
        assert text == json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        assert data["schema"] == 1

    def test_what_is_written_is_read(self, tmp_path: Path, made: RuntimeManifest) -> None:
        (tmp_path / "runtime.json").write_text(manifest.render(made))
        assert manifest.read_manifest(tmp_path / "runtime.json") == made

    def test_readers_ignore_what_they_do_not_know(self, tmp_path: Path, made: RuntimeManifest) -> None:
        target = {**json.loads(manifest.render(made))["target"], "endian": "little"}
        file = {"path": "a", "size": 1, "sha256": "a" * 64, "stripped": None, "build_id": None, "mode": "0644"}
        path = self.write(tmp_path / "r.json", made, target=target, future={"a": [1]}, files=[file])
        found = manifest.read_manifest(path)
        assert found.target == made.target
        assert [one.path for one in found.files] == ["a"]

    def test_writers_refuse_what_they_do_not_know(self, made: RuntimeManifest) -> None:
        with pytest.raises(ValidationError, match="future"):
            RuntimeManifest.model_validate_json(json.dumps({**json.loads(manifest.render(made)), "future": 1}))

    @pytest.mark.parametrize("schema", [2, "1", None])
    def test_another_schema_is_refused(self, tmp_path: Path, made: RuntimeManifest, schema: object) -> None:
        path = self.write(tmp_path / "r.json", made, schema=schema)
        with pytest.raises(ArmletError, match="this program reads 1") as raised:
            manifest.read_manifest(path)
        assert raised.value.kind is Kind.INPUT

    def test_a_wrong_value_is_named_by_its_key(self, tmp_path: Path, made: RuntimeManifest) -> None:
        requires = {"glibc": "new", "glibcxx": None, "kernel": "3.7"}
        path = self.write(tmp_path / "r.json", made, requires=requires, future=1)
        with pytest.raises(ArmletError, match=r"requires\.glibc: ") as raised:
            manifest.read_manifest(path)
        assert raised.value.where == str(path)

    @pytest.mark.parametrize("text", ["", "[]", "{", "null", "\x00"])
    def test_something_else_is_refused(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "r.json").write_text(text)
        with pytest.raises(ArmletError):
            manifest.read_manifest(tmp_path / "r.json")

    def test_a_missing_file_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ArmletError, match="cannot be read"):
            manifest.read_manifest(tmp_path / "r.json")
