"""What was last told of each model; told anew whenever somebody asks, or something else serves."""

from __future__ import annotations

import dataclasses
import logging
import threading
from typing import Any, Callable, Sequence

from armlet_runtime.update.interface import Active, Report, Reporter, State
from armlet_runtime.update.needs import Engine

log = logging.getLogger("armlet.update")


class Board:
    """For any thread. ``counted`` is called for each change of state, for metrics."""

    def __init__(self, engine: Engine, reporter: Reporter, counted: Callable[[Report], None] = lambda _: None) -> None:
        self._engine = engine
        self._reporter = reporter
        self._counted = counted
        self._lock = threading.Lock()
        self._last: dict[str, Report] = {}

    def tell(self, model: str, state: State, **fields: Any) -> None:
        """A model's new state; ``fields`` of :class:`Report`, ``active`` is found here."""
        report = Report(model, state, self._active(model), **fields)
        with self._lock:
            old, self._last[model] = self._last.get(model), report
        if old is None or (old.state, old.phase, old.category) != (report.state, report.phase, report.category):
            self._counted(report)
            told = f": {report.reason}" if report.reason else ""
            log.info("%s: %s%s", model, " ".join(filter(None, (state, report.phase, report.category))), told)
        self._reporter.report(report)

    def refused(self, model: str, **fields: Any) -> None:
        """A message that came to nothing is told, and what was told before stays what is told again."""
        self._reporter.report(Report(model, "FAILED", self._active(model), **fields))

    def again(self, models: Sequence[str]) -> None:
        """The same once more, with what serves now."""
        for model in models:
            active = self._active(model)
            with self._lock:
                report = dataclasses.replace(self._last.get(model) or Report(model, "IDLE"), active=active)
                self._last[model] = report
            self._reporter.report(report)

    def refresh(self) -> None:
        """Tell of models that something else serves by now."""
        with self._lock:
            told = dict(self._last)
        self.again([model for model, report in told.items() if report.active != self._active(model)])

    def alert(self, model: str, kind: str, text: str) -> None:
        """What somebody should look at."""
        log.error("%s: %s: %s", model, kind, text)
        self._reporter.alert(model, kind, text)

    def _active(self, model: str) -> Active | None:
        serving = self._engine.serving(model)
        if serving is None:
            return None
        return Active(serving.version, serving.generation, serving.payload, serving.source)
