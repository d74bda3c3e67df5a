"""Events as JSON lines, for programs and for looking back."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import TracebackType

from armlet.errors import host_error
from armlet.events import Event


class JsonLines:
    """Writes one JSON object per event, flushed at once: a run that is killed leaves all that came before.

    An object holds the event's fields, ``event`` (its type's name) and ``time`` (seconds since the epoch).
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        """Starts the file anew.

        Raises:
            ArmletError: it cannot be written.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Unbuffered: nothing is left to fail when it is closed.
            self._stream = path.open("wb", buffering=0)
        except OSError as error:
            raise host_error(error, path) from error
        self._path = path
        self._clock = clock

    def __call__(self, event: Event, /) -> None:
        record = {"event": type(event).__name__, "time": round(self._clock(), 3), **asdict(event)}
        line = json.dumps(record, ensure_ascii=False, default=str) + "\n"
        try:
            self._stream.write(line.encode())
        except OSError as error:
            raise host_error(error, self._path) from error

    def __enter__(self) -> JsonLines:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.close()
