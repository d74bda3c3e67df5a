"""Finds out what the host lacks, and mends it."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from armlet.errors import ArmletError, Kind
from armlet.events import Note, Sink, silent
from armlet.host import EngineState, Facts, search_path, survey
from armlet.lacks import FILES, PROGRAMS, Diagnosis, Remedy, instructions, judge, packages_of
from armlet.paths import Paths
from armlet.process import Command, Runner, checked, start_daemon

_ENGINE_PATIENCE_S = 90.0
# Docker may have to be installed, then started, before it can be judged.
_ROUNDS = 3
_APT = ("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-o", "DPkg::Lock::Timeout=300")


def look(runner: Runner, paths: Paths) -> Facts:
    return survey(runner, paths.cache, programs=PROGRAMS, files=FILES)


def diagnose(runner: Runner, paths: Paths, *, tests: bool = False) -> Diagnosis:
    """What this machine has and lacks; changes nothing."""
    return judge(look(runner, paths), tests=tests)


def prepare(
    runner: Runner, paths: Paths, emit: Sink, consent: Callable[[list[str]], bool], *, tests: bool = False
) -> None:
    """Makes sure that nothing blocking is missing, mending it where ``consent`` (shown the commands) allows.

    ``tests``: nor what the project's own tests need.

    Raises:
        ArmletError: something is lacking and was not mended.
    """
    found = diagnose(runner, paths, tests=tests)
    if found.blocking and consent(instructions(found.blocking, found.facts)):
        found = Doctor(runner=runner, paths=paths, emit=emit, tests=tests).fix()
    found.refuse()


@dataclass(frozen=True, slots=True, kw_only=True)
class Doctor:
    """Mends a machine. The fields are its eyes and hands."""

    runner: Runner
    paths: Paths
    emit: Sink = silent
    look: Callable[[Runner, Paths], Facts] = look
    start: Callable[[Command, Path], int] = start_daemon
    running: Callable[[int], bool] = lambda process: _runs(process)
    patience_s: float = _ENGINE_PATIENCE_S
    tests: bool = False
    """Mend what only the project's own tests need as well."""

    def fix(self) -> Diagnosis:
        """Does once what each blocking lack asks for, where this user may, and returns what is found after that.

        Raises:
            ArmletError: a command failed, or the engine did not start.
        """
        tried: set[Remedy] = set()
        updated = False
        for _ in range(_ROUNDS):
            found = self._diagnose()
            todo = [lack for lack in found.blocking if lack.remedy not in tried]
            if not todo or not found.facts.may_install:
                return found
            tried.update(lack.remedy for lack in todo)
            if (packages := packages_of(todo)) and found.facts.apt:
                self._install(packages, found.facts, update=not updated)
                updated = True
            for lack in todo:
                self._apply(lack.remedy, found.facts)
        return self._diagnose()

    def _diagnose(self) -> Diagnosis:
        return judge(self.look(self.runner, self.paths), tests=self.tests)

    def _install(self, packages: tuple[str, ...], facts: Facts, *, update: bool) -> None:
        self.emit(Note(text=f"installing {' '.join(packages)}"))
        if update:
            # A broken third-party list fails this, and may still leave all we need: the installation decides.
            self.runner.run(_as_root((*_APT, "update"), facts), self.emit)
        install = (*_APT, "install", "--yes", "--no-install-recommends", *packages)
        self._run(install, facts, what=f"cannot install {' '.join(packages)}")
        self.emit(Note(text="installed"))

    def _apply(self, remedy: Remedy, facts: Facts) -> None:
        if remedy.command:
            self.emit(Note(text=f"running {shlex.join(remedy.command)}"))
            self._run(remedy.command, facts, what=f"cannot run {shlex.join(remedy.command)}")
        if remedy.daemon:
            self._start(remedy.daemon, facts)

    def _run(self, argv: tuple[str, ...], facts: Facts, *, what: str) -> None:
        checked(self.runner, _as_root(argv, facts), what=what, kind=Kind.HOST, emit=self.emit)

    def _start(self, argv: tuple[str, ...], facts: Facts) -> None:
        """Starts the engine and waits until it is up."""
        log = self.paths.cache / "dockerd.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        self.emit(Note(text=f"starting {argv[0]}, its log in {log}"))
        process = self.start(_as_root(argv, facts), log)
        deadline = time.monotonic() + self.patience_s
        # An engine that runs may still refuse this user: that is the next round's matter.
        while self.look(self.runner, self.paths).engine in (EngineState.STOPPED, EngineState.ABSENT):
            if not self.running(process) or time.monotonic() > deadline:
                last = log.read_text(errors="replace").splitlines()[-1:] if log.exists() else []
                raise ArmletError(
                    f"the Docker engine did not start{': ' if last else ''}{''.join(last)}",
                    hint=f"start one yourself and see what it says: {shlex.join(argv)}",
                    kind=Kind.HOST,
                    log=log,
                )
            time.sleep(0.2)


def _as_root(argv: tuple[str, ...], facts: Facts) -> Command:
    prefix = () if facts.root else ("sudo", "-n", "--")
    return Command(argv=(*prefix, *argv), env={"PATH": search_path()})


def _runs(process: int) -> bool:
    try:
        ended, _ = os.waitpid(process, os.WNOHANG)
    except ChildProcessError:
        return False
    return ended == 0
