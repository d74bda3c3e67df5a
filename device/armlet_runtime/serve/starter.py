"""The first load of every model: what is best, and where that fails its trial, what is next."""

from __future__ import annotations

import threading
from typing import Callable, Mapping, Sequence

from armlet_runtime.serve.payloads import BadPayload, Candidate, Catalogue
from armlet_runtime.serve.slot import Activation

_LOOK_SECONDS = 0.05


class Starter:
    """A thread of its own: payloads are verified one after the other while workers load those that were."""

    def __init__(
        self,
        names: Sequence[str],
        catalogue: Catalogue,
        begin: Callable[[Candidate], Activation | None],
        bad: Callable[[str, BadPayload], None],
    ) -> None:
        """``begin`` tells what becomes of it, or None where the model is not wanted; ``bad``: nothing can be served."""
        self._names = names
        self._catalogue = catalogue
        self._begin = begin
        self._bad = bad
        self._thread = threading.Thread(target=self._run, name="starter", daemon=True)
        self._thread.start()

    @property
    def working(self) -> bool:
        """Whether some model may yet get another payload."""
        return self._thread.is_alive()

    def _run(self) -> None:
        under_way: Mapping[str, Activation] = self._started(self._names)
        while under_way:
            ended = {name: one for name, one in under_way.items() if one.wait(_LOOK_SECONDS / len(under_way))}
            again = [
                name
                for name, one in ended.items()
                if one.fault == "trial" and self._catalogue.refuse(one.payload, one.reason)
            ]
            still = {name: one for name, one in under_way.items() if name not in ended}
            under_way = {**still, **self._started(again)}

    def _started(self, names: Sequence[str]) -> dict[str, Activation]:
        found = {}
        for name in names:
            try:
                activation = self._begin(self._catalogue.current(name))
            except BadPayload as error:
                self._bad(name, error)
                continue
            if activation is not None:
                found[name] = activation
        return found
