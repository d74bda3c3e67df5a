"""Where events go: the console, a file of JSON lines, a CI service's annotations."""

from __future__ import annotations

import os
import threading
from typing import TextIO

from armlet.events import Event, Sink


def say(text: str, stream: TextIO) -> None:
    """Writes a line at once. Work goes on when nobody reads it any more (``| head``): the rest goes nowhere.

    Raises:
        OSError: it cannot be written for another reason, such as a full disk. The rest goes nowhere here too.
    """
    try:
        print(text, file=stream, flush=True)
    except OSError as error:
        # Python would try once more at its end, complain, and end with an exit code of its own.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        if not isinstance(error, BrokenPipeError):
            raise


def fan_out(*sinks: Sink) -> Sink:
    """Hands every event to each sink in turn; safe to call from several threads."""
    lock = threading.Lock()

    def all_of_them(event: Event, /) -> None:
        with lock:
            for sink in sinks:
                sink(event)

    return all_of_them
