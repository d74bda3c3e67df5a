"""Facts about one ELF file, read once and judged elsewhere."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from elftools.common.exceptions import ELFError
from elftools.construct import ConstructError
from elftools.elf.constants import P_FLAGS
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerDefSection, GNUVerNeedSection, GNUVerSymSection
from elftools.elf.sections import ARMAttributesSection, NoteSection, Section, SymbolTableSection

from armlet.errors import ArmletError, Kind

MAGIC = b"\x7fELF"

Relro = Literal["full", "partial", "none"]

_DF_TEXTREL = 0x4
_DF_BIND_NOW = 0x8
_DF_1_NOW = 0x1
_HIDDEN_VERSION = 0x8000


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Symbol:
    """A dynamic symbol; ``version`` is empty where it carries none."""

    name: str
    version: str = ""

    def __str__(self) -> str:
        return f"{self.name}@{self.version}" if self.version else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class ElfFacts:
    """What the file says of itself. Nothing here is a judgement."""

    bits: Literal[32, 64]
    little_endian: bool
    machine: str
    """``e_machine`` by its name in the ELF specification, e.g. ``EM_AARCH64``."""
    flags: int
    """``e_flags``: the float ABI of 32-bit ARM is in here."""
    type: str
    """``ET_DYN``, ``ET_EXEC``, ``ET_REL``, ..."""
    build_id: str | None = None
    soname: str | None = None
    needed: tuple[str, ...] = ()
    search_paths: tuple[str, ...] = ()
    """RPATH and RUNPATH."""
    stack_flags: str | None = None
    """Of PT_GNU_STACK, e.g. ``RW``; None where the header is missing, which the kernel may take as executable."""
    relro: Relro = "none"
    writable_code: tuple[str, ...] = ()
    """Load segments that are writable and executable, by their address."""
    text_relocations: bool = False
    versions: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    """Library -> version it must have -> the symbols that ask for it."""
    exports: tuple[Symbol, ...] = ()
    """Defined dynamic symbols that others can bind to."""
    undefined: tuple[str, ...] = ()
    """Dynamic symbols that must come from elsewhere and name no version; weak ones are not among them."""
    symbol_table: bool = False
    """Has ``.symtab``."""
    debug_sections: bool = False
    debug_link: str | None = None
    """Name of the separate debug file."""
    kernel: str | None = None
    """Oldest Linux kernel, from the ABI note; executables and libc carry one."""
    arm_attributes: Mapping[str, int | str] = field(default_factory=dict)
    """``.ARM.attributes`` of a 32-bit file: tag -> value, e.g. ``TAG_ABI_VFP_ARGS`` -> 1 (Arm's ABI addenda 2.3)."""

    @property
    def stripped(self) -> bool:
        return not self.symbol_table and not self.debug_sections


def is_elf(data: bytes) -> bool:
    return data.startswith(MAGIC)


def read(data: bytes, *, name: str) -> ElfFacts:
    """Parses one ELF file.

    Args:
        data: the whole file.
        name: what messages call it.

    Raises:
        ArmletError: it is no ELF file, or it is damaged.
    """
    with _explained(name):
        return _facts(ELFFile(io.BytesIO(data)))


def section(data: bytes, section_name: str, *, name: str) -> bytes | None:
    """The content of one section, decompressed; None where the file has no such section.

    Raises:
        ArmletError: it is no ELF file, or it is damaged.
    """
    with _explained(name):
        found = ELFFile(io.BytesIO(data)).get_section_by_name(section_name)
        return None if found is None else bytes(found.data())


@contextmanager
def _explained(name: str) -> Iterator[None]:
    try:
        yield
    except (
        ELFError,
        ConstructError,
        ValueError,
        KeyError,
        IndexError,
        TypeError,
        AttributeError,
        OverflowError,
    ) as error:
        # pyelftools lets whatever its parsers stumble over escape when a file is cut off in the middle.
        raise ArmletError(
            f"not a readable ELF file: {error or type(error).__name__}",
            hint="the file is cut off or damaged: build it again",
            kind=Kind.GATE,
            where=name,
        ) from error


def _facts(elf: ELFFile) -> ElfFacts:
    sections: list[Section] = list(elf.iter_sections())
    dynamic = _dynamic(sections)
    notes = _notes(sections)
    names = {section.name for section in sections if section["sh_type"] != "SHT_NOBITS"}
    stack, writable_code, has_relro = _segments(elf)
    flags, flags_1 = dynamic.get("DT_FLAGS", [0])[0], dynamic.get("DT_FLAGS_1", [0])[0]
    bind_now = "DT_BIND_NOW" in dynamic or bool(flags & _DF_BIND_NOW) or bool(flags_1 & _DF_1_NOW)
    relro: Relro = "none" if not has_relro else "full" if bind_now else "partial"
    versions, exports, undefined = _symbols(sections)
    return ElfFacts(
        bits=64 if elf.elfclass == 64 else 32,
        little_endian=elf.little_endian,
        machine=str(elf["e_machine"]),
        flags=int(elf["e_flags"]),
        type=str(elf["e_type"]),
        build_id=notes.get("NT_GNU_BUILD_ID"),
        soname=next(iter(dynamic.get("DT_SONAME", ())), None),
        needed=tuple(dynamic.get("DT_NEEDED", ())),
        search_paths=tuple(dynamic.get("DT_RPATH", [])) + tuple(dynamic.get("DT_RUNPATH", [])),
        stack_flags=stack,
        relro=relro,
        writable_code=writable_code,
        text_relocations="DT_TEXTREL" in dynamic or bool(flags & _DF_TEXTREL),
        versions=versions,
        exports=exports,
        undefined=tuple(sorted(undefined)),
        symbol_table=".symtab" in names,
        debug_sections=any(name.startswith((".debug_", ".zdebug_")) for name in names),
        debug_link=_debug_link(sections),
        kernel=notes.get("NT_GNU_ABI_TAG"),
        arm_attributes=_arm_attributes(sections),
    )


def _arm_attributes(sections: list[Section]) -> dict[str, int | str]:
    return {
        attribute.tag: attribute.value
        for section in sections
        if isinstance(section, ARMAttributesSection)
        for vendor in section.iter_subsections()
        for scope in vendor.iter_subsubsections()
        for attribute in scope.iter_attributes()
        if attribute.tag != "TAG_FILE"
    }


_STRINGS = {"DT_NEEDED": "needed", "DT_SONAME": "soname", "DT_RPATH": "rpath", "DT_RUNPATH": "runpath"}


def _dynamic(sections: list[Section]) -> dict[str, list[Any]]:
    """Every dynamic tag with its values: text for the tags that point at names, numbers for the others."""
    found: dict[str, list[Any]] = {}
    for section in sections:
        # A debug file keeps the section's header and drops its content.
        if isinstance(section, DynamicSection) and section["sh_type"] != "SHT_NOBITS":
            for tag in section.iter_tags():
                name = str(tag.entry.d_tag)
                value = getattr(tag, _STRINGS[name]) if name in _STRINGS else tag.entry.d_val
                found.setdefault(name, []).append(value)
    return found


def _notes(sections: list[Section]) -> dict[str, str]:
    found: dict[str, str] = {}
    for section in sections:
        if not isinstance(section, NoteSection):
            continue
        for note in section.iter_notes():
            if note["n_name"] != "GNU":
                continue
            if note["n_type"] == "NT_GNU_BUILD_ID":
                found["NT_GNU_BUILD_ID"] = note["n_desc"]
            elif note["n_type"] == "NT_GNU_ABI_TAG" and note["n_desc"]["abi_os"] == "ELF_NOTE_OS_LINUX":
                desc = note["n_desc"]
                found["NT_GNU_ABI_TAG"] = f"{desc['abi_major']}.{desc['abi_minor']}.{desc['abi_tiny']}"
    return found


def _segments(elf: ELFFile) -> tuple[str | None, tuple[str, ...], bool]:
    stack: str | None = None
    writable_code: list[str] = []
    relro = False
    for segment in elf.iter_segments():
        flags: int = segment["p_flags"]
        kind = segment["p_type"]
        if kind == "PT_GNU_STACK":
            letters = ((P_FLAGS.PF_R, "R"), (P_FLAGS.PF_W, "W"), (P_FLAGS.PF_X, "X"))
            stack = "".join(letter for bit, letter in letters if flags & bit)
        elif kind == "PT_GNU_RELRO":
            relro = True
        elif kind == "PT_LOAD" and flags & P_FLAGS.PF_W and flags & P_FLAGS.PF_X:
            writable_code.append(f"0x{segment['p_vaddr']:x}")
    return stack, tuple(writable_code), relro


def _symbols(sections: list[Section]) -> tuple[dict[str, dict[str, tuple[str, ...]]], tuple[Symbol, ...], set[str]]:
    table = next((s for s in sections if s.name == ".dynsym" and isinstance(s, SymbolTableSection)), None)
    if table is None or table["sh_type"] == "SHT_NOBITS":
        return {}, (), set()
    indices = next((s for s in sections if isinstance(s, GNUVerSymSection)), None)
    wanted = {index: (library, name) for index, library, name in _needed_versions(sections)}
    defined = dict(_defined_versions(sections))
    asked: dict[str, dict[str, set[str]]] = {}
    for library, name in wanted.values():
        asked.setdefault(library, {}).setdefault(name, set())
    exports: set[Symbol] = set()
    undefined: set[str] = set()
    for number, symbol in enumerate(table.iter_symbols()):
        index = _version_index(indices, number)
        if symbol["st_shndx"] == "SHN_UNDEF":
            if index in wanted:
                library, name = wanted[index]
                asked[library][name].add(symbol.name)
            elif symbol.name and symbol["st_info"]["bind"] == "STB_GLOBAL":
                undefined.add(symbol.name)
        elif _is_export(symbol) and symbol.name not in defined.values():
            exports.add(Symbol(name=symbol.name, version=defined.get(index, "")))
    frozen = {
        library: {name: tuple(sorted(symbols)) for name, symbols in sorted(names.items())}
        for library, names in sorted(asked.items())
    }
    return frozen, tuple(sorted(exports)), undefined


def _is_export(symbol: Any) -> bool:
    return (
        bool(symbol.name)
        and symbol["st_info"]["bind"] in ("STB_GLOBAL", "STB_WEAK", "STB_LOOS")
        and symbol["st_other"]["visibility"] in ("STV_DEFAULT", "STV_PROTECTED")
    )


def _version_index(indices: GNUVerSymSection | None, number: int) -> int:
    if indices is None:
        return 0
    index = indices.get_symbol(number)["ndx"]
    return index & ~_HIDDEN_VERSION if isinstance(index, int) else 0


def _needed_versions(sections: list[Section]) -> Iterator[tuple[int, str, str]]:
    for section in sections:
        if isinstance(section, GNUVerNeedSection):
            for library, versions in section.iter_versions():
                for version in versions:
                    yield version["vna_other"], str(library.name), version.name


def _defined_versions(sections: list[Section]) -> Iterator[tuple[int, str]]:
    for section in sections:
        if isinstance(section, GNUVerDefSection):
            for version, names in section.iter_versions():
                # The first entry names the file itself, not a version of its symbols.
                if version["vd_flags"] & 1:
                    continue
                name = next(iter(names), None)
                if name is not None:
                    yield version["vd_ndx"], name.name


def _debug_link(sections: list[Section]) -> str | None:
    section = next((s for s in sections if s.name == ".gnu_debuglink"), None)
    return section.data().split(b"\0", 1)[0].decode(errors="replace") if section is not None else None
