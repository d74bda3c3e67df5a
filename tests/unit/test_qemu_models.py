"""What is said where the installed QEMU does not know the core that a SKU runs as."""

from __future__ import annotations

from pathlib import Path

import pytest

from armlet.errors import ArmletError, Kind
from armlet.process import Done
from armlet.qemu.run import Target, demand_model, run_on_target
from armlet.spec.cpu import CPUS
from tests.fakes.runner import FakeRunner

CORE = CPUS["cortex-a53"]
UNKNOWN = 'qemu-aarch64-static knows no core "cortex-a53", as which cortex-a53 is run'
NEWER = "install a newer QEMU (package qemu-user-static)"
LISTED = ("Available CPUs:", "  cortex-a35", "  cortex-a72", "  max", "  any")


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")


def refused(*listed: str, code: int = 1) -> ArmletError:
    """``code``: QEMU ends with 1 where it was asked for help, and did well."""
    with pytest.raises(ArmletError) as caught:
        demand_model(CORE, FakeRunner({"-cpu help": Done(code=code, tail=listed)}))
    assert caught.value.kind is Kind.HOST
    return caught.value


@pytest.mark.parametrize("code", [0, 1])
def test_a_core_that_the_installed_qemu_does_not_know(code: int) -> None:
    error = refused(*LISTED, code=code)
    assert error.what == UNKNOWN
    assert error.hint.startswith(NEWER)
    assert error.hint.endswith("has no more than cortex-a53: cortex-a35, cortex-a72")
    demand_model(CPUS["cortex-a73"], FakeRunner({"-cpu help": Done(code=code, tail=LISTED)}))


@pytest.mark.parametrize(
    ("code", "listed"), [(0, ()), (1, ("Available CPUs:",)), (1, ("Available CPUs:", "  max", "  any"))]
)
def test_a_qemu_without_any_core(code: int, listed: tuple[str, ...]) -> None:
    error = refused(*listed, code=code)
    assert (error.what, error.hint) == (f"{UNKNOWN}, nor any other", NEWER)


def test_a_qemu_that_does_not_say_what_it_knows_is_tried() -> None:
    demand_model(CORE, FakeRunner({"-cpu help": Done(code=1, tail=("qemu: no idea",))}))


def test_a_qemu_that_refuses_the_core_when_it_is_tried(tmp_path: Path) -> None:
    said = "qemu-aarch64-static: unable to find CPU model 'cortex-a53'"
    with pytest.raises(ArmletError) as caught:
        run_on_target(
            Target(rootfs=tmp_path, cpu=CORE), ("/bin/true",), runner=FakeRunner({"qemu": Done(code=1, tail=(said,))})
        )
    assert (caught.value.kind, caught.value.what, caught.value.hint) == (Kind.HOST, UNKNOWN, NEWER)
