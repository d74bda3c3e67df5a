"""What the service takes on the target, in emulation: memory in steps, and from its start to ready.

    PYTHONPATH=device .venv/bin/python -m benchmarks.serve_on_target [--sku demo-a53]

Memory is what of a process is resident, without QEMU's own: its program, its heap and the code that it translated to.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from armlet.sinks.tables import table
from tests.emulated import MODEL, Emulated, children, emulated

STEPS = ("Python", "+ the worker's modules", "+ ONNX Runtime's library", "+ the session", "+ one run")
_SCRIPT = """
import sys
def step():
    print(flush=True)
    sys.stdin.readline()
step()
import armlet_runtime.serve.worker
step()
from armlet_runtime import ort
library, model = sys.argv[1:]
ort.load_library(library)
step()
options = ort.SessionOptions()
options.add_session_config_entry("session.intra_op.allow_spinning", "0")
session = ort.InferenceSession(model, options, ["XNNPACK", "CPU"], library=library)
step()
from armlet_runtime.serve.golden import zeros
session.run(None, {arg.name: zeros("float", arg.shape) for arg in session.get_inputs()})
step()
"""
_MAPPING = re.compile(r"^([0-9a-f]+)-[0-9a-f]+ (\S{4}) \S+ \S+ \d+ *(.*)$")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sku", default="demo-a53")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        made = emulated(chosen.sku, Path(folder))
        model = next(made.payload.glob("model.*"))
        print(f"{chosen.sku}: {MODEL}, {model.stat().st_size / 1e6:.2f} MB")
        before = 0.0
        rows = []
        for name, (seconds, own, all_of_it) in zip(STEPS, stepped(made, model), strict=True):
            rows.append([name, f"{own:.1f}", f"{own - before:.1f}", f"{all_of_it:.1f}", f"{seconds:.1f}"])
            before = own
        rows += served(made, "with NumPy")
        rows += served(without_numpy(made, Path(folder, "none")), "without NumPy")
    print(table(["", "MB", "more", "with QEMU", "after s"], rows))


def stepped(made: Emulated, model: Path) -> Iterator[tuple[float, float, float]]:
    """Seconds from the start and memory after each step of one process."""
    command = [*made.python, "-c", _SCRIPT, str(made.library), str(model)]
    began = time.monotonic()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=made.environment, text=True, **pipes) as process:  # type: ignore[call-overload]
        for _ in STEPS:
            process.stdout.readline()
            yield time.monotonic() - began, *resident(process.pid)
            process.stdin.write("\n")
            process.stdin.flush()


def served(made: Emulated, how: str) -> Iterator[list[str]]:
    """The service and its worker, after some requests; the time is from the start to ready."""
    began = time.monotonic()
    with made.device.serving(made.command, made.environment, 120) as process:
        seconds = time.monotonic() - began
        made.device.demand_golden(made.payload)
        for name, pid in ((f"the service, {how}", process.pid), ("its worker", children(process.pid)[0])):
            own, all_of_it = resident(pid)
            yield [name, f"{own:.1f}", "", f"{all_of_it:.1f}", f"{seconds:.1f}"]
        process.send_signal(signal.SIGTERM)
        process.wait(20)


def without_numpy(made: Emulated, folder: Path) -> Emulated:
    """The same where importing NumPy fails."""
    folder.mkdir()
    (folder / "numpy.py").write_text("raise ImportError\n")
    path = f"{folder}:{made.environment['PYTHONPATH']}"
    return dataclasses.replace(made, environment={**made.environment, "PYTHONPATH": path})


def resident(pid: int, end: int = 1 << 64) -> tuple[float, float]:
    """MB of the program alone, and with QEMU; what lies from address ``end`` on is QEMU's."""
    own = whole = 0
    emulators = False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if found := _MAPPING.match(line):
            start, mode, path = found.groups()
            is_code = "w" in mode and "x" in mode
            emulators = "qemu-" in path or path == "[heap]" or is_code or int(start, 16) >= end
        elif line.startswith("Rss:"):
            size = int(line.split()[1]) << 10
            whole += size
            own += 0 if emulators else size
    return own / 1e6, whole / 1e6


if __name__ == "__main__":
    main()
