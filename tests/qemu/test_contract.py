"""The contract on the target: its own Python gives the answer that the host gives."""

from __future__ import annotations

import json

import pytest

from armlet.paths import Paths
from armlet.qemu.rootfs import make
from armlet.qemu.run import Target, run_python
from armlet.spec.cpu import CPUS
from tests.conftest import ROOT
from tests.fakes.contracts import answered, every_misfit

pytestmark = pytest.mark.qemu

_CODE = """
import json, sys
from armlet_runtime.contract import check
print(json.dumps([[list(one) for one in check(*pair)] for pair in json.loads(sys.argv[1])]))
"""


def test_host_and_device_give_the_same_answer() -> None:
    target = Target(rootfs=make(Paths.of(ROOT), suite="bookworm"), cpu=CPUS["cortex-a53"])
    pairs = every_misfit()
    done = run_python(target, ("-c", _CODE, json.dumps(pairs)), path=[ROOT / "device"], site_packages=False)
    assert done.code == 0, done.output
    assert json.loads(done.tail[-1]) == answered(pairs)
