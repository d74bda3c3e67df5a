from __future__ import annotations

import platform
import sys
from pathlib import Path

import pytest

from armlet import elf
from armlet.elf import Symbol
from armlet.errors import ArmletError, Kind
from tests.fakes.elf_file import EM_X86_64, FakeElf

MACHINES = {"x86_64": "EM_X86_64", "aarch64": "EM_AARCH64"}


def facts(**made: object) -> elf.ElfFacts:
    return elf.read(FakeElf(**made).build(), name="x.so")  # type: ignore[arg-type]


def test_a_library_says_what_it_is() -> None:
    found = facts()
    assert (found.bits, found.little_endian, found.machine, found.type) == (64, True, "EM_AARCH64", "ET_DYN")
    assert found.soname == "libonnxruntime.so.1"
    assert found.needed == ("libm.so.6", "libc.so.6")
    assert found.build_id == bytes(range(20)).hex()
    assert found.debug_link == "libonnxruntime.so.1.21.0.debug"
    assert found.stripped


def test_needed_versions_come_with_their_symbols() -> None:
    found = facts(asks=(("malloc", "GLIBC_2.17"), ("pow", "GLIBC_2.29"), ("free", "GLIBC_2.17")))
    assert found.versions == {"libc.so.6": {"GLIBC_2.17": ("free", "malloc"), "GLIBC_2.29": ("pow",)}}


def test_exports_are_defined_symbols_without_the_version_itself() -> None:
    found = facts(exports=("OrtGetApiBase",))
    assert found.exports == (Symbol(name="OrtGetApiBase", version="VERS_1.21.0"),)
    assert str(found.exports[0]) == "OrtGetApiBase@VERS_1.21.0"


@pytest.mark.parametrize(
    ("made", "field", "value"),
    [
        ({"machine": EM_X86_64}, "machine", "EM_X86_64"),
        ({"stack": None}, "stack_flags", None),
        ({"stack": 7}, "stack_flags", "RWX"),
        ({"relro": False}, "relro", "none"),
        ({"bind_now": False}, "relro", "partial"),
        ({}, "relro", "full"),
        ({"writable_code": True}, "writable_code", ("0x1000",)),
        ({"text_relocations": True}, "text_relocations", True),
        ({"runpath": "$ORIGIN"}, "search_paths", ("$ORIGIN",)),
        ({"build_id": None}, "build_id", None),
        ({"kernel": (3, 7, 0)}, "kernel", "3.7.0"),
        ({"symbols": ("a",)}, "symbol_table", True),
        ({"symbols": ("a",)}, "stripped", False),
        ({"debug_data": b"x"}, "debug_sections", True),
        ({"debug_link": ""}, "debug_link", None),
        ({"soname": ""}, "soname", None),
    ],
)
def test_each_property_is_read(made: dict[str, object], field: str, value: object) -> None:
    assert getattr(facts(**made), field) == value


def test_a_section_is_read_by_name() -> None:
    data = FakeElf(symbols=("one", "two")).build()
    assert elf.section(data, ".strtab", name="x") == b"\0one\0two\0"
    assert elf.section(data, ".nothing", name="x") is None


def test_every_cut_is_either_read_or_refused_with_its_name() -> None:
    data = FakeElf(symbols=("a",), kernel=(3, 7, 0)).build()
    refused = []
    for length in range(0, len(data), 7):
        try:
            elf.read(data[:length], name="cut.so")
        except ArmletError as error:
            refused.append(error)
    assert len(refused) > 20
    assert {(error.kind, error.where) for error in refused} == {(Kind.GATE, "cut.so")}
    assert all(error.hint for error in refused)


def test_the_running_python_is_of_this_machine() -> None:
    path = Path(sys.executable).resolve()
    found = elf.read(path.read_bytes(), name=path.name)
    assert found.machine == MACHINES[platform.machine()]
    assert found.bits == 64
    assert any(name.startswith("libc.so") for name in found.versions)
    assert found.kernel is not None, "every executable that glibc's start files are linked into names a kernel"


def test_an_extension_module_exports_its_entry_point() -> None:
    import pydantic_core._pydantic_core as module

    assert module.__file__ is not None
    found = elf.read(Path(module.__file__).read_bytes(), name="module")
    assert found.type == "ET_DYN"
    assert "PyInit__pydantic_core" in {symbol.name for symbol in found.exports}
