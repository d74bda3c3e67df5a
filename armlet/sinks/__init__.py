"""Where events go: the console, a file of JSON lines, a CI service's annotations."""

from __future__ import annotations

import threading

from armlet.events import Event, Sink


def fan_out(*sinks: Sink) -> Sink:
    """Hands every event to each sink in turn; safe to call from several threads."""
    lock = threading.Lock()

    def all_of_them(event: Event, /) -> None:
        with lock:
            for sink in sinks:
                sink(event)

    return all_of_them
