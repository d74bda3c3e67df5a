"""The device's refusals, as errors of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from armlet_runtime import refusal

from armlet.errors import ArmletError, Kind

_KINDS = {refusal.KEY: Kind.INPUT, refusal.LIBRARY: Kind.HOST}
"""Of all else the payload itself is at fault, and must not go anywhere."""


@contextmanager
def told(where: Path | str) -> Iterator[None]:
    """Raises:
    ArmletError: for what the block refuses: (GATE) a payload that must not be installed; (INPUT) a key that is none.
    """
    try:
        yield
    except refusal.PayloadError as error:
        kind = _KINDS.get(error.reason, Kind.GATE)
        raise ArmletError(error.what, hint=error.hint, kind=kind, where=str(where)) from error
