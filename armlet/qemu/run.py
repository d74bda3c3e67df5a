"""Running a program of the target's architecture under QEMU's user mode, as one particular core."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from armlet.errors import ArmletError, Kind
from armlet.events import Sink, silent
from armlet.process import Command, Done, HostRunner, Runner
from armlet.spec.cpu import Cpu

EMULATORS = {
    "aarch64": ("qemu-aarch64-static", "qemu-aarch64"),
    "armhf": ("qemu-arm-static", "qemu-arm"),
}
TIMEOUT_SECONDS = 900
_TIMED_OUT = 124
"""What ``timeout`` ends with."""

_LISTING, _UNKNOWN_MODEL = "Available CPUs", "unable to find CPU model"
"""QEMU's words."""
ANY_CORE = frozenset({"max", "any", "host"})
"""QEMU's models that have whatever there is."""
_MEANINGS = {
    signal.SIGILL: (
        "an instruction that {cpu} does not have",
        "the build uses an extension beyond the core's baseline: check -march and the provider's kernels",
    ),
    signal.SIGSEGV: (
        "an access to memory that is not the program's",
        "the last lines of the output name the Python frames; run the same on the host's library to tell them apart",
    ),
    signal.SIGBUS: ("an access that is misaligned or beyond a mapped file's end", "was a file cut short?"),
    signal.SIGABRT: (
        "the program ended itself; a library without exceptions does so where it would throw",
        "the last lines of the output say why",
    ),
    signal.SIGKILL: ("something ended it, most likely for want of memory", "give the machine more memory"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a program runs: a root file system of its architecture, and the core that QEMU is to be."""

    rootfs: Path
    cpu: Cpu


def demand_model(cpu: Cpu, runner: Runner | None = None) -> None:
    """Does nothing where the installed QEMU knows the model that stands for the core, or does not say what it knows.

    Raises:
        ArmletError: (HOST) there is no emulator, or it is older than the model.
    """
    emulator = _emulator(cpu.arch)
    listed = (runner or HostRunner()).run(Command(argv=(emulator, "-cpu", "help")), silent)
    words = [line.split()[0] for line in listed.tail if line.startswith(" ") and line.strip()]
    # The exit code says little: that of QEMU 7.2 is 1 although it lists them.
    told = listed.code == 0 or any(line.startswith(_LISTING) for line in listed.tail)
    if told and cpu.qemu not in words:
        raise _no_model(emulator, cpu, [word for word in words if word not in ANY_CORE])


def _no_model(emulator: str, cpu: Cpu, known: Sequence[str] | None = None) -> ArmletError:
    """``known`` are the particular cores that the emulator lists; None where it was not asked."""
    hint = "install a newer QEMU (package qemu-user-static)"
    if known:
        hint += f", or name one of these in armlet/spec/cpu.py that has no more than {cpu.name}: {', '.join(known)}"
    lists = ", nor any other" if known is not None and not known else ""
    what = f'{Path(emulator).name} knows no core "{cpu.qemu}", as which {cpu.name} is run{lists}'
    return ArmletError(what, hint=hint, kind=Kind.HOST)


def run_on_target(
    target: Target,
    argv: tuple[str, ...],
    *,
    env: Mapping[str, str] | None = None,
    emit: Sink = silent,
    runner: Runner | None = None,
) -> Done:
    """Runs a program and returns how it ended; an exit code of its own is the caller's to judge.

    ``argv[0]`` is a path inside the root file system. The program sees this machine's files wherever the root file
    system has none of that name.

    Raises:
        ArmletError: (HOST) there is no emulator, or it does not know the core; (TARGET) a signal or the time limit
            ended the program.
    """
    if target.cpu.qemu in ANY_CORE:
        raise ArmletError(
            f"{target.cpu.name} has no QEMU model of its own, and '{target.cpu.qemu}' would hide what the core lacks",
            hint="name the core's own model, or that of an older one, in armlet/spec/cpu.py",
            kind=Kind.INPUT,
        )
    program = target.rootfs / argv[0].lstrip("/")
    emulator = _emulator(target.cpu.arch)
    emulated = (emulator, "-cpu", target.cpu.qemu, "-L", str(target.rootfs), str(program))
    # A hung emulator would otherwise hold up everything behind it.
    limited = ("timeout", "--kill-after=10", str(TIMEOUT_SECONDS), *emulated, *argv[1:])
    done = (runner or HostRunner()).run(Command(argv=limited, env=env or {}), emit)
    if done.code == _TIMED_OUT:
        raise _failed(f"{argv[0]} did not end within {TIMEOUT_SECONDS} s on {target.cpu.name}", "", done)
    if done.code and any(_UNKNOWN_MODEL in line for line in done.tail):
        raise _no_model(emulator, target.cpu)
    number = -done.code if done.code < 0 else done.code - 128
    if number in _MEANINGS:
        meaning, hint = _MEANINGS[signal.Signals(number)]
        name = signal.Signals(number).name
        raise _failed(f"{argv[0]} ended with {name}: {meaning.format(cpu=target.cpu.name)}", hint, done)
    return done


def run_python(
    target: Target,
    arguments: tuple[str, ...],
    *,
    path: Sequence[Path],
    site_packages: bool = True,
    scratch: Path | None = None,
    emit: Sink = silent,
    runner: Runner | None = None,
) -> Done:
    """Runs the target's Python with the modules in ``path``'s folders; without ``site_packages`` there is no NumPy.

    ``scratch`` is where it may leave temporary files: one that is ended with QEMU does not clean up.

    Raises:
        ArmletError: as :func:`run_on_target`.
    """
    env = {
        "PYTHONHOME": str(target.rootfs / "usr"),
        "PYTHONPATH": os.pathsep.join(map(str, path)),
        "PYTHONNOUSERSITE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONFAULTHANDLER": "1",
        # OpenBLAS or OpenMP in the root file system would start a thread per core of this machine.
        "OMP_NUM_THREADS": "1",
        **({"TMPDIR": str(scratch)} if scratch else {}),
    }
    options = () if site_packages else ("-S",)
    return run_on_target(target, ("/usr/bin/python3", *options, *arguments), env=env, emit=emit, runner=runner)


def _emulator(arch: str) -> str:
    found = next((path for name in EMULATORS[arch] if (path := shutil.which(name))), None)
    if found is None:
        raise ArmletError(
            f"no QEMU user mode emulator for {arch}: {' or '.join(EMULATORS[arch])}",
            hint="sudo apt install qemu-user-static; ./inv doctor --fix does it",
            kind=Kind.HOST,
        )
    return found


def _failed(what: str, hint: str, done: Done) -> ArmletError:
    said = "".join(f"\n  {line}" for line in done.tail[-12:])
    # Not the command: the files that it names are gone by then.
    by_hand = "docs/smoke.md says how to run it by hand"
    return ArmletError(what + said, hint=f"{hint}; {by_hand}".removeprefix("; "), kind=Kind.TARGET)
