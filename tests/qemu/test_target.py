"""The emulated target: a root file system with Python, and a core that lacks what it lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from armlet.errors import ArmletError, Kind
from armlet.paths import Paths
from armlet.qemu.rootfs import make
from armlet.qemu.run import Target, demand_model, run_python
from armlet.spec.cpu import CPUS

pytestmark = pytest.mark.qemu

# A page of machine code: SDOT (an extension that the Cortex-A53 lacks), then return.
_DOT_PRODUCT = """
import ctypes, mmap, struct
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(struct.pack("<2I", 0x4E809400, 0xD65F03C0))
ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
print("ran")
"""


# As above, with an instruction of 32-bit ARM that reads from an odd address.
_MISALIGNED = """
import ctypes, mmap, struct
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(struct.pack("<2I", {code:#x}, 0xE12FFF1E))
data = ctypes.create_string_buffer(64)
odd = (ctypes.addressof(data) + 15) // 16 * 16 + 1
ctypes.CFUNCTYPE(None, ctypes.c_void_p)(ctypes.addressof(ctypes.c_char.from_buffer(page)))(odd)
print("ran")
"""


@pytest.fixture(scope="module")
def rootfs(root: Path) -> Path:
    return make(Paths.of(root), suite="bookworm")


def python(rootfs: Path, code: str, *, cpu: str = "cortex-a53", numpy: bool = True) -> list[str]:
    target = Target(rootfs=rootfs, cpu=CPUS[cpu])
    done = run_python(target, ("-c", code), path=[Path("/nonexistent")], site_packages=numpy)
    assert done.code == 0, done.output
    return list(done.tail)


@pytest.mark.parametrize("cpu", CPUS)
def test_qemu_knows_the_model_of_every_core(cpu: str) -> None:
    demand_model(CPUS[cpu])


def test_the_target_is_another_machine_with_python_and_numpy(rootfs: Path) -> None:
    code = "import platform, numpy; print(platform.machine(), numpy.linalg.inv([[2.0]])[0, 0])"
    assert python(rootfs, code) == ["aarch64 0.5"]


def test_python_without_numpy(rootfs: Path) -> None:
    code = "import importlib.util, ctypes, json; print(importlib.util.find_spec('numpy'))"
    assert python(rootfs, code, numpy=False) == ["None"]


def test_a_core_refuses_what_it_does_not_have(rootfs: Path) -> None:
    assert python(rootfs, _DOT_PRODUCT, cpu="cortex-a76", numpy=False) == ["ran"]
    with pytest.raises(ArmletError) as caught:
        python(rootfs, _DOT_PRODUCT, numpy=False)
    assert caught.value.kind is Kind.TARGET
    assert "SIGILL: an instruction that cortex-a53 does not have" in caught.value.what


@pytest.fixture(scope="module")
def rootfs32(root: Path) -> Path:
    return make(Paths.of(root), suite="bookworm", architecture="armhf")


@pytest.mark.parametrize(
    ("name", "code", "runs"),
    [
        ("ldr r0, [r0]", 0xE5900000, True),
        ("vld1.32 {d0}, [r0]", 0xF420078F, True),
        ("ldrd r0, r1, [r0]", 0xE1C000D0, False),
        ("ldm r0, {r0, r1}", 0xE8900003, False),
        ("vldr s0, [r0]", 0xED900A00, False),
        ("vld1.64 {d0}, [r0:64]", 0xF42007DF, False),
        ("ldrexd r0, r1, [r0]", 0xE1B00F9F, False),
    ],
)
def test_what_reads_from_an_odd_address_traps_as_on_the_core(rootfs32: Path, name: str, code: int, runs: bool) -> None:
    """A smoke that is passed says something of alignment, too: QEMU forgives what an Armv7 core forgives, and no more.

    A kernel may mend LDRD and LDM for the program, which an emulator does not.
    """
    program = _MISALIGNED.format(code=code)
    if runs:
        assert python(rootfs32, program, cpu="cortex-a7", numpy=False) == ["ran"]
        return
    with pytest.raises(ArmletError, match="SIGBUS") as caught:
        python(rootfs32, program, cpu="cortex-a7", numpy=False)
    assert caught.value.kind is Kind.TARGET
