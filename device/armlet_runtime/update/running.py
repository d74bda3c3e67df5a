"""Updates, put together from what the device's file says."""

from __future__ import annotations

import logging
import ssl
from pathlib import Path
from typing import Callable, Iterable, Mapping, Sequence

from armlet_runtime.serve import wiring
from armlet_runtime.serve.config import DeviceConfig
from armlet_runtime.serve.exposition import Family
from armlet_runtime.serve.interface import ModelInfo
from armlet_runtime.serve.metrics import Metrics
from armlet_runtime.serve.payloads import Candidate, FactorySet
from armlet_runtime.store.absent import AbsentStore
from armlet_runtime.store.errors import StoreError
from armlet_runtime.store.store import Store
from armlet_runtime.update import connect
from armlet_runtime.update.agent import Agent
from armlet_runtime.update.blocks import BlocksFetcher
from armlet_runtime.update.board import Board
from armlet_runtime.update.catalogue import StoredSet
from armlet_runtime.update.course import Course
from armlet_runtime.update.download import UrlFetcher
from armlet_runtime.update.interface import Desired, Fetcher, Report, Reporter
from armlet_runtime.update.line import tls_context
from armlet_runtime.update.needs import Engine

log = logging.getLogger("armlet.update")


class Silent:
    """A reporter, and a source of blocks, where there is no MQTT: the log has what is told."""

    def report(self, report: Report) -> None: ...

    def alert(self, model: str, kind: str, text: str) -> None: ...

    def want(self, desired: Desired, numbers: Sequence[int]) -> bool:  # noqa: ARG002
        return False


class Updates:
    """Made before the engine, whose catalogue it has; begun once that is there.

    Whatever is wrong with it costs updates alone: what came with the rootfs is served all the same.
    """

    def __init__(self, config: DeviceConfig, factory: FactorySet) -> None:
        self._config = config
        self.store = _store(config, factory)
        self.catalogue = StoredSet(factory, self.store)
        self.mqtt = connect.make(config, self._folder)
        self._pulse = connect.Pulse(config, self.mqtt, self._folder) if self.mqtt is not None else None
        self._agent: Agent | None = None
        try:
            # First of all: should anything of what follows end the service, the next start knows.
            self.store.started()
        except (OSError, StoreError) as error:
            log.warning("the start could not be noted: %s", error)
        self.catalogue.factory_first = self.store.flapping

    def begin(
        self,
        engine: Engine,
        metrics: Metrics,
        reporter: Reporter | None = None,
        fetchers: Mapping[str, Fetcher] | None = None,
    ) -> Agent:
        """Go on with what the last run left, and take wishes.

        ``reporter`` and ``fetchers`` ("url", "blocks") in place of MQTT and the network are for tests.
        """
        told = reporter or self.mqtt or Silent()
        blocks = BlocksFetcher(self.mqtt or Silent())
        if fetchers is None:
            fetchers = {"blocks": blocks, **_by_url(self._config)}
        board = Board(engine, told, lambda report: metrics.updated(report.model, report.state, report.category))
        course = Course(self.store, engine, self.catalogue, fetchers, board, self._config.updates)
        agent = self._agent = Agent(course, enabled=lambda model: self._config.model(model).enabled)
        agent.start()
        if self.mqtt is not None:
            self.mqtt.start(agent, blocks)
        return agent

    def crashing(self, payload: Candidate, how: str) -> None:
        """For the engine: the worker of what serves fails again and again."""
        if self._agent is not None:
            self._agent.crashing(payload, how)

    def beat(self, families: Callable[[], Iterable[Family]], models: Callable[[], Sequence[ModelInfo]]) -> None:
        """Every second or so."""
        if self._pulse is not None:
            self._pulse(families, models)

    def families(self) -> Iterable[Family]:
        """Of the connection."""
        return self.mqtt.families() if self.mqtt is not None else ()

    def stop(self, seconds: float) -> None:
        """Before the engine ends: take no wish any more."""
        if self._agent is not None:
            self._agent.stop(seconds)
        if self.mqtt is not None:
            self.mqtt.stop()

    def close(self) -> None:
        """The service ends as it was told to: no start of it counts as one that did not last, nor does a trial."""
        try:
            self.store.ended()
        except (OSError, StoreError) as error:
            log.warning("the end could not be noted: %s", error)
        self.store.close()

    @property
    def _folder(self) -> Path | None:
        return None if self.store.readonly else self._config.updates.store


def unusable(config: DeviceConfig) -> list[str]:
    """In words, what of the file makes no sense for updates."""
    found = []
    if config.updates.store is not None and config.service.keys is None:
        found.append("it needs [service] keys: what nobody signed is not taken from the network")
    if config.mqtt is not None and config.updates.store is None:
        found.append("[mqtt] needs it: without one, updates cannot be kept, nor telemetry")
    return found


def problems(config: DeviceConfig) -> list[str]:
    """For ``--check``, one line each; the store itself is left alone, since the service may be using it."""
    where, store = config.place("updates", "store"), config.updates.store
    found = [f"{where}{what}" for what in unusable(config)]
    if store is not None and _is_no_folder(store) and _is_no_folder(store.parent):
        found.append(f"{where}there is no folder {store.parent} to make {store.name} in")
    try:
        _context(config)
    except OSError as error:
        found.append(f"{config.place('updates', 'ca')}ca, cert, key: {error}")
    return found


def _is_no_folder(path: Path) -> bool:
    """False where nobody can say: whoever opens the store tells why."""
    try:
        return not path.is_dir()
    except OSError:
        return False


def _store(config: DeviceConfig, factory: FactorySet) -> Store:
    updates, service = config.updates, config.service
    if updates.store is None:
        return AbsentStore("this device has no [updates] store")
    wrong = unusable(config)
    if wrong:
        log.error("no updates: %s", wrong[0])
        return AbsentStore(wrong[0])
    limit, reserve = service.payload_mb << 20, updates.reserve_mb << 20
    try:
        store = Store(updates.store, wiring.trusted_keys(config), factory.check, limit=limit, reserve=reserve)
    except (StoreError, OSError) as error:
        # What came with the rootfs is served all the same.
        log.error("no updates: %s", error)
        return AbsentStore(str(error))
    for note in (*store.notes, *([f"no updates: {store.readonly}"] if store.readonly else [])):
        log.warning("%s: %s", updates.store, note)
    return store


def _context(config: DeviceConfig) -> ssl.SSLContext:
    found = config.updates
    return tls_context(*(str(path or "") for path in (found.ca, found.cert, found.key)))


def _by_url(config: DeviceConfig) -> dict[str, Fetcher]:
    try:
        return {"url": UrlFetcher(_context(config))}
    except OSError as error:
        log.error("nothing can come by URL: [updates] ca, cert, key: %s", error)
        return {}
