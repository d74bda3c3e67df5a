"""The edge: where errors become exit codes, events become output, and the user is asked."""

from __future__ import annotations

import difflib
import functools
import json
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any, NoReturn, ParamSpec

from invoke.exceptions import Exit, ParseError
from invoke.program import Program

from armlet import __version__
from armlet.errors import ArmletError, Kind, host_error, is_host_error
from armlet.events import Sink
from armlet.paths import Paths
from armlet.sinks import fan_out, say
from armlet.sinks.ci import GitHubGroups, error_commands
from armlet.sinks.console import Echo, console
from armlet.sinks.jsonl import JsonLines

P = ParamSpec("P")

ROOT = Path(__file__).resolve().parent.parent
_MOST_DIGITS = 18


def main(root: str, *words: str) -> NoReturn:
    """Runs Invoke on the project's ``tasks.py``, whatever the current folder is, and ends the process."""
    _open_closed_streams()
    # A polite end (a CI's time limit, a shutdown, a terminal that is closed) cleans up just as Ctrl-C does.
    for number in (signal.SIGTERM, signal.SIGHUP):
        # nohup has it ignored, and means it.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    # --write-pyc: Invoke would otherwise have every start compile our modules anew.
    sys.exit(invoke("--search-root", root, "--write-pyc", *each_with_its_flag(help_first(words))))


def _open_closed_streams() -> None:
    """Gives a process that was started without stdin, stdout or stderr (``>&-``) ones that lead nowhere.

    Otherwise the next file that is opened would take their number, and get what is meant for them.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115  for good


def invoke(*words: str) -> int:
    """Runs Invoke and returns the exit code, its own errors mapped to ours (``docs/exit-codes.md``)."""
    program = _Front(name="armlet", binary="inv", binary_names=["inv"], version=__version__)
    try:
        program.run(["inv", *words])
    except SystemExit as end:
        if isinstance(end.__context__, ParseError):
            return Kind.INPUT
        if isinstance(end.__context__, KeyboardInterrupt):
            return Kind.INTERRUPTED
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        return Kind.INTERRUPTED
    return 0


class _Front(Program):
    """Invoke's front door, with our kind of refusals, and the tasks where it would list its own options."""

    def parse_tasks(self) -> None:
        with self._explained():
            super().parse_tasks()

    def parse_cleanup(self) -> None:
        with self._explained():
            super().parse_cleanup()

    def no_tasks_given(self) -> None:
        self.list_tasks()
        raise Exit

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except ParseError as error:
            refused = _unparsed(error, sorted(self.collection.task_names))
            raise Exit(message=_told(refused), code=refused.kind) from error


def _unparsed(error: ParseError, tasks: list[str]) -> ArmletError:
    """What Invoke says of a command line, as an error of ours."""
    about = error.context.name if error.context else None
    help_of = f"./inv --help {about} lists what it takes" if about else "./inv --list names the tasks"
    unknown = re.fullmatch("No idea what '(.*)' is!", str(error), flags=re.DOTALL)
    if unknown is None:
        return ArmletError(str(error), hint=help_of, kind=Kind.INPUT)
    if unknown[1].startswith("-"):
        return ArmletError(f'unknown flag "{unknown[1]}"', hint=help_of, kind=Kind.INPUT)
    near = difflib.get_close_matches(unknown[1], tasks, n=1)
    start = f'did you mean "{near[0]}"? ' if near else ""
    return ArmletError(f'unknown task "{unknown[1]}"', hint=f"{start}./inv --list names the tasks", kind=Kind.INPUT)


def help_first(words: tuple[str, ...]) -> tuple[str, ...]:
    """``build --help`` as Invoke wants it: ``--help build`` (it would take the flag for the name of a SKU)."""
    asked = {"--help", "-h"} & {*words}
    return ("--help", words[0]) if asked and not words[0].startswith("-") else words


MANY = frozenset({"--against", "--from-models"})
"""Flags whose value may be a pattern that the shell has made many words of."""


def each_with_its_flag(words: tuple[str, ...]) -> tuple[str, ...]:
    """``--against a b`` as Invoke wants it: ``--against a --against b``."""
    made: list[str] = []
    flag = ""
    for word in words:
        if word.startswith("-"):
            flag = word.partition("=")[0]
        elif flag in MANY and made[-1] != flag:
            made.append(flag)
        made.append(word)
    return tuple(made)


def edge(body: Callable[P, None]) -> Callable[P, None]:
    """Wraps a task's body: whatever is raised in it ends the process tidily, with the documented exit code."""

    @functools.wraps(body)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            body(*args, **kwargs)
        except Exit:
            raise
        except ArmletError as error:
            raise Exit(message=_told(error), code=error.kind) from error
        except KeyboardInterrupt as error:
            raise Exit(message="interrupted", code=Kind.INTERRUPTED) from error
        except Exception as error:
            if isinstance(error, OSError) and is_host_error(error):
                told = host_error(error, Path())
                raise Exit(message=_told(told), code=told.kind) from error
            traceback.print_exc()
            message = "this is a bug in Armlet: please report it with the lines above"
            raise Exit(message=message, code=1) from error

    return guarded


def _told(error: ArmletError) -> str:
    commands = error_commands(error) if os.environ.get("GITHUB_ACTIONS") == "true" else []
    return "\n".join([f"error: {error}", *commands])


def here() -> Paths:
    """The project that these modules belong to, and its cache."""
    return Paths.of(ROOT)


@contextmanager
def run(name: str, *, verbose: bool = False, echo: bool = False) -> Iterator[tuple[Paths, Sink]]:
    """A command with events: yields where things are and the sink for what happens.

    The console shows them on stderr, and ``<cache>/logs/<name>.events.jsonl`` has them all. With ``echo`` the output
    of the tools that run is the result, and goes to stdout.
    """
    paths = here()
    with ExitStack() as stack:
        # A name with slashes is refused by whoever looks for it, later than this.
        log = f"{name.replace('/', '_')}.events.jsonl"
        lines = stack.enter_context(JsonLines(paths.cache / "logs" / log))
        screen = stack.enter_context(console(sys.stderr, verbose=verbose))
        sinks: list[Sink] = [lines, Echo(sys.stdout, screen) if echo else screen]
        if os.environ.get("GITHUB_ACTIONS") == "true":
            sinks.insert(1, GitHubGroups(sys.stderr))
        yield paths, fan_out(*sinks)


def show(text: str) -> None:
    """Prints a result, if there is any: on stdout, where nothing but results goes."""
    if text:
        try:
            say(text, sys.stdout)
        except OSError as error:
            raise host_error(error, Path("/dev/stdout")) from error


def show_json(value: Any) -> None:
    """Prints a result (data classes, or what JSON knows) for programs."""
    show(json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, default=_plain))


def _plain(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)


def end(code: int) -> None:
    """Ends the command as a program that it ran for the user: with that program's code, a signal's as shells tell it.

    Raises:
        Exit: where the code is not 0.
    """
    if code:
        raise Exit(code=code if code > 0 else 128 - code)


def number(flag: str, text: str) -> int | None:
    """A flag's positive number; None where it was not given.

    Raises:
        ArmletError: it is something else.
    """
    if not text:
        return None
    # Of thousands of digits, Python makes no number.
    if text.isdecimal() and len(text) <= _MOST_DIGITS and int(text) > 0:
        return int(text)
    raise ArmletError(
        f'{flag}: "{text}" is not a positive number',
        hint=f"write for example {flag}{' ' if flag[0] == '-' else '='}2",
        kind=Kind.INPUT,
    )


def decimal(flag: str, text: str) -> float:
    """A flag's number, 0 or more.

    Raises:
        ArmletError: it is something else.
    """
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if 0 <= value < float("inf"):
        return value
    raise ArmletError(f'{flag}: "{text}" is no such number', hint=f"write for example {flag} 0.001", kind=Kind.INPUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Who is there to be asked, and how."""

    environment: Mapping[str, str]
    root: bool
    terminal: bool
    ask: Callable[[str], str]

    @classmethod
    def here(cls) -> Asker:
        terminal = sys.stdin.isatty() and sys.stderr.isatty()
        return cls(environment=os.environ, root=os.geteuid() == 0, terminal=terminal, ask=_ask)

    def agrees(self, question: str, items: list[str]) -> bool:
        told = "".join(f"\n  {item}" for item in items)
        return self.terminal and self.ask(f"{question}{told}\n[y/N] ").strip().lower() in ("y", "yes")


def consent(*, yes: bool, asker: Asker | None = None) -> Callable[[list[str]], bool]:
    """Whether this machine may be changed: by ``--yes``, ``CI=true``, root without a terminal, or the user."""
    who = asker or Asker.here()

    def decide(commands: list[str]) -> bool:
        if yes or who.environment.get("CI") == "true" or (who.root and not who.terminal):
            return True
        return who.agrees("this machine lacks something; do this now?", commands)

    return decide


def confirmed(*, yes: bool, asker: Asker | None = None) -> Callable[[list[str]], bool]:
    """Whether folders may be removed: by ``--yes``, or as the user says."""
    who = asker or Asker.here()
    return lambda folders: yes or who.agrees("remove these?", folders)


def _ask(question: str) -> str:
    print(question, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline()
