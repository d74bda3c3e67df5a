"""Which sources the code of a library was compiled from, headers included: its line tables say so."""

from __future__ import annotations

import io
import posixpath
from collections.abc import Iterator
from typing import IO, Any

from elftools.common.exceptions import ELFError
from elftools.dwarf.dwarfinfo import DWARFInfo
from elftools.elf.elffile import ELFFile

_SHF_EXECINSTR = 4
_END, _SET_ADDRESS = 1, 2
_SET_FILE = 4
_FIXED_ADVANCE = 9


def sources(data: bytes) -> frozenset[str]:
    """Paths of the files that code of an unstripped library comes from; none where it has no line tables.

    Code that the linker left out does not count. Paths are as the compiler wrote them.

    Raises:
        ValueError: the file is damaged.
    """
    try:
        elf = ELFFile(io.BytesIO(data))
        if not elf.has_dwarf_info():
            return frozenset()
        code = [
            (section["sh_addr"], section["sh_addr"] + section["sh_size"])
            for section in elf.iter_sections()
            if section["sh_flags"] & _SHF_EXECINSTR and section["sh_addr"]
        ]
        return frozenset(_sources(elf.get_dwarf_info(relocate_dwarf_sections=False), code, elf.elfclass // 8))
    except (ELFError, KeyError, IndexError, AssertionError) as error:
        raise ValueError(f"its line tables cannot be read: {error}") from error


def _sources(dwarf: DWARFInfo, code: list[tuple[int, int]], pointer: int) -> Iterator[str]:
    raw = _whole(dwarf.debug_line_sec.stream) if dwarf.debug_line_sec else b""
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        if program is None:
            continue
        top = unit.get_top_DIE().attributes
        home = top["DW_AT_comp_dir"].value.decode() if "DW_AT_comp_dir" in top else "/"
        header = program.header
        lengths = header["standard_opcode_lengths"]
        numbers = used(raw, program.program_start_offset, program.program_end_offset, lengths, code, pointer)
        for number in numbers:
            yield _path(header, number, home)


def _whole(stream: IO[bytes]) -> bytes:
    stream.seek(0)
    return stream.read()


def _path(header: Any, number: int, home: str) -> str:
    newer = header["version"] >= 5
    entry = header["file_entry"][number if newer else number - 1]
    folders = header["include_directory"]
    # Older tables leave out the first folder, which is where the compiler was started.
    folders = folders if newer else (b"", *folders)
    folder = folders[entry.dir_index]
    return posixpath.normpath(posixpath.join(home, folder.decode(), entry.name.decode()))


def used(raw: bytes, at: int, end: int, lengths: list[int], code: list[tuple[int, int]], pointer: int) -> set[int]:
    """Numbers of the files that a line program speaks of where there is code.

    Nothing but the opcodes that change the file or the place are looked into: a library has millions of them.
    """
    base = len(lengths) + 1
    used: set[int] = set()
    live, file = False, 1
    while at < end:
        op = raw[at]
        at += 1
        if op >= base:
            continue
        if op == 0:
            length, at = _uleb(raw, at)
            kind = raw[at]
            if kind == _SET_ADDRESS:
                place = int.from_bytes(raw[at + 1 : at + 1 + pointer], "little")
                live = any(first <= place < last for first, last in code)
                if live:
                    used.add(file)
            elif kind == _END:
                live, file = False, 1
            at += length
        elif op == _SET_FILE:
            file, at = _uleb(raw, at)
            if live:
                used.add(file)
        elif op == _FIXED_ADVANCE:
            at += 2
        else:
            for _ in range(lengths[op - 1]):
                while raw[at] & 0x80:
                    at += 1
                at += 1
    return used


def _uleb(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
