"""The libraries that read and convert models, loaded when first needed: ``armlet`` imports without them."""

from __future__ import annotations

import importlib
from typing import Any

from armlet.errors import ArmletError, Kind


def library(name: str) -> Any:
    """The module ``name``.

    Raises:
        ArmletError: it is not installed, or does not load on this machine.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ArmletError(
            f"the Python library {name.partition('.')[0]} cannot be used: {error}",
            hint="start through ./inv, which installs what the lock file names",
            kind=Kind.HOST,
        ) from error
