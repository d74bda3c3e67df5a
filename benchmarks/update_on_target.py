"""What updates take on the target, in emulation: memory of the service with and without them, and their time.

    PYTHONPATH=.:device .venv/bin/python -m benchmarks.update_on_target [--sku demo-a53]

Memory is counted as by ``benchmarks.serve_on_target``; of a 32-bit target without all that lies above its addresses,
where QEMU keeps some of what each thread had in hand, for ever. Times are from the wish, without probation.
"""

from __future__ import annotations

import argparse
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from armlet.sinks.tables import table
from benchmarks import serve_on_target
from benchmarks.serve_on_target import without_numpy
from tests.emulated import Emulated
from tests.fleet import SECONDS, Fleet, Sent, fleet
from tests.mosquitto import PREFIX, until

MORE = 6
STEPS = ("VERIFIED", "trial", "probation", "UPDATED")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sku", default="demo-a53")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, fleet(chosen.sku, Path(folder)) as device:
        print(f"{chosen.sku}: {device.made.model.stat().st_size / 1e6:.2f} MB")
        rows = list(updated(device, device.made, "with NumPy", 10))
        other = without_numpy(device.made, Path(folder, "none"))
        rows += updated(device, other, "without NumPy", 20)
        text = device.device.conf.read_text()
        device.device.conf.write_text(text[: text.index("[updates]")])
        rows += [[f"no updates, {how}", served(device, made)] for made, how in ((device.made, ""), (other, "no NumPy"))]
    print(table(["", ""], rows))


def served(device: Fleet, made: Emulated) -> str:
    with device.device.serving(made.command, made.environment, SECONDS) as process:
        device.device.demand_golden(made.payload)
        return f"{resident(process.pid):.1f} MB"


def updated(device: Fleet, made: Emulated, how: str, first: int) -> Iterator[list[str]]:
    """Memory, and seconds of an update by blocks and one by URL."""
    with device.device.serving(made.command, made.environment, SECONDS) as process:
        until(lambda: device.operator.of(f"{PREFIX}/availability")[-1:] == [b"online"], SECONDS)
        device.device.demand_golden(made.payload)
        yield [f"updates and MQTT, {how}", f"{resident(process.pid):.1f} MB"]
        url = device.packed(first + 1, url=device.server.url)
        device.server.behaviour = lambda request: request.serve(url.data)
        for sent, way in ((device.packed(first), "blocks"), (url, "URL")):
            times = timed(device, sent)
            yield [f"  by {way}: {len(sent.data) / 1e6:.2f} MB", ", ".join(f"{k} {v:.1f} s" for k, v in times.items())]
        yield ["  after both", f"{resident(process.pid):.1f} MB"]
        for generation in range(first + 2, first + 2 + MORE):
            timed(device, device.packed(generation))
        yield [f"  after {MORE} more", f"{resident(process.pid):.1f} MB"]
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def resident(pid: int) -> float:
    """MB."""
    is_32 = "qemu-arm" in Path(f"/proc/{pid}/exe").resolve().name
    return serve_on_target.resident(pid, 1 << 32 if is_32 else 1 << 64)[0]


def timed(device: Fleet, sent: Sent) -> dict[str, float]:
    """Step -> seconds from the wish."""
    began = time.monotonic()
    device.wish(sent)
    found: dict[str, float] = {}
    while "UPDATED" not in found:
        device.send(sent)
        for report in device.reports(sent):
            found.setdefault(report["phase"] or report["state"], time.monotonic() - began)
        assert time.monotonic() - began < SECONDS, found
        time.sleep(0.01)
    return {step: found[step] for step in STEPS if step in found}


if __name__ == "__main__":
    main()
