"""Running build commands in the container: a log that keeps everything, progress, and the first real error."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from armlet import process
from armlet.engine import ContainerRunner
from armlet.errors import ArmletError, Kind
from armlet.events import Event, Line, Progress, Sink
from armlet.process import Command

# NINJA_STATUS is set to this form.
NINJA_STATUS = "[%f/%t] "
_NINJA = re.compile(r"^\[(\d+)/(\d+)\] (?:Building \w+ object (\S+))?")
_ERROR = re.compile(r"(: (fatal )?error: |undefined reference to|^CMake Error|: No space left on device|Killed signal)")
_CAUSES = (
    (
        re.compile(r"No space left on device"),
        Kind.HOST,
        "free some space, or point ARMLET_CACHE at a larger disk; the build goes on where it stopped",
    ),
    (re.compile(r"Killed signal"), Kind.HOST, "memory ran out: run it again with a smaller --jobs"),
    (
        re.compile(r"undefined reference to"),
        Kind.BUILD,
        "if the missing function is in a source that was left out, see acceleration.keep and .skip in the source set",
    ),
)


class Advance:
    """How far ninja is, by what its steps are expected to cost: one batch takes as long as hundreds of kernels.

    ``costs`` are CPU seconds by object file, as ninja names it; without any, steps are counted.
    """

    def __init__(self, costs: Mapping[str, float]) -> None:
        self._costs = costs
        self._total = round(sum(costs.values()))
        self._done = 0.0

    def after(self, line: str) -> Progress | None:
        """Takes one line of ninja's; None where it tells of no finished step."""
        if not (found := _NINJA.match(line)):
            return None
        step, steps = int(found[1]), int(found[2])
        if not self._total:
            return Progress(label="compile", done=step, total=steps, unit="files")
        self._done += self._costs.get(found[3] or "", 0.0)
        done = self._total if step == steps else min(round(self._done), self._total)
        return Progress(label="compile", done=done, total=self._total, unit="CPU seconds expected")


@contextmanager
def log_of(path: Path, emit: Sink, costs: Mapping[str, float] | None = None) -> Iterator[Sink]:
    """A sink that also writes every line to ``path``, and turns ninja's ``[n/m]`` into progress."""
    path.parent.mkdir(parents=True, exist_ok=True)
    advance = Advance(costs or {})

    def record(event: Event) -> None:
        if isinstance(event, Line):
            stream.write(event.text + "\n")
            stream.flush()
            if progress := advance.after(event.text):
                emit(progress)
        emit(event)

    with path.open("a", encoding="utf-8") as stream:
        yield record


def run(
    runner: ContainerRunner,
    command: Command,
    *,
    log: Path,
    emit: Sink,
    shell_on_fail: bool,
    costs: Mapping[str, float] | None = None,
) -> None:
    """Runs one command of the build; ``costs`` as in ``Advance``, where it is ninja.

    Raises:
        ArmletError: it failed: names the first compiler, linker or CMake error, the log, and how to run it again.
    """
    start = log.stat().st_size if log.exists() else 0
    with log_of(log, emit, costs) as sink:
        sink(Line(text=f"$ {command}"))
        done = runner.run(command, sink)
    if done.code == 0:
        return
    if shell_on_fail:
        process.interactive(Command(argv=runner.shell_argv()))
    first = first_error(log, start) or next((line for line in reversed(done.tail) if line.strip()), "no output")
    kind, hint = cause(first, otherwise=f"--shell-on-fail opens the container; there, run: {command}")
    raise ArmletError(f"{command.argv[0]} failed: {first.strip()}", hint=hint, kind=kind, log=log)


def cause(said: str, *, otherwise: str) -> tuple[Kind, str]:
    """Whose fault it is that a tool failed with these words, and what mends it; ``otherwise`` where nobody knows."""
    known = ((kind, hint) for pattern, kind, hint in _CAUSES if pattern.search(said))
    return next(known, (Kind.BUILD, otherwise))


def first_error(log: Path, start: int) -> str | None:
    """The first line of a log, from byte ``start`` on, that names an error."""
    with log.open("rb") as stream:
        stream.seek(start)
        for raw in stream:
            text = raw.decode("utf-8", "replace")
            if _ERROR.search(text):
                return text
    return None
