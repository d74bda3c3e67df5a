"""Running commands on the host. The only module that uses ``subprocess``."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, Protocol

from armlet.errors import ArmletError, Kind
from armlet.events import Line, Sink, silent

TAIL_LINES = 400

Explain = Callable[[int, tuple[str, ...]], str]
"""(exit code, tail of the output) -> hint, empty where it knows nothing."""


def no_hint(_code: int, _tail: tuple[str, ...]) -> str:
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One program to run: an argument vector, never a shell string.

    ``env`` is added to a fixed base environment, never to the caller's.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: PurePath | None = None
    explain: Explain = no_hint

    def __str__(self) -> str:
        return shlex.join(self.argv)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """How a command ended: exit code and its last lines (at most ``TAIL_LINES``)."""

    code: int
    tail: tuple[str, ...]

    @property
    def output(self) -> str:
        return "\n".join(self.tail)


class Runner(Protocol):
    """Runs commands: on the host, in a container, or in a test's script."""

    def run(self, command: Command, emit: Sink = silent) -> Done: ...


_PASSED_ON = (
    "HOME",
    "PATH",
    "TMPDIR",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "PIP_CLIENT_CERT",
    "PIP_CONFIG_FILE",
    "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS",
    "PIP_INDEX_URL",
    "PIP_TRUSTED_HOST",
    "DOCKER_HOST",
)


def base_environment() -> dict[str, str]:
    """What a child process may know of the caller: where things are, how to reach the network, nothing else."""
    kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {**kept, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}


class HostRunner:
    """Runs commands on this machine, streaming their output line by line."""

    def run(self, command: Command, emit: Sink = silent) -> Done:
        """Runs to the end and returns how it ended; a non-zero exit is the caller's to judge.

        Raises:
            ArmletError: the program is not there, or may not be run.
        """
        try:
            process = subprocess.Popen(
                command.argv,
                env={**base_environment(), **command.env},
                cwd=command.cwd,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                # A group of its own: Ctrl-C reaches us first, and we end the whole group.
                start_new_session=True,
            )
        except OSError as error:
            raise ArmletError(
                f"cannot run {command.argv[0]}: {error.strerror}",
                hint="run: ./inv doctor",
                kind=Kind.HOST,
            ) from error
        tail: deque[str] = deque(maxlen=TAIL_LINES)
        assert process.stdout is not None
        try:
            with process.stdout:
                for text in process.stdout:
                    tail.append(text.rstrip("\n"))
                    emit(Line(text=tail[-1]))
            code = process.wait()
        except BaseException:
            _end_group(process)
            raise
        return Done(code=code, tail=tuple(tail))


def _end_group(process: subprocess.Popen[Any]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            process.wait()
        return


def start_daemon(command: Command, log: Path) -> int:
    """Starts a program that outlives us, its output in ``log``; returns its process id."""
    with log.open("ab") as stream:
        process = subprocess.Popen(
            command.argv,
            env={**base_environment(), **command.env},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    # Reaped by init, not by us: this keeps Popen's destructor from warning about a child still running.
    process.returncode = 0
    return process.pid


class Companion:
    """A program that ends when its input does: with this process, however that ends."""

    def __init__(self, command: Command, log: Path) -> None:
        """Raises:
        ArmletError: the program is not there, or may not be run.
        """
        try:
            with log.open("ab") as stream:
                self._process = subprocess.Popen(
                    command.argv,
                    env={**base_environment(), **command.env},
                    stdin=subprocess.PIPE,
                    stdout=stream,
                    stderr=stream,
                    start_new_session=True,
                )
        except OSError as error:
            raise ArmletError(
                f"cannot run {command.argv[0]}: {error.strerror}", hint="install it", kind=Kind.HOST
            ) from error

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def end(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            _end_group(self._process)


def checked(runner: Runner, command: Command, *, what: str, kind: Kind, emit: Sink = silent) -> Done:
    """Runs a command that must succeed.

    Raises:
        ArmletError: it did not; the hint is the command's own explanation, or its last line and how to run it again.
    """
    done = runner.run(command, emit)
    if done.code != 0:
        last = next((line for line in reversed(done.tail) if line.strip()), "no output")
        hint = command.explain(done.code, done.tail) or f"it said: {last.strip()}; run it yourself: {command}"
        raise ArmletError(f"{what}: {command.argv[0]} ended with {done.code}", hint=hint, kind=kind)
    return done


def interactive(command: Command) -> int:
    """Runs a program on the caller's terminal, which gets the Ctrl-C meanwhile; returns its exit code.

    Raises:
        ArmletError: the program is not there, or may not be run.
    """
    # TERM and the like belong to the terminal, not to a build: the caller's environment as it is.
    old = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with subprocess.Popen(
            command.argv,
            env={**os.environ, **command.env},
            cwd=command.cwd,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        ) as process:
            return process.wait()
    except OSError as error:
        raise ArmletError(
            f"cannot run {command.argv[0]}: {error.strerror}", hint="run: ./inv doctor", kind=Kind.HOST
        ) from error
    finally:
        signal.signal(signal.SIGINT, old)
