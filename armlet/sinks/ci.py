"""GitHub's workflow commands: foldable groups, and errors shown at the line they are about."""

from __future__ import annotations

import re
from typing import TextIO

from armlet.errors import ArmletError
from armlet.events import Event, Note, StepDone, StepStarted

_PLACE = re.compile(r"(?P<file>[^:\s][^:]*):(?P<line>\d+):\s*")
_WARNING = "warning: "


class GitHubGroups:
    """Folds each step that really runs into a group, and shows warnings beside the run."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __call__(self, event: Event, /) -> None:
        if isinstance(event, StepStarted):
            print(f"::group::{_data(event.step)}", file=self._stream, flush=True)
        elif isinstance(event, StepDone) and not event.cached:
            print("::endgroup::", file=self._stream, flush=True)
        elif isinstance(event, Note) and event.text.startswith(_WARNING):
            print(f"::warning::{_data(event.text.removeprefix(_WARNING))}", file=self._stream, flush=True)


def error_commands(error: ArmletError) -> list[str]:
    """``::error`` commands: one for each ``file:line`` that the error tells of, or one for the whole of it."""
    told: list[tuple[str, list[str]]] = []
    for text in str(error).splitlines():
        place = _PLACE.match(text)
        if place:
            told.append((f" file={_property(place['file'])},line={place['line']}", [text[place.end() :]]))
        elif told:
            told[-1][1].append(text.strip())
        else:
            told.append(("", [text]))
    return [f"::error{where}::{_data(chr(10).join(lines))}" for where, lines in told]


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
