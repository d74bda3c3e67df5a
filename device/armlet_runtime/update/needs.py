"""What an update needs of the engine."""

from __future__ import annotations

from typing import Protocol, Sequence

from armlet_runtime.serve.interface import ModelInfo
from armlet_runtime.serve.payloads import Candidate
from armlet_runtime.serve.slot import Activation
from armlet_runtime.serve.tally import Seen


class Engine(Protocol):
    """:class:`armlet_runtime.serve.supervisor.Supervisor`, and a fake of it in tests."""

    def settled(self) -> bool:
        """Whether every model serves or has failed at least once."""

    def models(self) -> Sequence[ModelInfo]:
        """As they are now."""

    def serving(self, model: str) -> Candidate | None:
        """What answers requests; None: nothing does."""

    def seen(self, model: str, payload: str) -> Seen:
        """What became of a payload's requests."""

    def attempt(self, activation: Activation) -> Activation:
        """Blocks until it serves or does not."""
