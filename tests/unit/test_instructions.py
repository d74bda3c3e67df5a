"""Instructions beyond a core's baseline, in what objdump and ld write."""

from __future__ import annotations

from collections import Counter

import pytest

from armlet.instructions import beyond, unasked
from armlet.linkmap import code
from armlet.spec.cpu import CPUS

BASE64 = """\
0000000000001000 <plain>:
    1000:\tadd\tv0.4s, v1.4s, v2.4s
    1004:\tfmla\tv0.4s, v1.4s, v2.4s
    1008:\tfcvtl\tv0.4s, v1.4h
    100c:\tfcvt\th0, s1
    1010:\tcrc32w\tw0, w1, w2
    1014:\tldaxr\tw0, [x1]
    1018:\tret
    101c:\tldr\tq0, [x0]
    1020:\tadd\tv0.8h, v1.8h, v2.8h
    1024:\tfmov\ts0, w1
"""


@pytest.mark.parametrize("cpu", ["cortex-a53", "cortex-a76"])
def test_the_base_of_the_architecture_is_nothing_beyond(cpu: str) -> None:
    assert list(beyond(BASE64.splitlines(), CPUS[cpu])) == []


@pytest.mark.parametrize(
    ("line", "extension", "newer"),
    [
        ("sdot\tv0.4s, v1.16b, v2.4b[0]", "dotprod", True),
        ("udot\tv0.4s, v1.16b, v2.16b", "dotprod", True),
        ("smmla\tv0.4s, v1.16b, v2.16b", "i8mm", False),
        ("bfmmla\tv0.4s, v1.8h, v2.8h", "bf16", False),
        ("fadd\tv0.8h, v1.8h, v2.8h", "fp16", True),
        ("fmul\th0, h1, h2", "fp16", True),
        ("fmla\tv0.8h, v1.8h, v2.h[1]", "fp16", True),
        ("casal\tw0, w1, [x2]", "lse", True),
        ("ldadd\tw0, w1, [x2]", "lse", True),
        ("ptrue\tp0.b", "sve", False),
        ("retaa", "pauth", False),
        ("aese\tv0.16b, v1.16b", "crypto", False),
    ],
)
def test_what_a_cortex_a53_lacks_and_what_of_it_a_cortex_a76_has(line: str, extension: str, newer: bool) -> None:
    listing = [f"    10ac:\t{line}"]
    assert list(beyond(listing, CPUS["cortex-a53"])) == [(0x10AC, line.split()[0], extension)]
    assert (list(beyond(listing, CPUS["cortex-a76"])) == []) is newer


@pytest.mark.parametrize(
    ("line", "extension", "on_a7"),
    [
        ("vfma.f32\tq0, q1, q2", "vfpv4", True),
        ("vfnms.f32\ts0, s1, s2", "vfpv4", True),
        ("vmla.f32\tq0, q1, q2", None, True),
        ("vcvt.f16.f32\td0, q1", None, True),
        ("vcvtb.f32.f16\ts0, s1", None, True),
        ("vadd.f16\tq0, q1, q2", "fp16", False),
        ("vcvtn.s32.f32\tq0, q1", "v8", False),
        ("vrintn.f32\tq0, q1", "v8", False),
        ("vsdot.s8\tq0, q1, d4[0]", "dotprod", False),
        ("sdiv\tr0, r1, r2", "div", False),
        ("ldmia.w\tsp!, {r3, pc}", None, True),
        ("vldr\ts0, [r0]", None, True),
    ],
)
def test_what_a_cortex_a9_lacks_and_what_of_it_a_cortex_a7_has(line: str, extension: str | None, on_a7: bool) -> None:
    listing = [f"   1a2b0:\t{line}"]
    assert [found[2] for found in beyond(listing, CPUS["cortex-a9"])] == ([extension] if extension else [])
    assert (list(beyond(listing, CPUS["cortex-a7"])) == []) is on_a7


MAP = """\
Discarded input sections

 .text.gone     0x0000000000000000       0x40 libx.a(gone.c.o)

Linker script and memory map

 .text          0x0000000000001000       0x20 libmlas.a(QgemmU8X8KernelUdot.S.o)
 .text          0x0000000000001020        0x0 libmlas.a(empty.c.o)
 .text._ZN4mlas6kernelEv
                0x0000000000001020       0x10 libmlas.a(kernel.cpp.o)
 .rodata        0x0000000000002000       0x80 libmlas.a(kernel.cpp.o)
"""


def test_the_map_says_whose_code_lies_where() -> None:
    assert code(MAP) == [(0x1000, 0x20, "QgemmU8X8KernelUdot.S.o"), (0x1020, 0x10, "kernel.cpp.o")]
    with pytest.raises(ValueError, match="map"):
        code("nothing")


def test_only_the_sources_of_the_table_may_have_their_own_extensions() -> None:
    found = [
        (0x1004, "udot", "dotprod"),
        (0x1008, "ummla", "i8mm"),
        (0x1024, "udot", "dotprod"),
        (0x2000, "udot", "dotprod"),
    ]
    assert unasked(found, code(MAP)) == {
        "QgemmU8X8KernelUdot.S.o": Counter(i8mm=1),
        "kernel.cpp.o": Counter(dotprod=1),
        "nothing that the map knows at 0x2000": Counter(dotprod=1),
    }
