"""What the installed QEMU says of the cores that it knows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from armlet.errors import ArmletError, Kind
from armlet.qemu.run import Target, demand_model, run_on_target
from armlet.spec.cpu import CPUS

pytestmark = pytest.mark.qemu


@pytest.mark.parametrize("name", ["cortex-a53", "cortex-a7"])
def test_the_core_is_known_and_a_made_up_one_is_not(name: str) -> None:
    demand_model(CPUS[name])
    made_up = replace(CPUS[name], qemu="cortex-made-up")
    with pytest.raises(ArmletError) as listed:
        demand_model(made_up)
    assert listed.value.kind is Kind.HOST
    assert name in listed.value.hint
    with pytest.raises(ArmletError) as tried:
        run_on_target(Target(rootfs=Path("/"), cpu=made_up), ("/bin/true",))
    assert (tried.value.kind, tried.value.what) == (Kind.HOST, listed.value.what)
