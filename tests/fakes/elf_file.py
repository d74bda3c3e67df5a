"""ELF files written by hand: as small as a parser allows, as good or as bad as a test wants them."""

from __future__ import annotations

import struct
from dataclasses import dataclass

EM_AARCH64 = 183
EM_X86_64 = 62

_R, _W, _X = 4, 2, 1
_PT_LOAD, _PT_STACK, _PT_RELRO = 1, 0x6474E551, 0x6474E552
_PROGBITS, _SYMTAB, _STRTAB, _DYNAMIC, _NOTE, _DYNSYM = 1, 2, 3, 6, 7, 11
_VERDEF, _VERNEED, _VERSYM = 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF
_GLOBAL_FUNCTION, _ABSOLUTE = 0x12, 0xFFF1


class _Names:
    """A string table."""

    def __init__(self) -> None:
        self.data = b"\0"

    def add(self, text: str) -> int:
        at = len(self.data)
        self.data += text.encode() + b"\0"
        return at


@dataclass(frozen=True, kw_only=True)
class FakeElf:
    """A 64-bit little-endian shared library. The defaults pass every gate."""

    machine: int = EM_AARCH64
    soname: str = "libonnxruntime.so.1"
    needed: tuple[str, ...] = ("libm.so.6", "libc.so.6")
    runpath: str = ""
    stack: int | None = _R | _W
    relro: bool = True
    bind_now: bool = True
    writable_code: bool = False
    text_relocations: bool = False
    asks: tuple[tuple[str, str], ...] = (("malloc", "GLIBC_2.17"), ("pow", "GLIBC_2.29"))
    """(symbol, version), all of libc.so.6."""
    undefined: tuple[str, ...] = ()
    """Symbols that are asked for without a version."""
    exports: tuple[str, ...] = ("OrtGetApiBase", "OrtSessionOptionsAppendExecutionProvider_CPU")
    build_id: bytes | None = bytes(range(20))
    kernel: tuple[int, int, int] | None = None
    symbols: tuple[str, ...] = ()
    """Names in ``.symtab``; none: there is no such section."""
    debug_data: bytes = b""
    debug_link: str = "libonnxruntime.so.1.21.0.debug"
    extra: bytes = b""
    """Bytes of a section of its own."""

    def build(self) -> bytes:
        strings = _Names()
        dynsym, versym, verneed, verdef = self._dynamic_symbols(strings)
        dynamic = self._dynamic(strings)
        # (name, type, content, section linked to, entry size, entries as sh_info)
        sections: list[tuple[str, int, bytes, int, int, int]] = [
            (".dynstr", _STRTAB, strings.data, 0, 0, 0),
            (".dynsym", _DYNSYM, dynsym, 1, 24, 1),
            (".gnu.version", _VERSYM, versym, 2, 2, 0),
            (".gnu.version_r", _VERNEED, verneed, 1, 0, 1),
            (".gnu.version_d", _VERDEF, verdef, 1, 0, 2),
            (".dynamic", _DYNAMIC, dynamic, 1, 16, 0),
        ]
        if self.build_id is not None:
            sections.append((".note.gnu.build-id", _NOTE, _note(3, self.build_id), 0, 0, 0))
        if self.kernel is not None:
            sections.append((".note.ABI-tag", _NOTE, _note(1, struct.pack("<4I", 0, *self.kernel)), 0, 0, 0))
        if self.debug_link:
            link = self.debug_link.encode() + b"\0"
            sections.append((".gnu_debuglink", _PROGBITS, link + bytes(-len(link) % 4) + bytes(4), 0, 0, 0))
        if self.debug_data:
            sections.append((".debug_info", _PROGBITS, self.debug_data, 0, 0, 0))
        if self.extra:
            sections.append((".rodata", _PROGBITS, self.extra, 0, 0, 0))
        if self.symbols:
            names = _Names()
            table = bytes(24) + b"".join(_symbol(names.add(name), 7) for name in self.symbols)
            sections.append((".strtab", _STRTAB, names.data, 0, 0, 0))
            sections.append((".symtab", _SYMTAB, table, len(sections), 24, 1))
        return self._file(sections)

    def _dynamic_symbols(self, strings: _Names) -> tuple[bytes, bytes, bytes, bytes]:
        versions = list(dict.fromkeys(version for _, version in self.asks))
        first = 3  # 1 is the file itself, 2 the version of what it exports
        node = "VERS_1.21.0"
        symbols, indices = bytes(24), struct.pack("<H", 0)
        for name, version in self.asks:
            symbols += _symbol(strings.add(name), 0)
            indices += struct.pack("<H", first + versions.index(version))
        for name in self.undefined:
            symbols += _symbol(strings.add(name), 0)
            indices += struct.pack("<H", 1)
        for name in self.exports:
            symbols += _symbol(strings.add(name), 7)
            indices += struct.pack("<H", 2)
        # The linker adds a symbol for the version itself.
        symbols += _symbol(strings.add(node), _ABSOLUTE)
        indices += struct.pack("<H", 2)
        needed = struct.pack("<HHIII", 1, len(versions), strings.add("libc.so.6"), 16, 0)
        for number, version in enumerate(versions):
            last = number == len(versions) - 1
            needed += struct.pack("<IHHII", 0, 0, first + number, strings.add(version), 0 if last else 16)
        defined = struct.pack("<HHHHIII", 1, 1, 1, 1, 0, 20, 28) + struct.pack("<II", strings.add(self.soname), 0)
        defined += struct.pack("<HHHHIII", 1, 0, 2, 1, 0, 20, 0) + struct.pack("<II", strings.add(node), 0)
        return symbols, indices, needed, defined

    def _dynamic(self, strings: _Names) -> bytes:
        tags = [(1, strings.add(name)) for name in self.needed]
        if self.soname:
            tags.append((14, strings.add(self.soname)))
        if self.runpath:
            tags.append((29, strings.add(self.runpath)))
        if self.text_relocations:
            tags.append((22, 0))
        if self.bind_now:
            tags.append((30, 8))
        return b"".join(struct.pack("<qQ", tag, value) for tag, value in (*tags, (0, 0)))

    def _segments(self) -> list[tuple[int, int]]:
        found = [(_PT_LOAD, _R | _X), (_PT_LOAD, _R | _W | (_X if self.writable_code else 0))]
        if self.stack is not None:
            found.append((_PT_STACK, self.stack))
        if self.relro:
            found.append((_PT_RELRO, _R))
        return found

    def _file(self, sections: list[tuple[str, int, bytes, int, int, int]]) -> bytes:
        names = _Names()
        segments = b"".join(
            struct.pack("<IIQQQQQQ", kind, flags, 0, 0x1000 * number, 0, 0, 0, 0x1000)
            for number, (kind, flags) in enumerate(self._segments())
        )
        body, headers = b"", bytes(64)
        start = 64 + len(segments)
        for name, kind, content, link, entry, info in sections:
            body += bytes(-(start + len(body)) % 8)
            at = start + len(body)
            align = 4 if kind == _NOTE else 8
            headers += struct.pack(
                "<IIQQQQIIQQ",
                names.add(name),
                kind,
                0,
                0,
                at,
                len(content),
                link,
                info,
                align,
                entry,
            )
            body += content
        own = names.add(".shstrtab")
        headers += struct.pack("<IIQQQQIIQQ", own, _STRTAB, 0, 0, start + len(body), len(names.data), 0, 0, 1, 0)
        body += names.data
        header = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
        header += struct.pack("<HHIQQQIHHHHHH", 3, self.machine, 1, 0, 64, start + len(body), 0, 64, 56,
                              len(segments) // 56, 64, len(sections) + 2, len(sections) + 1)  # fmt: skip
        return header + segments + body + headers


def _symbol(name: int, section: int) -> bytes:
    return struct.pack("<IBBHQQ", name, _GLOBAL_FUNCTION, 0, section, 0, 0)


def _note(kind: int, content: bytes) -> bytes:
    return struct.pack("<III", 4, len(content), kind) + b"GNU\0" + content
