"""What a person sees of a run, on stderr: results alone go to stdout."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping
from types import TracebackType
from typing import TextIO

from armlet.errors import printable
from armlet.events import Event, Line, Note, PlanReady, Progress, Sink, StepDone, StepStarted
from armlet.sinks import say
from armlet.sinks.bars import Bar, LiveBar, PlainBar, duration

_SHOWN_ON_FAILURE = 20


class Console:
    """Tells of steps, folds cached ones into one line, and keeps tools' output back unless asked or needed.

    A context manager: when the run ends in an error, the last lines of the failing step's tool are shown.
    """

    def __init__(self, bar: Bar, *, verbose: bool = False) -> None:
        self._bar = bar
        self._verbose = verbose
        self._numbers: dict[str, str] = {}
        self._cached: list[str] = []
        self._started = ""
        self._tail: deque[str] = deque(maxlen=_SHOWN_ON_FAILURE)

    def __call__(self, event: Event, /) -> None:
        match event:
            case PlanReady(sku=sku, steps=steps):
                count = len(steps)
                self._numbers = {name: f"[{number}/{count}] " for number, (name, _) in enumerate(steps, 1)}
                self._bar.say(f"{sku}: {count} steps")
            case StepStarted(step=step):
                # Said when there is something to say: a step that turns out to be cached is folded away.
                self._started = step
                self._tail.clear()
            case StepDone(step=step, cached=True):
                self._bar.close()
                self._started = ""
                self._cached.append(step)
            case StepDone(step=step, seconds=seconds):
                self._announce()
                self._bar.close()
                self._bar.say(f"{self._numbers.get(step, '')}{step}: done in {duration(seconds)}")
                self._tail.clear()
            case Progress():
                self._announce()
                self._bar.update(event)
            case Note(text=text):
                # What a tool said before is not what fails after this.
                self._tail.clear()
                self._announce()
                self._bar.say(f"  {printable(text)}")
            case Line(text=text):
                self._announce()
                self._tail.append(text)
                if self._verbose:
                    self._bar.say(f"  | {text}")

    def __enter__(self) -> Console:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._fold()
        self._bar.close()
        if isinstance(error, Exception) and not self._verbose:
            for text in self._tail:
                self._bar.say(f"  | {text}")

    def _announce(self) -> None:
        self._fold()
        if self._started:
            self._bar.say(f"{self._numbers.get(self._started, '')}{self._started} ...")
            self._started = ""

    def _fold(self) -> None:
        if self._cached:
            self._bar.say(f"cached: {', '.join(self._cached)}")
            self._cached.clear()


class Echo:
    """For commands whose result is a tool's output: its lines go to ``out``, all else to the console."""

    def __init__(self, out: TextIO, rest: Sink) -> None:
        self._out = out
        self._rest = rest

    def __call__(self, event: Event, /) -> None:
        if isinstance(event, Line):
            say(event.text, self._out)
        else:
            self._rest(event)


def console(stream: TextIO, *, verbose: bool = False, environment: Mapping[str, str] = os.environ) -> Console:
    """A live bar on a terminal; plain lines in a log and wherever ``CI`` is set or the terminal is dumb."""
    if stream.isatty() and not environment.get("CI") and environment.get("TERM", "dumb") != "dumb":
        from rich.console import Console as RichConsole

        return Console(LiveBar(RichConsole(file=stream, highlight=False)), verbose=verbose)
    return Console(PlainBar(stream), verbose=verbose)
