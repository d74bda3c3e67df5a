"""OpenWrt's init script: what it tells procd, by a stand-in for OpenWrt's own half, ``/etc/rc.common``."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT

SCRIPT = ROOT / "device" / "init" / "armlet-serve"
# Runs ``rc.common <script> <verb>``, and defines after the script what a script cannot change.
RC_COMMON = """\
say() { echo "$*" >>"$SAID"; }
procd_open_instance() { say open; }
procd_set_param() { say "$@"; }
procd_close_instance() { say close; }
restart() { stop; start; }
script=$1
verb=$2
. "$script"
[ -n "$USE_PROCD" ] || exit 9
start() { start_service; say register; }
stop() { say stop; }
case $verb in
    enable) echo "S$START K$STOP" >>"$SAID" ;;
    *) "$verb" ;;
esac
"""


class OpenWrt:
    def __init__(self, folder: Path) -> None:
        self.run, self.said, self.wrong = folder / "run it", folder / "said", folder / "wrong"
        self.common, self.daemon, self.conf = folder / "rc.common", folder / "daemon", folder / "device.conf"
        self.common.write_text(RC_COMMON)
        self.daemon.write_text(f'#!/bin/sh\n[ ! -e "{self.wrong}" ]\n')
        self.daemon.chmod(0o755)
        self.settings = folder / "settings"
        self.settings.write_text(f'DAEMON="{self.daemon}"\nCONFIG="{self.conf}"\nRUN="{self.run}"\n')

    def do(self, verb: str) -> tuple[int, list[str]]:
        """The exit code, and what was called meanwhile."""
        self.said.write_text("")
        environment = {
            "PATH": os.environ["PATH"],
            "SAID": str(self.said),
            "ARMLET_SERVE_SETTINGS": str(self.settings),
        }
        done = subprocess.run(("/bin/sh", self.common, SCRIPT, verb), env=environment, check=False, timeout=60)
        return done.returncode, self.said.read_text().splitlines()


@pytest.fixture
def openwrt(tmp_path: Path) -> OpenWrt:
    return OpenWrt(tmp_path)


def test_it_is_run_by_rc_common() -> None:
    # OpenWrt's image builder enables the scripts with this very line.
    assert SCRIPT.read_text().splitlines()[0] == "#!/bin/sh /etc/rc.common"


def test_procd_is_told_of_the_service(openwrt: OpenWrt) -> None:
    assert openwrt.do("enable") == (0, ["S90 K10"])
    code, said = openwrt.do("start")
    assert code == 0
    assert (said[0], said[-2:]) == ("open", ["close", "register"])
    # The last number: procd gives up never.
    assert {f"command {openwrt.daemon} --config {openwrt.conf}", f"file {openwrt.conf}", "respawn 60 2 0"} <= {*said}
    assert openwrt.run.is_dir(), "the socket has a place"


def test_a_user_without_rights(openwrt: OpenWrt) -> None:
    with openwrt.settings.open("a") as stream:
        stream.write(f"RUN_AS={os.geteuid()}\n")
    assert f"user {os.geteuid()}" in openwrt.do("start")[1]


def test_what_runs_goes_on_when_the_configuration_is_wrong(openwrt: OpenWrt) -> None:
    assert [line for line in openwrt.do("restart")[1] if line in ("stop", "register")] == ["stop", "register"]
    openwrt.wrong.touch()
    assert openwrt.do("restart") == (1, [])
    assert openwrt.do("start") == (1, []), "procd is told nothing: what it knows of goes on"
