"""MQTT as the device's file wants it, and what the service does for it now and then."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Callable, Iterable, Sequence

from armlet_runtime.serve.config import DeviceConfig
from armlet_runtime.serve.exposition import Family
from armlet_runtime.serve.interface import ModelInfo
from armlet_runtime.serve.sinks import snapshot
from armlet_runtime.store.disk import Disk
from armlet_runtime.update import access, tls
from armlet_runtime.update.alerts import Watch
from armlet_runtime.update.mqtt import Mqtt
from armlet_runtime.update.spool import Spool

log = logging.getLogger("armlet.update")

FOLDER = "telemetry"
"""Of the store."""
WATCH_SECONDS = 10.0
_OVERHEAD = 1 << 20
"""Bytes that an archive may have beside its files: headers, payload.json."""


def make(config: DeviceConfig, store: Path | None = None, disk: Disk | None = None) -> Mqtt | None:
    """Not started yet; None: the file wants none, or the library is missing, which is said in the log.

    ``store``: the store's folder, if it can be written; without one, nothing is kept while there is no connection.
    """
    settings = config.mqtt
    if settings is None:
        return None
    lacking = access.lacking()
    if lacking:
        log.error("%s", lacking)
        return None
    spool = None
    if store is not None:
        most = int(settings.spool_mb * (1 << 20))
        spool = Spool(store / FOLDER, disk or Disk(), most, settings.spool_days * 86_400)
    largest = (config.service.payload_mb << 20) + _OVERHEAD
    return Mqtt(settings.access(), settings.topics(), spool, largest=largest)


def problems(config: DeviceConfig, name: str) -> list[str]:
    """For ``--check``, one line each: what is in the way of a connection, without making one."""
    settings = config.mqtt
    if settings is None:
        return []
    where = f"{name}:{config.lines.get('mqtt', 0)}: [mqtt]"
    found = [access.lacking()]
    wanted = settings.access()
    for use in (access.password, tls.tls_context) if wanted.tls else (access.password,):
        try:
            use(wanted)
        except access.BrokerError as error:
            found.append(str(error))
    return [f"{where} {what}" for what in found if what]


class Pulse:
    """Telemetry and alerts, each when it is due. One thread."""

    def __init__(
        self,
        config: DeviceConfig,
        mqtt: Mqtt,
        store: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        settings = config.mqtt
        self._mqtt = mqtt
        self._clock = clock
        self._period = settings.telemetry_seconds if settings is not None else 0.0
        self._watch = Watch(store, settings.disk_low_mb << 20 if settings is not None else 0, clock)
        self._telemetry_at = clock() + self._period
        self._watch_at = clock() + WATCH_SECONDS

    def __call__(self, families: Callable[[], Iterable[Family]], models: Callable[[], Sequence[ModelInfo]]) -> None:
        """Call it every second or so; what it is given is asked for only when something is due."""
        now = self._clock()
        telemetry = self._period > 0 and now >= self._telemetry_at
        watch = now >= self._watch_at
        if not telemetry and not watch:
            return
        found = list(families())
        if telemetry:
            self._telemetry_at = now + self._period
            self._mqtt.write(snapshot(found), time.time())
        if watch:
            self._watch_at = now + WATCH_SECONDS
            for alert in self._watch.look(found, models()):
                self._mqtt.alert(*alert)
