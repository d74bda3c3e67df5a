"""``armlet-serve``: serves the models of a device until it is told to end.

Exit codes: 0 ended as told; 2 the configuration or, with --check, a payload is wrong; 3 the machine lacks something.
"""

from __future__ import annotations

import argparse
import logging
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import Callable, Iterable, Sequence, TextIO

import armlet_runtime
from armlet_runtime.serve import checking, finding, page, sinks, systemd, wiring
from armlet_runtime.serve.clock import Jumps
from armlet_runtime.serve.config import DEFAULT, ConfigError, DeviceConfig, load
from armlet_runtime.serve.exposition import Family
from armlet_runtime.serve.finding import WARNING, Finding
from armlet_runtime.serve.front import front_end
from armlet_runtime.serve.http import Server
from armlet_runtime.serve.listening import ListenError
from armlet_runtime.serve.metrics import Metrics
from armlet_runtime.serve.payloads import FactorySet
from armlet_runtime.serve.process import signal_name
from armlet_runtime.serve.supervisor import Supervisor
from armlet_runtime.update.without import Updating, Without

log = logging.getLogger("armlet.serve")

DONE, INPUT, HOST = 0, 2, 3
_LOOK_SECONDS = 1.0
_EXTEND_SECONDS = 30.0
_LEAST_SECONDS = 1.0


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: returns its exit code."""
    parser = argparse.ArgumentParser(prog="armlet-serve", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--config", type=Path, default=DEFAULT, help="the device's file (%(default)s)")
    parser.add_argument("--version", action="version", version=f"armlet-serve {armlet_runtime.__version__}")
    parser.add_argument("--check", action="store_true", help="say what is wrong with it and the payloads, and end")
    parser.add_argument("--configuration", action="store_true", help="with --check: leave the payloads alone")
    chosen = parser.parse_args(arguments)
    if chosen.configuration and not chosen.check:
        parser.error("--configuration goes with --check")
    # The journal and syslog have the time already.
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s", stream=sys.stderr)
    try:
        reading = load(chosen.config)
    except ConfigError as error:
        _tell(error.problems, sys.stderr)
        return INPUT
    found = checking.report(reading, os.sched_getaffinity(0), payloads_too=chosen.check and not chosen.configuration)
    if chosen.check:
        _tell(found.findings, sys.stderr)
        _tell(found.models or [f"{chosen.config}: nothing is wrong"] * (not found.findings), sys.stdout)
        # What costs one model is not to keep the init script from starting the others.
        return _code([one for one in found.findings if not (chosen.configuration and one.kind == finding.MODEL)])
    stops = [one for one in found.findings if one.stops]
    if stops or found.catalogue is None:
        _tell(found.findings, sys.stderr)
        # What else is wrong must not make a lack that passes, such as of a network, look like one that stays.
        return _code(stops)
    for one in found.findings:
        log.log(logging.WARNING if one.kind == WARNING else logging.ERROR, "%s", one.what)
    try:
        return serve(reading.config, found.catalogue)
    except ListenError as error:
        _tell([f"{error.message} ({error.hint})"], sys.stderr)
    return HOST


def _code(findings: Sequence[Finding]) -> int:
    kinds = {one.kind for one in findings}
    return INPUT if kinds & {finding.INPUT, finding.MODEL} else HOST if finding.HOST in kinds else DONE


def serve(config: DeviceConfig, factory: FactorySet) -> int:
    """Until SIGTERM or SIGINT; returns the exit code."""
    stop = Stop()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    metrics = Metrics()
    updates = _updates(config, factory)
    engine = Supervisor(
        config,
        updates.catalogue,
        metrics,
        {"activated": lambda payload: wiring.watch_drift(metrics, payload), "gives_up": updates.crashing},
    )
    server = front_end(engine, metrics, config.service.listen, config.http)
    watchdog = systemd.Watchdog({"workers": engine.live, "http": server.live}, systemd.watchdog_seconds())
    systemd.forget()
    engine.start()
    server.start()
    log.info("listening on %s", server.where)
    try:
        metrics.more = updates.families
        updates.begin(engine, metrics)
        _watch(engine, server.where, _each_second(config, watchdog, engine, metrics, server, updates), stop)
    finally:
        updates.stop(0.0)
        _drain(config.service.drain_seconds, engine, server, metrics, stop.why)
    # Not where an error ends it: that is no end that was asked for.
    updates.close()
    return DONE


def _updates(config: DeviceConfig, factory: FactorySet) -> Updating:
    if config.updates.store is None and config.mqtt is None:
        return Without(factory)
    # TLS and MQTT take memory that other devices are to be spared.
    from armlet_runtime.update.running import Updates

    return Updates(config, factory)


def _drain(seconds: float, engine: Supervisor, server: Server, metrics: Metrics, why: str) -> None:
    systemd.stopping("answering what has been accepted")
    log.info("%s: nothing new is taken, what was accepted has %g s", why, seconds)
    began, (answered, refused) = time.monotonic(), metrics.inferences()
    server.stop(seconds)
    all_ended = engine.close(max(_LEAST_SECONDS, began + seconds - time.monotonic()))
    now_answered, now_refused = metrics.inferences()
    log.log(
        logging.INFO if all_ended else logging.WARNING,
        "ended after %.2f s: %d requests were still answered and %d refused%s",
        time.monotonic() - began,
        now_answered - answered,
        now_refused - refused,
        "" if all_ended else "; time was short, and workers were killed",
    )


def _each_second(
    config: DeviceConfig,
    watchdog: systemd.Watchdog,
    engine: Supervisor,
    metrics: Metrics,
    server: Server,
    updates: Updating,
) -> Callable[[], None]:
    place, period = config.service.telemetry, config.service.telemetry_seconds
    sink = sinks.FileSink(place) if place is not None else None
    due = time.monotonic() + period
    jumps = Jumps()

    def families() -> Iterable[Family]:
        return page.families(engine, metrics, lambda: server.connections)

    def do() -> None:
        nonlocal due
        jumps.look()
        watchdog.feed()
        updates.beat(families, engine.models)
        if sink is not None and time.monotonic() >= due:
            due = time.monotonic() + period
            sink.write(sinks.snapshot(families()), time.time())

    return do


class Stop:
    """Handles the signals that end the service."""

    def __init__(self) -> None:
        self._signal = 0
        # Whatever becomes of the clock, poll(2) waits for no longer than it is told.
        self._reader, self._writer = os.pipe()

    def __call__(self, number: int, _frame: object) -> None:
        if not self._signal:
            self._signal = number
            os.write(self._writer, b".")

    def wait(self, seconds: float) -> bool:
        """Whether there was one by then."""
        return bool(select.select([self._reader], [], [], seconds)[0])

    @property
    def why(self) -> str:
        """For the log."""
        return f"got {signal_name(self._signal)}" if self._signal else "something failed"


def _watch(engine: Supervisor, where: str, do: Callable[[], None], stop: Stop) -> None:
    extend_at = 0.0
    while not engine.settled():
        if time.monotonic() >= extend_at:
            systemd.extend_start(_EXTEND_SECONDS)
            extend_at = time.monotonic() + _EXTEND_SECONDS / 2
        do()
        if stop.wait(_LOOK_SECONDS / 10):
            return
    # A model that cannot be served shows at /v2/health/ready; the others are not to wait for it.
    systemd.ready(f"serving on {where}")
    while not stop.wait(_LOOK_SECONDS):
        do()


def _tell(lines: Iterable[object], stream: TextIO) -> None:
    stream.writelines(f"{line}\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
