"""What stands for updates where the device's file wants none: nothing of theirs is even read into memory."""

from __future__ import annotations

from typing import Callable, Iterable, Protocol, Sequence

from armlet_runtime.serve.exposition import Family
from armlet_runtime.serve.interface import ModelInfo
from armlet_runtime.serve.metrics import Metrics
from armlet_runtime.serve.payloads import Candidate, Catalogue, FactorySet
from armlet_runtime.update.needs import Engine


class Updating(Protocol):
    """What the service knows of updates."""

    @property
    def catalogue(self) -> Catalogue:
        """For the engine."""

    def begin(self, engine: Engine, metrics: Metrics) -> object:
        """Take wishes from now on."""

    def crashing(self, payload: Candidate, how: str) -> None:
        """For the engine: the worker of what serves fails again and again."""

    def beat(self, families: Callable[[], Iterable[Family]], models: Callable[[], Sequence[ModelInfo]]) -> None:
        """Every second or so."""

    def families(self) -> Iterable[Family]:
        """For /metrics."""

    def stop(self, seconds: float) -> None:
        """Before the engine ends."""

    def close(self) -> None:
        """Once all has ended as it should."""


class Without:
    """An :class:`Updating` that does nothing."""

    def __init__(self, factory: FactorySet) -> None:
        self.catalogue = factory

    def begin(self, engine: Engine, metrics: Metrics) -> None: ...

    def crashing(self, payload: Candidate, how: str) -> None: ...

    def beat(self, families: Callable[[], Iterable[Family]], models: Callable[[], Sequence[ModelInfo]]) -> None: ...

    def families(self) -> Iterable[Family]:
        return ()

    def stop(self, seconds: float) -> None: ...

    def close(self) -> None: ...
