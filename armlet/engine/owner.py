"""Whose container is it, and is that process still there?"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path

PID = "armlet.pid"
_STARTED = "armlet.started"
_HOST = "armlet.host"


def labels_of_this_process() -> dict[str, str]:
    pid = os.getpid()
    return {PID: str(pid), _STARTED: _start_time(pid) or "", _HOST: socket.gethostname()}


def is_stale(labels: Mapping[str, str]) -> bool:
    """Whether the process that made a container is gone. Another machine's processes are not ours to judge."""
    pid = labels.get(PID, "")
    if labels.get(_HOST) != socket.gethostname() or not pid.isdigit():
        return False
    # The number may belong to another process by now; its start time tells.
    return _start_time(int(pid)) != labels.get(_STARTED)


def _start_time(pid: int) -> str | None:
    """In clock ticks since boot; None when there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The second field is the program's name in parentheses and may itself contain anything.
    return text.rpartition(")")[2].split()[19]
