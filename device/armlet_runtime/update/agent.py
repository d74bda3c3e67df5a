"""What turns wishes into payloads that serve, one model after the other, in one thread; and takes back what is bad.

The way of one update is in docs/updates.md. Every call from outside is quick and takes any thread.
"""

from __future__ import annotations

from typing import Sequence

from armlet_runtime.update.interface import Category, Desired


class Agent:
    """Started by :meth:`start`, ended by :meth:`stop`."""

    def start(self) -> None:
        """Go on where the last run was interrupted, and take wishes; returns at once."""

    def stop(self, seconds: float) -> None:
        """End: a download is cut short and kept, an activation is waited for at most that long."""

    def wish(self, model: str, desired: Desired | None) -> None:
        """A model is to be served like that; None: nobody wishes anything any more.

        The newest wish counts. The same again only has the state told again (so MQTT calls this for each message, and
        for nothing else). For a model that nobody knows it is a first payload.
        """

    def refuse(self, model: str, category: Category, reason: str) -> None:
        """A wish could not be read (``category`` "manifest"): only told, what is under way goes on."""

    def models(self) -> Sequence[str]:
        """Names of all that there are now, sorted: those that serve, those in the store, those that were wished for."""

    def tell_again(self) -> None:
        """Have the reporter told every model's state anew: it has connected."""
