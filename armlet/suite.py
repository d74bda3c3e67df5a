"""The project's own checks: formatting, lint, types, tests."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping

from armlet.errors import ArmletError, Kind, host_error
from armlet.events import Note, Sink
from armlet.paths import Paths
from armlet.process import Command, Runner
from armlet.remote.settings import SHARING

_STATIC = (
    ("ruff", "format", "--check"),
    ("ruff", "check"),
    ("mypy",),
)
_QUICK = (
    "pytest",
    "-q",
    "-m",
    "not docker and not qemu and not build and not frameworks and not heavy",
    "tests/unit",
    "tests/contract",
)
_WHOLE = ("pytest", "--durations=10")


def check(paths: Paths, runner: Runner, emit: Sink) -> None:
    """Everything that needs neither Docker nor QEMU.

    Raises:
        ArmletError: (BUILD) a tool is not content; all of them have run, and said why.
    """
    _run(paths, runner, emit, (*_STATIC, _QUICK))


def test(paths: Paths, runner: Runner, emit: Sink) -> None:
    """What ``check`` does, with the whole default suite in place of its tests: real builds and QEMU runs included.

    Raises:
        ArmletError: (BUILD) as ``check``.
    """
    _run(paths, runner, emit, (*_STATIC, _WHOLE))


def _run(paths: Paths, runner: Runner, emit: Sink, tools: tuple[tuple[str, ...], ...]) -> None:
    failed = []
    for tool in tools:
        emit(Note(text=" ".join(tool)))
        command = Command(argv=(sys.executable, "-m", *tool), cwd=paths.root, env=_settings(os.environ))
        if runner.run(command, emit).code != 0:
            failed.append(tool)
    if failed:
        again = "; ".join(f".venv/bin/python -m {shlex.join(tool)}" for tool in failed)
        raise ArmletError(
            f"not content: {', '.join(' '.join(tool[:2]) for tool in failed)}",
            hint=f"see the lines above; run again: {again}",
            kind=Kind.BUILD,
        )


def _settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Of the caller's environment what the tests go by: our own variables, and whether this is a CI."""
    kept = {name: value for name, value in environment.items() if name.startswith("ARMLET_") or name == "CI"}
    # What tests build is built, and nobody else's.
    kept = {name: value for name, value in kept.items() if name not in SHARING}
    # Lines as they come, although they go through a pipe.
    return {**kept, "PYTHONUNBUFFERED": "1"}


def clean(paths: Paths, *, cache: bool, consent: Callable[[list[str]], bool]) -> list[str]:
    """Removes the outputs and, if asked, the cache, once ``consent`` (shown the folders) is given; returns them.

    Raises:
        ArmletError: consent was not given, and nothing is removed; (HOST) a file cannot be.
    """
    folders = [paths.root / "dist", *([paths.cache] if cache else [])]
    there = [folder for folder in folders if folder.exists()]
    names = [str(folder) for folder in there]
    if there and not consent(names):
        raise ArmletError("nothing was removed", hint="say yes when asked, or add --yes", kind=Kind.INPUT)
    for folder in there:
        try:
            shutil.rmtree(folder)
        except OSError as error:
            raise host_error(error, folder) from error
    return names
