"""One long-lived container, and the commands that run in it."""

from __future__ import annotations

import codecs
import io
import os
import shutil
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from armlet.engine.failures import explained
from armlet.engine.surroundings import Surroundings, hand_over
from armlet.errors import ArmletError, Kind
from armlet.events import Line, Sink, silent
from armlet.mounts import View
from armlet.process import TAIL_LINES, Command, Done

if TYPE_CHECKING:
    from docker import APIClient

_HEADER = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A host folder or file (absolute, existing) seen in the container at ``target``."""

    source: Path
    target: str
    read_only: bool = False


class _Reader(Protocol):
    def read(self, size: int, /) -> bytes: ...


class ContainerRunner:
    """Runs commands in a running container, as the user the container was made for."""

    def __init__(
        self,
        api: APIClient,
        container: str,
        *,
        user: str,
        surroundings: Surroundings | None = None,
        shared: Sequence[Path] = (),
    ) -> None:
        self._api = api
        self.id = container
        self._user = user
        self._surroundings = surroundings or Surroundings()
        self._shared = shared

    def run(self, command: Command, emit: Sink = silent) -> Done:
        """Runs to the end and returns how it ended; a non-zero exit is the caller's to judge.

        A program that is not in the image ends with 126 or 127, as in a shell.

        Raises:
            ArmletError: the container or the engine went away.
        """
        around = self._surroundings
        if around.uid is not None:
            for folder in self._shared:
                hand_over(folder, around.uid)
        with explained(f"running {command.argv[0]} in the container"):
            made = self._api.exec_create(
                self.id,
                [*around.before, *map(around.view.inside, command.argv)],
                environment={name: around.view.inside(value) for name, value in command.env.items()},
                user=self._user,
                workdir=None if command.cwd is None else around.view.inside(command.cwd.as_posix()),
            )
            tail: deque[str] = deque(maxlen=TAIL_LINES)

            def take(text: str) -> None:
                tail.append(text)
                emit(Line(text=text))

            # Not the SDK's exec_start: it reads the raw socket and loses what came in one packet with the headers.
            with self._api.post(
                f"{self._api.base_url}/v{self._api.api_version}/exec/{made['Id']}/start",
                json={"Detach": False, "Tty": False},
                stream=True,
                timeout=None,
            ) as response:
                if response.status_code >= 400:
                    raise _gone(command, response.text.strip())
                read_lines(response.raw, take)
            code = self._api.exec_inspect(made["Id"]).get("ExitCode")
        if code is None or not self._is_running():
            raise _gone(command, "its container is no longer there")
        return Done(code=code, tail=tuple(tail))

    def shell_argv(self) -> tuple[str, ...]:
        """The command that opens a shell in this container, on the caller's terminal."""
        return (client_program(), "exec", "--interactive", "--tty", "--user", self._user, self.id, "bash")

    def _is_running(self) -> bool:
        from docker.errors import NotFound

        try:
            return bool(self._api.inspect_container(self.id)["State"]["Running"])
        except NotFound:
            return False


def bind(mount: Mount, view: View) -> Any:
    """The SDK's own form of a mount.

    Raises:
        ValueError: the view moves other folders, and this one is not among them.
    """
    from docker.types import Mount as Bind

    target = view.inside(mount.target)
    if view.prefix and target == mount.target:
        raise ValueError(f"{target} is missing in armlet.mounts.ROOTS")
    return Bind(target=target, source=str(mount.source.absolute()), type="bind", read_only=mount.read_only)


def client_program() -> str:
    """The command-line client, needed for nothing but shells on a terminal.

    Raises:
        ArmletError: neither docker nor podman is installed.
    """
    for name in ("docker", "podman"):
        if shutil.which(name):
            return name
    raise ArmletError(
        "a shell in a container needs the docker command",
        hint="sudo apt install docker-cli (Debian 13), or docker.io (elsewhere)",
        kind=Kind.HOST,
    )


def read_lines(stream: _Reader, take: Callable[[str], None]) -> None:
    """Hands on the lines of an engine's multiplexed output: frames of an 8-byte head (stream, size) and text."""
    # Standard output and error each keep their own half-line, so that one never breaks into the other's.
    halves: dict[int, Lines] = {}
    while len(head := stream.read(_HEADER)) == _HEADER:
        lines = halves.setdefault(head[0], Lines(take))
        lines.feed(stream.read(int.from_bytes(head[4:], "big")))
    for lines in halves.values():
        lines.close()


class Lines:
    """Cuts a byte stream into lines, whatever the line ends and wherever the pieces were cut."""

    def __init__(self, take: Callable[[str], None]) -> None:
        self._take = take
        self._decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8")("replace"), translate=True)
        self._rest = ""

    def feed(self, data: bytes, *, final: bool = False) -> None:
        *lines, self._rest = (self._rest + self._decoder.decode(data, final)).split("\n")
        for line in lines:
            self._take(line)

    def close(self) -> None:
        self.feed(b"", final=True)
        if self._rest:
            self._take(self._rest)


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """Holds Ctrl-C, SIGTERM and SIGHUP back until the block ends: making or removing a container is all or nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    old: dict[int, Any] = {
        number: signal.signal(number, lambda received, _frame: held.append(received))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
        if held:
            os.kill(os.getpid(), held[0])


def _gone(command: Command, said: str) -> ArmletError:
    return ArmletError(
        f"{command.argv[0]} was cut off: {said}",
        hint="somebody removed the container, the engine stopped, or memory ran out (dmesg tells); run it again",
        kind=Kind.HOST,
    )
