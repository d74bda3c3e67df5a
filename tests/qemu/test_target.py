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
