"""What somebody should look at, found in the service's own numbers and the disk's room."""

from __future__ import annotations

import os
import time
from collections import OrderedDict, deque
from pathlib import Path
from typing import Callable, Iterable, Mapping, NamedTuple, Sequence

from armlet_runtime.serve.exposition import Family, Labels
from armlet_runtime.serve.interface import ModelInfo
from armlet_runtime.update.interface import Category, Report, State

CRASHES = 3
CRASH_SECONDS = 600.0
"""So many crashes within that time are a loop."""
_CRASHED = ("crashed", "stalled")
_SHARE = "min_provider_share"
"""In the reason of a model that is not served since a provider runs too little of it."""
_BAND = "armlet_input_drift_band"
_EVENTS = "armlet_worker_events_total"


class Alert(NamedTuple):
    """``model`` is empty where it is about the device."""

    model: str
    kind: str
    text: str


_OUTCOMES: Mapping[State, str] = {"FAILED": "failed", "ROLLED_BACK": "rolled_back"}
_MESSAGES: frozenset[Category] = frozenset({"manifest", "stale", "known_bad"})
"""Of a message that came to nothing: whoever sends such could send many, and the state tells it."""
_MOST_MODELS = 256


class Outcomes:
    """Updates that came to nothing, each told once."""

    def __init__(self) -> None:
        self._told: OrderedDict[str, tuple[str, str, str]] = OrderedDict()

    def of(self, report: Report) -> Alert | None:
        """What a state is, if it is one to look at and another than the last one of that model."""
        kind = _OUTCOMES.get(report.state)
        if kind is None or report.category in _MESSAGES:
            return None
        about = kind, report.category, report.desired.payload if report.desired is not None else ""
        if self._told.get(report.model) == about:
            return None
        self._told[report.model] = about
        if len(self._told) > _MOST_MODELS:
            self._told.popitem(last=False)
        version = f"version {report.desired.version}: " if report.desired is not None else ""
        return Alert(report.model, kind, f"{version}{report.category}: {report.reason}")


class Watch:
    """Remembers what it has told: each thing is told when it begins, and again only after it has ended."""

    def __init__(
        self, folder: Path | None = None, least_free: int = 0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """``folder``: on the disk that should have ``least_free`` bytes free; None: no disk is looked at."""
        self._folder = folder
        self._least_free = least_free
        self._clock = clock
        self._bands: dict[Labels, float] = {}
        self._crashes: dict[str, deque[tuple[float, float]]] = {}
        self._told: set[tuple[str, str]] = set()

    def look(self, families: Iterable[Family], models: Sequence[ModelInfo]) -> list[Alert]:
        """What has begun since the last time."""
        samples = {
            family.name: {labels: value for _, labels, value in family.samples}
            for family in families
            if family.name in (_BAND, _EVENTS)
        }
        found = self._drift(samples.get(_BAND, {}))
        lasting = [
            *self._loops(samples.get(_EVENTS, {})),
            *(Alert(one.name, "provider_share", one.reason) for one in models if _SHARE in one.reason),
            *self._disk(),
        ]
        found += [alert for alert in lasting if alert[:2] not in self._told]
        self._told = {(alert.model, alert.kind) for alert in lasting}
        return found

    def _drift(self, bands: Mapping[Labels, float]) -> list[Alert]:
        before, self._bands = self._bands, dict(bands)
        found = []
        for labels, band in bands.items():
            if band > before.get(labels, 0):
                named = dict(labels)
                text = f"input {named.get('input')} ({named.get('of')}) is in drift band {band:.0f} of 2"
                found.append(Alert(named.get("model", ""), "drift", text))
        return found

    def _loops(self, events: Mapping[Labels, float]) -> list[Alert]:
        now = self._clock()
        totals: dict[str, float] = {}
        for labels, count in events.items():
            named = dict(labels)
            if named.get("event") in _CRASHED:
                totals[named["model"]] = totals.get(named["model"], 0.0) + count
        found = []
        for model, total in totals.items():
            seen = self._crashes.setdefault(model, deque([(now, 0.0)]))
            if seen[-1][1] != total:
                seen.append((now, total))
            while len(seen) > 1 and (seen[1][0] <= now - CRASH_SECONDS or len(seen) > 1000):
                seen.popleft()
            crashes = total - seen[0][1]
            if crashes >= CRASHES:
                text = f"its worker ended {crashes:.0f} times within {CRASH_SECONDS:.0f} s"
                found.append(Alert(model, "crash_loop", text))
        return found

    def _disk(self) -> list[Alert]:
        if self._folder is None:
            return []
        try:
            room = os.statvfs(self._folder)
        except OSError:
            return []
        free = room.f_bavail * room.f_frsize
        if free >= self._least_free:
            return []
        return [Alert("", "disk_low", f"{free >> 20} MB are free on the disk of {self._folder}")]
