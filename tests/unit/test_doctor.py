"""What the doctor finds, and what he does about it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from armlet.doctor import Doctor, diagnose, prepare
from armlet.errors import ArmletError, Kind
from armlet.events import silent
from armlet.host import EngineState, Facts
from armlet.lacks import CHECKS, FILES, GIB, PROGRAMS, instructions, judge, packages_of
from armlet.paths import Paths
from armlet.process import Command, Runner, start_daemon
from tests.fakes.runner import FakeRunner, done

HEALTHY = Facts(
    apt=True,
    user="root",
    root=True,
    sudo=False,
    systemd=False,
    programs={name: f"/usr/bin/{name}" for name in PROGRAMS},
    files=frozenset(FILES),
    venv=True,
    engine=EngineState.REACHABLE,
    engine_place="unix:///var/run/docker.sock",
    free_disk=100 * GIB,
    memory=16 * GIB,
)


def but(**changes: object) -> Facts:
    return dataclasses.replace(HEALTHY, **changes)  # type: ignore[arg-type]


def without(*programs: str) -> dict[str, str]:
    return {name: place for name, place in HEALTHY.programs.items() if name not in programs}


class FakeMachine:
    """A machine that changes as commands run on it: each look shows the next state, the last one for ever."""

    def __init__(self, *states: Facts) -> None:
        self.states = list(states)

    def look(self, runner: Runner, paths: Paths) -> Facts:
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]


def test_a_healthy_machine_lacks_nothing() -> None:
    found = judge(HEALTHY)
    assert [finding.check for finding in found.findings] == list(CHECKS)
    assert found.blocking == ()
    found.refuse()


@pytest.mark.parametrize(
    ("facts", "check", "package"),
    [
        (but(venv=False), "python3-venv", "python3-venv"),
        (but(programs=without("mmdebstrap")), "mmdebstrap", "mmdebstrap"),
        (but(programs=without("qemu-aarch64", "qemu-aarch64-static")), "qemu-user", "qemu-user-static"),
        (but(programs=without("patch")), "patch", "patch"),
        (but(files=frozenset(FILES[1:])), "debian-archive-keyring", "debian-archive-keyring"),
        (but(engine=EngineState.ABSENT), "docker engine", "docker.io"),
        (but(root=False, programs=without("newuidmap")), "uidmap", "uidmap"),
    ],
)
def test_each_lack_names_its_package(facts: Facts, check: str, package: str) -> None:
    found = judge(facts)
    (finding,) = [finding for finding in found.findings if finding.lack]
    assert finding.check.name == check
    assert finding.lack is not None
    assert finding.lack.remedy.packages == (package,)
    with pytest.raises(ArmletError) as refused:
        found.refuse()
    assert refused.value.kind is Kind.HOST
    assert package in refused.value.hint


@pytest.mark.parametrize("one", ["qemu-aarch64", "qemu-aarch64-static"])
def test_either_qemu_will_do(one: str) -> None:
    assert judge(but(programs=without(one))).blocking == ()


def test_little_disk_and_memory_are_told_but_stop_nothing() -> None:
    found = judge(but(free_disk=3 * GIB, memory=GIB, programs=without("docker", "podman")))
    assert {finding.check.name for finding in found.findings if finding.lack} == {"disk", "memory", "docker client"}
    assert found.blocking == ()
    found.refuse()


def test_instructions_are_one_installation_then_the_rest() -> None:
    facts = but(root=False, user="anna", programs=without("mmdebstrap", "patch"), engine=EngineState.DENIED)
    first, second, third = instructions(judge(facts).blocking, facts)
    assert first == "sudo apt-get update && sudo apt-get install --no-install-recommends mmdebstrap patch"
    assert second == "sudo usermod --append --groups docker anna"
    assert "log out" in third


def test_another_distribution_is_told_the_packages() -> None:
    facts = but(apt=False, programs=without("mmdebstrap"))
    assert instructions(judge(facts).blocking, facts) == [
        "install with your package manager (Debian's names): mmdebstrap"
    ]


def test_what_only_tests_need_blocks_only_them() -> None:
    facts = but(programs=without("curl", "mosquitto", "pkg-config", "systemd-analyze"))
    assert judge(facts).blocking == ()
    assert packages_of(judge(facts, tests=True).blocking) == ("curl", "mosquitto", "pkg-config", "systemd")


@pytest.mark.parametrize(("systemd", "words"), [(True, "systemctl start docker"), (False, "/usr/bin/dockerd &")])
def test_a_stopped_engine_is_started_by_whoever_manages_services(systemd: bool, words: str) -> None:
    facts = but(engine=EngineState.STOPPED, systemd=systemd)
    assert instructions(judge(facts).blocking, facts) == [words]


def doctor(machine: FakeMachine, runner: Runner, paths: Paths, **more: object) -> Doctor:
    return Doctor(runner=runner, paths=paths, look=machine.look, **more)  # type: ignore[arg-type]


def test_fixing_updates_once_and_installs_at_once(paths: Paths) -> None:
    lacking = but(programs=without("mmdebstrap", "patch"), engine=EngineState.ABSENT)
    machine = FakeMachine(lacking, but(venv=False), HEALTHY)
    runner = FakeRunner()
    assert doctor(machine, runner, paths).fix().blocking == ()
    installs = [line for line in runner.asked if " install " in line]
    assert len([line for line in runner.asked if line.endswith(" update")]) == 1
    assert len(installs) == 2
    assert installs[0].endswith("--yes --no-install-recommends docker.io mmdebstrap patch")
    assert all(line.startswith("env DEBIAN_FRONTEND=noninteractive apt-get") for line in runner.asked)


def test_fixing_a_healthy_machine_does_nothing(paths: Paths) -> None:
    runner = FakeRunner()
    doctor(FakeMachine(HEALTHY), runner, paths).fix()
    assert runner.asked == []


def test_a_broken_list_does_not_stop_the_installation(paths: Paths) -> None:
    machine = FakeMachine(but(programs=without("mmdebstrap")), HEALTHY)
    assert doctor(machine, FakeRunner({" update": done(100, "E: no")}), paths).fix().blocking == ()


def test_a_failed_installation_says_what_apt_said(paths: Paths) -> None:
    machine = FakeMachine(but(programs=without("mmdebstrap")))
    runner = FakeRunner({" install ": done(100, "E: Unable to locate package mmdebstrap")})
    with pytest.raises(ArmletError, match="cannot install mmdebstrap") as failed:
        doctor(machine, runner, paths).fix()
    assert failed.value.kind is Kind.HOST
    assert "Unable to locate package" in failed.value.hint


def test_what_does_not_help_is_not_done_twice(paths: Paths) -> None:
    machine = FakeMachine(but(engine=EngineState.DENIED))
    runner = FakeRunner()
    found = doctor(machine, runner, paths).fix()
    assert len(runner.asked) == 1
    with pytest.raises(ArmletError, match="no permission"):
        found.refuse()


def test_without_rights_nothing_is_tried(paths: Paths) -> None:
    runner = FakeRunner()
    found = doctor(FakeMachine(but(root=False, programs=without("mmdebstrap"))), runner, paths).fix()
    assert runner.asked == []
    assert len(found.blocking) == 1


def test_with_sudo_every_change_goes_through_it(paths: Paths) -> None:
    machine = FakeMachine(but(root=False, sudo=True, programs=without("mmdebstrap")), HEALTHY)
    runner = FakeRunner()
    doctor(machine, runner, paths).fix()
    assert runner.asked
    assert all(line.startswith("sudo -n -- ") for line in runner.asked)


def test_an_engine_is_started_and_waited_for(paths: Paths) -> None:
    stopped = but(engine=EngineState.STOPPED)
    started: list[tuple[Command, Path]] = []

    def start(command: Command, log: Path) -> int:
        started.append((command, log))
        return 1

    machine = FakeMachine(stopped, stopped, stopped, HEALTHY)
    found = doctor(machine, FakeRunner(), paths, start=start, running=lambda process: True).fix()
    assert found.blocking == ()
    assert [(command.argv, log.parent) for command, log in started] == [(("/usr/bin/dockerd",), paths.cache)]


def test_an_engine_started_for_a_user_without_its_group(paths: Paths) -> None:
    user = {"root": False, "sudo": True, "user": "anna"}
    stopped, denied = but(engine=EngineState.STOPPED, **user), but(engine=EngineState.DENIED, **user)
    machine = FakeMachine(stopped, denied)
    runner = FakeRunner()
    found = doctor(machine, runner, paths, start=lambda *_: 1, running=lambda process: True).fix()
    assert runner.asked == ["sudo -n -- usermod --append --groups docker anna"]
    with pytest.raises(ArmletError) as refused:
        found.refuse()
    assert "log out and in again" in refused.value.hint


def test_an_engine_that_dies_is_told_with_its_last_words(paths: Paths) -> None:
    program = paths.root / "dockerd"
    program.write_text("#!/bin/sh\necho cannot mount cgroups\nexit 1\n")
    program.chmod(0o755)
    programs = {**HEALTHY.programs, "dockerd": str(program)}
    machine = FakeMachine(but(engine=EngineState.STOPPED, programs=programs))
    with pytest.raises(ArmletError, match="cannot mount cgroups") as failed:
        doctor(machine, FakeRunner(), paths, start=start_daemon).fix()
    assert failed.value.kind is Kind.HOST
    assert failed.value.log == paths.cache / "dockerd.log"


def test_an_engine_that_hangs_is_given_up(paths: Paths) -> None:
    machine = FakeMachine(but(engine=EngineState.STOPPED))
    hanging = doctor(machine, FakeRunner(), paths, start=lambda *_: 1, running=lambda process: True, patience_s=0.0)
    with pytest.raises(ArmletError, match="did not start"):
        hanging.fix()


def test_preparing_asks_before_it_changes_anything(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("armlet.doctor.look", FakeMachine(but(programs=without("mmdebstrap"))).look)
    shown: list[list[str]] = []

    def no(commands: list[str]) -> bool:
        shown.append(commands)
        return False

    runner = FakeRunner()
    with pytest.raises(ArmletError, match="lacks something"):
        prepare(runner, paths, silent, no)
    assert runner.asked == []
    assert "mmdebstrap" in shown[0][0]


def test_this_machine_can_be_looked_at(paths: Paths) -> None:
    facts = diagnose(FakeRunner(), paths).facts
    assert facts.memory > 0
    assert facts.free_disk > 0
    assert facts.user
