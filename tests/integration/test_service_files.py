"""What starts the service: the systemd unit and the init scripts."""

from __future__ import annotations

import configparser
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

UNIT = ROOT / "device" / "systemd" / "armlet-serve.service"
NETWORK = UNIT.with_name("armlet-serve.service.d") / "network.conf"
SCRIPT = ROOT / "device" / "init" / "S90armlet-serve"
OPENWRT = SCRIPT.with_name("armlet-serve")
MOST_EXPOSED = 2.5


def settings() -> dict[str, list[str]]:
    """All values of each key of [Service]."""
    found: dict[str, list[str]] = {}
    for key, value in re.findall(r"^(\w+)=(.*)$", UNIT.read_text(), re.MULTILINE):
        found.setdefault(key, []).append(value)
    return found


@pytest.mark.parametrize("opened", [False, True])
def test_systemd_judges_the_sandbox_well(opened: bool, tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    # What a drop-in says counts as if it stood at the end of the section; [Install] comes after it.
    section, install, rest = UNIT.read_text().partition("[Install]")
    unit.write_text(section + (NETWORK.read_text() if opened else "") + install + rest)
    run = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", str(unit)],
        capture_output=True,
        text=True,
        check=True,
    )
    (level,) = re.findall(r"Overall exposure level for \S+: ([0-9.]+)", run.stdout)
    assert float(level) <= MOST_EXPOSED


def test_systemd_knows_every_key() -> None:
    run = subprocess.run(["systemd-analyze", "verify", str(UNIT)], capture_output=True, text=True, check=False)
    told = [line for line in run.stderr.splitlines() if "armlet-serve" in line]
    # The program is not installed here.
    assert [line for line in told if "is not executable" not in line] == []


def test_the_files_that_the_runtime_reads_stay_visible() -> None:
    found = settings()
    assert found["ProcSubset"] == ["all"]
    assert not {"InaccessiblePaths", "TemporaryFileSystem", "RootDirectory", "RootImage"} & set(found)


def test_workers_may_do_what_they_do() -> None:
    found = settings()
    assert not any(value.startswith("~") and "@resources" in value for value in found["SystemCallFilter"])
    assert found["OOMPolicy"] == ["continue"]
    assert found["KillMode"] == ["mixed"]
    assert found["Type"] == ["notify"]
    assert found["MemoryMax"]
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.read(UNIT)
    assert parser["Unit"]["StartLimitIntervalSec"] == "0"


@pytest.mark.parametrize("script", [SCRIPT, OPENWRT])
def test_the_script_is_clean(script: Path) -> None:
    shellcheck = Path(sys.executable).with_name("shellcheck")
    subprocess.run([str(shellcheck), str(script)], check=True)


class Script:
    """The init script with a service of our own."""

    def __init__(self, folder: Path) -> None:
        self.run_folder = folder / "run it"
        self.log = folder / "log"
        self.wrong = folder / "wrong"
        daemon = folder / "armlet-serve"
        daemon.write_text(
            "#!/bin/sh\n"
            # Its payloads are never in order.
            f'case "$*" in *--check) exit 2 ;; *" --check --configuration") [ ! -e "{self.wrong}" ]; exit ;; esac\n'
            f'echo started >>"{self.log}"\n'
            f"trap 'echo ended >>\"{self.log}\"; exit 0' TERM\n"
            "while :; do sleep 0.1; done\n"
        )
        daemon.chmod(0o755)
        self.settings = folder / "settings"
        self.settings.write_text(f'DAEMON="{daemon}"\nCONFIG="{folder}/device.conf"\nRUN="{self.run_folder}"\n')

    def do(self, verb: str) -> int:
        return subprocess.run(
            [str(SCRIPT), verb],
            env={"PATH": os.environ["PATH"], "ARMLET_SERVE_SETTINGS": str(self.settings)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
            timeout=60,
        ).returncode

    @property
    def said(self) -> list[str]:
        return self.log.read_text().split() if self.log.exists() else []

    def wait_for(self, said: list[str]) -> None:
        end = time.monotonic() + 20
        while self.said != said:
            assert time.monotonic() < end, self.said
            time.sleep(0.05)


@pytest.fixture
def script(tmp_path: Path) -> Iterator[Script]:
    one = Script(tmp_path)
    yield one
    one.do("stop")


def test_start_stop_and_status(script: Script) -> None:
    assert script.do("status") == 3
    assert script.do("start") == 0
    script.wait_for(["started"])
    assert script.do("status") == 0
    assert script.do("start") == 0
    assert script.do("stop") == 0
    assert script.said == ["started", "ended"]
    assert script.do("status") == 3
    assert script.do("stop") == 0
    assert list(script.run_folder.iterdir()) == []


def test_restart_refuses_a_wrong_configuration_and_the_old_one_goes_on(script: Script) -> None:
    script.wrong.touch()
    assert script.do("start") == 1
    script.wrong.unlink()
    script.do("start")
    script.wait_for(["started"])
    script.wrong.touch()
    assert script.do("restart") == 1
    assert script.do("status") == 0
    script.wrong.unlink()
    assert script.do("restart") == 0
    script.wait_for(["started", "ended", "started"])


def test_a_service_that_was_killed_is_started_again(script: Script) -> None:
    script.do("start")
    script.wait_for(["started"])
    os.kill(int((script.run_folder / "service.pid").read_text()), 9)
    script.wait_for(["started", "started"])
    assert script.do("status") == 0


def test_each_verb_is_done_when_it_returns(script: Script) -> None:
    for _ in range(6):
        assert [script.do(verb) for verb in ("start", "status", "stop", "status")] == [0, 0, 0, 3]
    began = time.monotonic()
    script.do("start")
    assert (script.do("stop"), time.monotonic() - began < 15) == (0, True)


def test_a_service_that_ends_at_once_was_not_started(script: Script) -> None:
    daemon = script.settings.with_name("armlet-serve")
    daemon.write_text("#!/bin/sh\ncase $* in *--check*) exit 0 ;; esac\nexit 2\n")
    assert script.do("start") == 1
    assert script.do("status") == 3


def test_the_folder_is_there_when_the_configuration_is_checked(script: Script) -> None:
    daemon = script.settings.with_name("armlet-serve")
    daemon.write_text(
        f'#!/bin/sh\n[ -d "{script.run_folder}" ] || exit 3\ncase $* in *--check*) exit 0 ;; esac\n'
        "while :; do sleep 0.1; done\n"
    )
    assert script.do("start") == 0


def test_a_stale_number_is_no_service(script: Script) -> None:
    script.run_folder.mkdir()
    (script.run_folder / "keeper.pid").write_text(f"{os.getpid()}\n")
    assert script.do("status") == 3
    assert script.do("start") == 0
    script.wait_for(["started"])


def test_other_verbs(script: Script) -> None:
    assert script.do("reload") == 2
