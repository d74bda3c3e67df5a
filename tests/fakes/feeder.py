"""``armlet-serve`` with a fake broker and a fake network, both folders: ``python -m tests.fakes.feeder FOLDER CONFIG``.

``FOLDER/wish.json`` is what a broker would have kept: it comes at once, and anew when it changes. ``FOLDER/<sha256>``
are archives. All else is the real service.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from armlet_runtime.serve import __main__ as service
from armlet_runtime.update.interface import Desired, Incoming
from armlet_runtime.update.running import Updates

BLOCK_SECONDS = 0.01


class FolderFetcher:
    """Somewhat slow, so that a download may be cut short."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def fetch(
        self, desired: Desired, into: Incoming, progress: Callable[[float], None], cancelled: Callable[[], bool]
    ) -> None:
        data = (self._folder / desired.archive_sha256).read_bytes()
        for number in into.missing():
            if not cancelled():
                into.put(number, data[number * into.block_size : (number + 1) * into.block_size])
                progress(number / into.blocks)
                time.sleep(BLOCK_SECONDS)
        into.sync()


def feed(folder: Path, wish: Callable[[str, Desired | None], None]) -> None:
    """For ever."""
    last = b""
    while True:
        text = (folder / "wish.json").read_bytes()
        if text != last:
            last = text
            desired = Desired(**json.loads(text))
            wish(desired.model, desired)
        time.sleep(0.01)


def main(folder: Path, config: str) -> int:
    begin = Updates.begin

    def fed(updates: Updates, engine: Any, metrics: Any) -> Any:
        agent = begin(updates, engine, metrics, None, {"blocks": FolderFetcher(folder)})
        threading.Thread(target=feed, args=(folder, agent.wish), daemon=True).start()
        return agent

    Updates.begin = fed  # type: ignore[assignment, method-assign]
    return service.main(["--config", config])


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
