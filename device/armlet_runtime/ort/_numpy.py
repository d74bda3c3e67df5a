"""NumPy, where it can be imported."""

from __future__ import annotations

import contextlib
import importlib
from typing import Any

numpy: Any = None
with contextlib.suppress(ImportError):
    numpy = importlib.import_module("numpy")
