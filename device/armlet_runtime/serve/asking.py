"""What ONNX Runtime's library says of itself, asked without a model.

A process of its own asks: a library without exceptions ends the one that it cannot work in, and a driver may hang.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time
from pathlib import Path
from typing import NamedTuple, Sequence

from armlet_runtime import ort
from armlet_runtime.serve import machine
from armlet_runtime.serve.chain import Wanted, in_one_line, key_of, refusal
from armlet_runtime.serve.process import signal_name

_SECONDS = 30.0
"""Within which everything must be answered."""
_NEEDS = "it needs /proc/cpuinfo and /sys/devices/system/cpu"


class Told(NamedTuple):
    """What the library answered."""

    providers: tuple[str, ...] = ()
    """Official names."""
    problem: str = ""
    """What is wrong with the library; empty: nothing."""
    refusals: tuple[str, ...] = ()
    """For each provider that was asked about, why it is refused; empty: it is not, or the library lacks it."""


def ask(library: str | None, wanted: Sequence[Wanted] = (), seconds: float = _SECONDS) -> Told:
    """Which providers there are, and whether each of ``wanted`` takes its options."""
    # The loader would wait for somebody to write into a pipe.
    if library and Path(library).exists() and not Path(library).is_file():
        return Told(problem=f"{library} is no file")
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        try:
            _answer(theirs, library, wanted)
        finally:
            os._exit(0)
    os.close(theirs)
    lines, in_time = _lines(ours, time.monotonic() + seconds)
    if not in_time:
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    how = f"ended its process with {signal_name(status)}, see above" if in_time else f"took more than {seconds:g} s"
    if not lines:
        return Told(problem=f"ONNX Runtime's library {how}: {_NEEDS}" if in_time else f"ONNX Runtime's library {how}")
    names, problem = json.loads(lines[0])
    refusals = [json.loads(line) for line in lines[1:]]
    if not problem and len(refusals) < len(wanted):
        refusals.append(f"trying it {how}")
    return Told(tuple(names), problem, (*refusals, *[""] * (len(wanted) - len(refusals))))


def _answer(pipe: int, library: str | None, wanted: Sequence[Wanted]) -> None:
    """A line with the providers and what is wrong, then one for each of ``wanted``."""
    try:
        names = ort.get_available_providers(library)
    except ort.LibraryError as error:
        _tell(pipe, [[], machine.foreign(library or "") or in_one_line(error.message)])
        return
    _tell(pipe, [names, ""])
    there = {key_of(name) for name in names}
    for choice in wanted:
        _tell(pipe, refusal(choice, library) if choice.name in there else "")


def _tell(pipe: int, what: object) -> None:
    os.write(pipe, json.dumps(what).encode() + b"\n")


def _lines(pipe: int, until: float) -> tuple[list[bytes], bool]:
    """Whole lines up to the end, and whether that came in time."""
    text, in_time = b"", True
    try:
        while True:
            if not select.select([pipe], [], [], max(0.0, until - time.monotonic()))[0]:
                in_time = False
                break
            piece = os.read(pipe, 65536)
            if not piece:
                break
            text += piece
    finally:
        os.close(pipe)
    return text.split(b"\n")[:-1], in_time
