"""What stands for a store that cannot be used at all: nothing is in it, and it says why nothing will be."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Iterator, Sequence

from armlet_runtime.store.admission import Held
from armlet_runtime.store.errors import StoreError
from armlet_runtime.store.state import ModelState
from armlet_runtime.store.store import Store


class AbsentStore(Store):
    """Everything that would change it raises :class:`StoreError` ("store")."""

    starts = 0
    notes = ()
    readonly = ""

    def __init__(self, why: str) -> None:
        self.readonly = why

    def close(self) -> None: ...

    def ended(self) -> None: ...

    def models(self) -> Sequence[str]:
        return ()

    def state(self, model: str) -> ModelState:  # noqa: ARG002
        return ModelState()

    def has(self, payload: str) -> bool:  # noqa: ARG002
        return False

    def held(self, payload: str) -> Held:
        raise FileNotFoundError(2, self.readonly, payload)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        if self.readonly:
            raise StoreError("store", self.readonly)
        yield
