"""``armlet-serve``: serves the models of a device until it is told to end.

Exit codes: 0 ended as told; 2 the configuration or, with --check, a payload is wrong; 3 the machine lacks something.
"""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Callable, Iterable, Sequence

import armlet_runtime
from armlet_runtime.serve import checking, page, sinks, systemd, wiring
from armlet_runtime.serve.config import DEFAULT, ConfigError, DeviceConfig, load
from armlet_runtime.serve.exposition import Family
from armlet_runtime.serve.front import front_end
from armlet_runtime.serve.http import Server
from armlet_runtime.serve.listening import ListenError
from armlet_runtime.serve.metrics import Metrics
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
        config = load(chosen.config)
        if chosen.check:
            found = checking.problems(config, str(chosen.config), payloads_too=not chosen.configuration)
            _tell(found)
            return INPUT if found else DONE
        return serve(config)
    except ConfigError as error:
        _tell(error.problems)
        return INPUT
    except ListenError as error:
        _tell([f"{error.message} ({error.hint})"])
    except wiring.HostError as error:
        _tell([str(error)])
    return HOST


def serve(config: DeviceConfig) -> int:
    """Until SIGTERM or SIGINT; returns the exit code."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    metrics = Metrics()
    updates = _updates(config)
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
        systemd.stopping("answering what has been accepted")
        until = time.monotonic() + config.service.drain_seconds
        updates.stop(0.0)
        server.stop(config.service.drain_seconds)
        engine.close(max(_LEAST_SECONDS, until - time.monotonic()))
    # Not where an error ends it: that is no end that was asked for.
    updates.close()
    return DONE


def _updates(config: DeviceConfig) -> Updating:
    factory = wiring.catalogue(config.service)
    if config.updates.store is None and config.mqtt is None:
        return Without(factory)
    # TLS and MQTT take memory that other devices are to be spared.
    from armlet_runtime.update.running import Updates

    return Updates(config, factory)


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

    def families() -> Iterable[Family]:
        return page.families(engine, metrics, lambda: server.connections)

    def do() -> None:
        nonlocal due
        watchdog.feed()
        updates.beat(families, engine.models)
        if sink is not None and time.monotonic() >= due:
            due = time.monotonic() + period
            sink.write(sinks.snapshot(families()), time.time())

    return do


def _watch(engine: Supervisor, where: str, do: Callable[[], None], stop: threading.Event) -> None:
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


def _tell(problems: Sequence[str]) -> None:
    for problem in problems:
        sys.stderr.write(problem + "\n")


if __name__ == "__main__":
    sys.exit(main())
