"""The page at /metrics: counters, models, the machine."""

from __future__ import annotations

import os
from typing import Callable, Iterable, Sequence

import armlet_runtime

from . import exposition, sysinfo
from .exposition import Family, Labels, gauge
from .interface import Engine, ModelInfo
from .metrics import Metrics

STATES = ("loading", "ready", "failed", "unloaded")


def page(engine: Engine, metrics: Metrics, connections: Callable[[], int]) -> str:
    """In Prometheus' text format."""
    return exposition.text(families(engine, metrics, connections))


def families(engine: Engine, metrics: Metrics, connections: Callable[[], int]) -> Iterable[Family]:
    """All metrics, in groups."""
    models = engine.models()
    yield gauge("armlet_info", "The service's version.", {(("version", armlet_runtime.__version__),): 1})
    yield gauge("armlet_ready", "Whether every model serves.", {(): int(engine.ready())})
    yield gauge("armlet_http_connections", "Open now.", {(): connections()})
    yield from _of_models(models)
    yield from metrics.families()
    yield from sysinfo.families(
        {"service": os.getpid(), **{f"model {model.name}": model.pid for model in models if model.pid is not None}}
    )


def _of_models(models: Sequence[ModelInfo]) -> Iterable[Family]:
    def each(values: Callable[[ModelInfo], Iterable[tuple[Labels, float]]]) -> dict[Labels, float]:
        return {(("model", model.name), *labels): value for model in models for labels, value in values(model)}

    yield gauge(
        "armlet_model_info",
        "Which payload serves.",
        each(
            lambda model: [
                (
                    (
                        ("version", model.version),
                        ("generation", str(model.generation)),
                        ("sha256", model.sha256),
                        ("payload_sha256", model.payload_sha256),
                    ),
                    1.0,
                )
            ]
        ),
    )
    yield gauge(
        "armlet_model_state",
        "1 for the state that a model is in.",
        each(lambda model: [((("state", state),), float(model.state == state)) for state in STATES]),
    )
    yield gauge(
        "armlet_model_provider_share",
        "Share of the model that each execution provider runs.",
        each(lambda model: [((("provider", name),), share) for name, share in model.provider_share.items()]),
    )
