"""Line programs: whose file numbers stand where there is code."""

from __future__ import annotations

import pytest

from armlet import lines
from tests.fakes.elf_file import FakeElf

LENGTHS = [0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]
CODE = [(0x1000, 0x2000)]


def address(value: int, pointer: int = 8) -> bytes:
    return bytes([0, 1 + pointer, 2]) + value.to_bytes(pointer, "little")


def file(number: int) -> bytes:
    return b"\x04" + (bytes([number]) if number < 128 else bytes([number & 127 | 128, number >> 7]))


END = b"\x00\x01\x01"
ROW = b"\x20"


def found(program: bytes, pointer: int = 8) -> set[int]:
    return lines.used(program, 0, len(program), LENGTHS, CODE, pointer)


@pytest.mark.parametrize(
    ("program", "numbers"),
    [
        (b"", set()),
        (address(0x1000) + ROW + END, {1}),
        (address(0x1000) + ROW + file(5) + ROW + END, {1, 5}),
        (address(0x1000) + ROW + file(300) + ROW + END, {1, 300}),
        # Left out by the linker: its address became nothing.
        (address(0) + ROW + file(5) + ROW + END, set()),
        (address(0x2000) + ROW + file(5) + END, set()),
        # A file that is named before its place is.
        (file(7) + address(0x1800) + ROW + END, {7}),
        # What follows an end begins anew.
        (
            address(0x1000) + file(2) + ROW + END + address(0) + file(3) + ROW + END + address(0x1100) + ROW + END,
            {1, 2},
        ),
        # Operands that look like opcodes: advance_line, set_column, fixed_advance_pc, an unknown extended one.
        (address(0x1000) + b"\x03\x04\x05\x04\x09\x04\x04" + b"\x00\x03\x80\x04\x09" + file(6) + END, {1, 6}),
        (address(0x1000) + b"\x03\xff\x04" + file(6) + END, {1, 6}),
    ],
)
def test_the_files_of_a_program(program: bytes, numbers: set[int]) -> None:
    assert found(program) == numbers


def test_addresses_of_32_bits() -> None:
    assert found(address(0x1000, 4) + file(9) + END, pointer=4) == {1, 9}


def test_a_library_without_debug_data_names_none() -> None:
    assert lines.sources(FakeElf().build()) == frozenset()


def test_what_is_damaged_is_told() -> None:
    with pytest.raises(ValueError, match="line tables"):
        lines.sources(b"\x7fELF" + b"x" * 100)
