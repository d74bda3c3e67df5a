"""What the host must have, and what mends a lack: a table and pure functions over ``host.Facts``."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from armlet.errors import ArmletError, Kind
from armlet.host import EngineState, Facts

GIB = 1 << 30
DISK_WANTED = 15 * GIB
MEMORY_WANTED = 4 * GIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """What mends a lack. Everything but ``advice`` runs as root and without a question."""

    packages: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    daemon: tuple[str, ...] = ()
    """Started and left running."""
    advice: str = ""
    """What only the user can do, or must do afterwards."""

    @property
    def can_be_done(self) -> bool:
        return bool(self.packages or self.command or self.daemon)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lack:
    detail: str
    remedy: Remedy
    blocking: bool = True
    """Nothing can be built without it."""


Judge = Callable[[Facts], Lack | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    name: str
    why: str
    judge: Judge
    for_tests: bool = False
    """Only ``./inv test`` cannot do without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A check's verdict on this machine; ``lack`` is None where all is well."""

    check: Check
    lack: Lack | None

    @property
    def blocks(self) -> bool:
        return self.lack is not None and self.lack.blocking


def _program(names: tuple[str, ...], package: str, *, blocking: bool = True) -> Judge:
    def judged(facts: Facts) -> Lack | None:
        if any(name in facts.programs for name in names):
            return None
        detail = f"no program {' or '.join(names)}"
        return Lack(detail=detail, remedy=Remedy(packages=(package,)), blocking=blocking)

    return judged


def _file(path: str, package: str) -> Judge:
    def judged(facts: Facts) -> Lack | None:
        return None if path in facts.files else Lack(detail=f"no {path}", remedy=Remedy(packages=(package,)))

    return judged


def _at_least(measure: Callable[[Facts], int], wanted: int, advice: str) -> Judge:
    def judged(facts: Facts) -> Lack | None:
        found = measure(facts)
        if found >= wanted:
            return None
        detail = f"{found / GIB:.1f} GiB; {wanted / GIB:.0f} GiB is comfortable"
        return Lack(detail=detail, remedy=Remedy(advice=advice), blocking=False)

    return judged


def _venv(facts: Facts) -> Lack | None:
    return None if facts.venv else Lack(detail="no module ensurepip", remedy=Remedy(packages=("python3-venv",)))


def _uidmap(facts: Facts) -> Lack | None:
    return None if facts.root else _program(("newuidmap",), "uidmap")(facts)


def _engine(facts: Facts) -> Lack | None:
    if facts.engine is EngineState.REACHABLE:
        return None
    start = (
        Remedy(command=("systemctl", "start", "docker"))
        if facts.systemd
        else Remedy(daemon=(facts.programs.get("dockerd", "dockerd"),))
    )
    remedies = {
        EngineState.ABSENT: Remedy(packages=("docker.io",)),
        EngineState.STOPPED: start,
        EngineState.DENIED: Remedy(
            command=("usermod", "--append", "--groups", "docker", facts.user),
            advice="then log out and in again, so that the new group counts (or run: newgrp docker)",
        ),
        EngineState.ELSEWHERE: Remedy(advice="start the engine that DOCKER_HOST names, or unset DOCKER_HOST"),
    }
    return Lack(detail=f"{facts.engine.value} ({facts.engine_place})", remedy=remedies[facts.engine])


def _for_tests(program: str, why: str, *, package: str = "") -> Check:
    judge = _program((program,), package or program, blocking=False)
    return Check(name=program, why=why, judge=judge, for_tests=True)


_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
FILES = (_KEYRING,)
PROGRAMS = (
    "curl",
    "docker",
    "dockerd",
    "mmdebstrap",
    "mosquitto",
    "newuidmap",
    "patch",
    "pkg-config",
    "podman",
    "qemu-aarch64",
    "qemu-aarch64-static",
    "qemu-arm",
    "qemu-arm-static",
    "redis-server",
    "systemd-analyze",
)
"""What a survey must look for, so that the checks below can judge."""

CHECKS: tuple[Check, ...] = (
    Check(name="python3-venv", why="./inv makes its own Python environment", judge=_venv),
    Check(name="docker engine", why="compilers run in containers", judge=_engine),
    Check(
        name="docker client",
        why="opens shells: toolchain.shell, --shell-on-fail",
        judge=_program(("docker", "podman"), "docker-cli", blocking=False),
    ),
    Check(
        name="mmdebstrap",
        why="bootstraps the toolchain's base image and the target's root file system",
        judge=_program(("mmdebstrap",), "mmdebstrap"),
    ),
    Check(name="uidmap", why="lets mmdebstrap work for a user who is not root", judge=_uidmap),
    Check(
        name="debian-archive-keyring",
        why="checks the signatures of Debian's packages",
        judge=_file(_KEYRING, "debian-archive-keyring"),
    ),
    Check(
        name="qemu-user",
        why="runs the target's programs",
        judge=_program(("qemu-aarch64-static", "qemu-aarch64"), "qemu-user-static"),
    ),
    Check(name="patch", why="applies our patches to the sources", judge=_program(("patch",), "patch")),
    _for_tests("curl", "tests run the examples in the service's documentation"),
    _for_tests("redis-server", "tests share compiled objects through it"),
    _for_tests("systemd-analyze", "tests judge the service's sandbox with it", package="systemd"),
    _for_tests("mosquitto", "tests talk MQTT with it as their broker"),
    _for_tests("pkg-config", "tests build against the runtime's package with it"),
    Check(
        name="disk",
        why="sources, images and compiler caches",
        judge=_at_least(lambda facts: facts.free_disk, DISK_WANTED, "set ARMLET_CACHE to a folder on a larger disk"),
    ),
    Check(
        name="memory",
        why="each compile job takes up to 2 GiB",
        judge=_at_least(lambda facts: facts.memory, MEMORY_WANTED, "build with --jobs 1"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """Every check's verdict on one machine, in the order of ``CHECKS``."""

    facts: Facts
    findings: tuple[Finding, ...]

    @property
    def blocking(self) -> tuple[Lack, ...]:
        return tuple(found.lack for found in self.findings if found.lack is not None and found.lack.blocking)

    def refuse(self) -> None:
        """Does nothing where nothing blocks.

        Raises:
            ArmletError: something does; the hint has what to type.
        """
        told = [f"{found.check.name}: {found.lack.detail}" for found in self.findings if found.lack and found.blocks]
        if told:
            steps = instructions(self.blocking, self.facts)
            if any(lack.remedy.can_be_done for lack in self.blocking):
                first = "" if self.facts.may_install else "sudo -v && "
                steps.append(f"or let it be done: {first}./inv doctor --fix")
            hint = "\n       ".join(steps)
            raise ArmletError(f"this machine lacks something ({'; '.join(told)})", hint=hint, kind=Kind.HOST)


def judge(facts: Facts, *, tests: bool = False) -> Diagnosis:
    """``tests``: what only they need blocks as well."""
    findings = []
    for check in CHECKS:
        lack = check.judge(facts)
        if lack is not None and tests and check.for_tests:
            lack = replace(lack, blocking=True)
        findings.append(Finding(check=check, lack=lack))
    return Diagnosis(facts=facts, findings=tuple(findings))


def packages_of(lacks: Sequence[Lack]) -> tuple[str, ...]:
    """Sorted, each once."""
    return tuple(sorted({package for lack in lacks for package in lack.remedy.packages}))


def instructions(lacks: Sequence[Lack], facts: Facts) -> list[str]:
    """What to type (or do) so that these are mended: packages in one command, then the rest."""
    sudo = "" if facts.root else "sudo "
    lines = []
    packages = " ".join(packages_of(lacks))
    if packages and facts.apt:
        lines.append(f"{sudo}apt-get update && {sudo}apt-get install --no-install-recommends {packages}")
    elif packages:
        lines.append(f"install with your package manager (Debian's names): {packages}")
    for remedy in (lack.remedy for lack in lacks):
        lines += [f"{sudo}{shlex.join(remedy.command)}"] if remedy.command else []
        lines += [f"{sudo}{shlex.join(remedy.daemon)} &"] if remedy.daemon else []
        lines += [remedy.advice] if remedy.advice else []
    return lines
