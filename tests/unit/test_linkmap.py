from __future__ import annotations

import pytest

from armlet.linkmap import shared

MAP = """\
Discarded input sections

 .text._ZSt6sharedv
                0x0000000000000000       0x40 libcommon.a(plain.cc.o)
 .text._ZSt3ownv.isra.0
                0x0000000000000000       0x40 libcommon.a(plain.cc.o)
 .text._ZN4deadEv
                0x0000000000000000       0x40 libmlas.a(newer.cpp.o)

Memory Configuration

Linker script and memory map

 .text.own      0x0000000000001000       0x20 libmlas.a(newer.cpp.o)
 .text._ZSt6sharedv
                0x0000000000001020       0x40 libmlas.a(newer.cpp.o)
 .text._ZN4mlas6kernelEv
                0x0000000000001060       0x80 libmlas.a(newer.cpp.o)
 .text._ZSt3ownv.isra.0
                0x00000000000010e0       0x40 libmlas.a(newer.cpp.o)
 .init_array    0x0000000000002000        0x8 libmlas.a(newer.cpp.o)
 .init_array    0x0000000000002008        0x8 libcommon.a(plain.cc.o)
 .init_array    0x0000000000002010        0x0 libmlas.a(empty.cpp.o)
"""


def test_a_shared_function_kept_in_the_copy_for_a_newer_core_is_found() -> None:
    assert shared(MAP, {"newer.cpp.o"}) == (".text._ZSt6sharedv of newer.cpp.o",)


@pytest.mark.parametrize("newer", [set(), {"plain.cc.o"}, {"newer.cpp.o", "plain.cc.o"}], ids=str)
def test_what_only_sources_of_one_kind_share_is_no_danger(newer: set[str]) -> None:
    assert shared(MAP, newer) == ()


def test_what_is_no_map_is_refused() -> None:
    with pytest.raises(ValueError, match="map"):
        shared("nothing", {"x"})
