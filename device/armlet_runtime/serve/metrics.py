"""What the service counts and measures; see docs/service-api.md for the list."""

from __future__ import annotations

import math
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Callable, Iterable, Sequence, Tuple

from armlet_runtime.ort import Tensor

from .drift import Drift, Reference, band
from .exposition import Family, Labels, counter, gauge
from .interface import Tensors
from .looks import Thrift, some
from .quantiles import Quantiles

QUANTILES = (0.5, 0.95, 0.99)
MOST_MODELS = 64
"""Names beyond these share one: a client that invents names must not fill the memory."""
OTHER = "other"
UPDATE_ENDS = ("UPDATED", "FAILED", "ROLLED_BACK")
MOST_CLASSES = 64
"""Per output, the classes that are counted apart."""


@dataclass
class _Output:
    """One output's values so far, by Welford's way."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0
    strange: int = 0
    """NaN or infinite."""
    classes: Counter[str] = field(default_factory=Counter)

    def add(self, values: Sequence[float]) -> None:
        for value in values:
            if not math.isfinite(value):
                self.strange += 1
                continue
            self.count += 1
            step = value - self.mean
            self.mean += step / self.count
            self.squares += step * (value - self.mean)

    def won(self, index: int) -> None:
        name = str(index)
        self.classes[name if name in self.classes or len(self.classes) < MOST_CLASSES else OTHER] += 1


class _Model:
    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.events: Counter[str] = Counter()
        self.seconds = 0.0
        self.answered = 0
        self.latency = Quantiles()
        self.depth = 0
        self.drift = Drift(())
        self.outputs: dict[str, _Output] = {}
        self.input_thrift, self.output_thrift = Thrift(), Thrift()


class Metrics:
    """The service's :class:`~.interface.Telemetry`, in memory that does not grow with what it sees."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._models: dict[str, _Model] = {}
        self._http: Counter[Labels] = Counter()
        self.more: Callable[[], Iterable[Family]] = tuple
        """What others count, for the same page."""
        self._updates: dict[str, str] = {}
        self._update_ends: Counter[Labels] = Counter()

    def observed(self, model: str, seconds: float, outcome: str) -> None:
        """See :class:`~.interface.Telemetry`."""
        with self._lock:
            one = self._of(model)
            one.outcomes[outcome] += 1
            if outcome == "ok":
                one.answered += 1
                one.seconds += seconds
                one.latency.add(seconds)

    def queue_depth(self, model: str, depth: int) -> None:
        """See :class:`~.interface.Telemetry`."""
        with self._lock:
            self._of(model).depth = depth

    def inputs(self, model: str, tensors: Tensors) -> None:
        """See :class:`~.interface.Telemetry`."""
        with self._lock:
            one = self._of(model)
            if one.input_thrift:
                one.drift.observe(tensors)
                one.input_thrift.spent()

    def outputs(self, model: str, tensors: Tensors) -> None:
        """See :class:`~.interface.Telemetry`."""
        with self._lock:
            one = self._of(model)
            if not one.output_thrift:
                return
            for name, tensor in tensors.items():
                values = some(tensor)
                output = one.outputs.setdefault(name, _Output())
                output.add(values)
                for row in _rows_of_scores(tensor, values):
                    output.won(max(range(len(row)), key=row.__getitem__))
            one.output_thrift.spent()

    def worker(self, model: str, event: str) -> None:
        """See :class:`~.interface.Telemetry`."""
        with self._lock:
            self._of(model).events[event] += 1

    def watch_drift(self, model: str, references: Sequence[Reference]) -> None:
        """Compare with these from now on: the model's payload has changed."""
        with self._lock:
            self._of(model).drift = Drift(references)

    def http(self, endpoint: str, status: int) -> None:
        """An answer went out."""
        with self._lock:
            self._http[("endpoint", endpoint), ("status", str(status))] += 1

    def updated(self, model: str, state: str, category: str) -> None:
        """An update came into another state; ``category``: why it came to nothing."""
        with self._lock:
            if model in self._updates or len(self._updates) < MOST_MODELS:
                self._updates[model] = state
                self._update_ends[("model", model), ("state", state), ("category", category)] += state in UPDATE_ENDS

    def families(self) -> list[Family]:
        """All of it, for a scraper."""
        more = self.more()
        with self._lock:
            models = sorted(self._models.items())
            return [
                *_traffic(models),
                *_drift(models),
                *_distribution(models),
                *more,
                counter("armlet_http_answers_total", "Answers by endpoint and HTTP status.", dict(self._http)),
                gauge(
                    "armlet_update_state",
                    "1 for the state that a model's update is in.",
                    {(("model", name), ("state", state)): 1.0 for name, state in self._updates.items()},
                ),
                counter(
                    "armlet_updates_total",
                    "Updates that ended: UPDATED, FAILED, ROLLED_BACK, and why.",
                    {labels: count for labels, count in self._update_ends.items() if count},
                ),
            ]

    def _of(self, model: str) -> _Model:
        name = model if model in self._models or len(self._models) < MOST_MODELS else OTHER
        return self._models.setdefault(name, _Model())


_Models = Sequence[Tuple[str, _Model]]


def _traffic(models: _Models) -> list[Family]:
    latency: list[tuple[str, Labels, float]] = []
    for name, one in models:
        for share, value in zip(QUANTILES, one.latency.of(QUANTILES)):
            if value is not None:
                latency.append(("", (("model", name), ("quantile", str(share))), value))
        latency += [("_sum", (("model", name),), one.seconds), ("_count", (("model", name),), one.answered)]
    return [
        Family("armlet_request_seconds", "summary", "Latency of answered requests, of the last 5 to 10 min.", latency),
        counter(
            "armlet_requests_total",
            "Requests by outcome: ok, or why they were refused.",
            {
                (("model", name), ("outcome", outcome)): count
                for name, one in models
                for outcome, count in one.outcomes.items()
            },
        ),
        gauge("armlet_queue_depth", "Requests that wait.", {(("model", name),): one.depth for name, one in models}),
        counter(
            "armlet_worker_events_total",
            "What happened to workers: started, ready, crashed, stalled, failed, swapped, stopped.",
            {(("model", name), ("event", event)): count for name, one in models for event, count in one.events.items()},
        ),
    ]


def _drift(models: _Models) -> list[Family]:
    found: dict[Labels, float] = {
        (("model", name), ("input", reference.input), ("of", reference.of)): index
        for name, one in models
        for reference, index in one.drift.indices()
        if index is not None
    }
    return [
        gauge("armlet_input_drift_psi", "Population stability index against the payload's reference.", found),
        gauge(
            "armlet_input_drift_band",
            "0: as it was, 1: from 0.1 on, 2: from 0.2 on.",
            {labels: band(index) for labels, index in found.items()},
        ),
    ]


def _distribution(models: _Models) -> list[Family]:
    outputs = [
        ((("model", name), ("output", output)), seen) for name, one in models for output, seen in one.outputs.items()
    ]
    return [
        gauge("armlet_output_mean", "Of an output's values.", {key: seen.mean for key, seen in outputs if seen.count}),
        gauge(
            "armlet_output_std",
            "Standard deviation of an output's values.",
            {key: math.sqrt(seen.squares / seen.count) for key, seen in outputs if seen.count},
        ),
        counter(
            "armlet_output_not_finite_total", "NaN and infinite values.", {key: seen.strange for key, seen in outputs}
        ),
        counter(
            "armlet_output_class_total",
            "How often each place of a row of scores was the largest.",
            {(*key, ("class", name)): count for key, seen in outputs for name, count in seen.classes.items()},
        ),
    ]


def _rows_of_scores(tensor: Tensor, values: Sequence[float]) -> Sequence[Sequence[float]]:
    """Of a vector or table of floats that was seen as a whole."""
    width = tensor.shape[-1] if tensor.shape else 0
    if tensor.element.format not in ("e", "f", "d") or len(tensor.shape) > 2 or width < 2:
        return ()
    if len(values) != math.prod(tensor.shape):
        return ()
    return [values[start : start + width] for start in range(0, len(values), width)]
