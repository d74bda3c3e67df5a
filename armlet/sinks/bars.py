"""Progress on a terminal and in a log."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, TextIO

from rich.console import Console as RichConsole
from rich.progress import BarColumn, Task, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress
from rich.text import Text

from armlet.events import Progress
from armlet.sinks import say

_EVERY_S = 30.0
_EVERY_SHARE = 0.1


class Bar(Protocol):
    """What the console draws with."""

    def say(self, text: str) -> None:
        """Writes a line that stays."""

    def update(self, progress: Progress) -> None:
        """Shows how far a long operation is."""

    def close(self) -> None:
        """Takes away whatever does not stay."""


def amount(number: int, unit: str) -> str:
    """A count for people: bytes with a binary prefix, anything else as it is."""
    if unit != "bytes":
        return str(number)
    size = float(number)
    for prefix in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {prefix}" if prefix == "B" else f"{size:.1f} {prefix}"
        size /= 1024
    return f"{size:.1f} GiB"


def duration(seconds: float) -> str:
    """``0.4 s``, ``12 s``, ``3:05`` or ``1:02:03``."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    if minutes == 0:
        return f"{rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _counts(progress: Progress) -> str:
    unit = "" if progress.unit == "bytes" else f" {progress.unit}"
    return f"{amount(progress.done, progress.unit)} of {amount(progress.total, progress.unit)}{unit}"


class PlainBar:
    """Lines alone: progress about every tenth or half minute, whichever comes first, and at the end."""

    def __init__(self, stream: TextIO, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._label = ""
        self._start = 0.0
        self._first = 0
        self._told_at = 0.0
        self._told_share = 0.0

    def say(self, text: str) -> None:
        # What is shown is a comfort: losing it is no reason to stop.
        with suppress(OSError):
            say(text, self._stream)

    def update(self, progress: Progress) -> None:
        now = self._clock()
        share = progress.done / progress.total if progress.total > 0 else 0.0
        if progress.label != self._label:
            self._label, self._start, self._first = progress.label, now, progress.done
            self._told_at, self._told_share = now, share
            return
        last = progress.done >= progress.total and self._told_share < 1
        if not last and share - self._told_share < _EVERY_SHARE and now - self._told_at < _EVERY_S:
            return
        if share <= self._told_share and now - self._told_at < _EVERY_S:
            return
        self._told_at, self._told_share = now, share
        self.say(f"  {progress.label}: {_counts(progress)} ({share:.0%}{self._left(progress, now)})")

    def _left(self, progress: Progress, now: float) -> str:
        made = progress.done - self._first
        if made <= 0 or progress.done >= progress.total:
            return ""
        return f", {duration((now - self._start) / made * (progress.total - progress.done))} left"

    def close(self) -> None:
        pass


class _Counts(TextColumn):
    def __init__(self) -> None:
        super().__init__("")

    def render(self, task: Task) -> Text:
        unit = str(task.fields["unit"])
        return Text(_counts(Progress(label="", done=int(task.completed), total=int(task.total or 0), unit=unit)))


class LiveBar:
    """A bar at the terminal's bottom line, with the time that is left."""

    def __init__(self, console: RichConsole) -> None:
        self._console = console
        self._bar: RichProgress | None = None
        self._task = TaskID(0)
        self._label = ""

    def say(self, text: str) -> None:
        # Tools' output may hold square brackets: nothing in it is markup.
        self._console.print(Text.from_ansi(text), soft_wrap=True)

    def update(self, progress: Progress) -> None:
        if self._bar is None or progress.label != self._label:
            self.close()
            self._label = progress.label
            self._bar = RichProgress(
                TextColumn("  {task.description}", markup=False),
                BarColumn(),
                _Counts(),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                console=self._console,
                transient=True,
                # The results go to stdout, and the tools' lines come through say().
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._task = self._bar.add_task(progress.label, total=progress.total, unit=progress.unit)
            self._bar.start()
        self._bar.update(self._task, completed=progress.done, total=progress.total)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
