"""Upstream's own package ``onnxruntime``, as far as the smoke needs it, by the names of :mod:`armlet_runtime.ort`.

Runs on the target, beside the device package and an unpacked wheel. What differs: sessions are context managers here,
providers go by the names that SKUs use, and every failure is an :class:`armlet_runtime.ort.OrtError`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import onnxruntime
from armlet_runtime.ort import OrtError, OrtErrorCode, provider_of_each_node
from armlet_runtime.ort._providers import choose

__all__ = ["InferenceSession", "SessionOptions", "get_available_providers", "load_library", "provider_of_each_node"]

SessionOptions = onnxruntime.SessionOptions


def load_library(_path: object) -> Any:
    """The package: it brings its own library."""
    return SimpleNamespace(version=onnxruntime.__version__)


def get_available_providers(_library: object) -> list[str]:
    """Official names of the providers compiled in."""
    return list(onnxruntime.get_available_providers())


@contextmanager
def InferenceSession(model: Path, options: Any, providers: Sequence[str], *, library: object) -> Iterator[Any]:  # noqa: ARG001
    """A session; ``providers`` as a SKU names them. Raises :class:`OrtError` where ONNX Runtime refuses the model."""
    named = [choice.provider.name for choice in choose(list(providers))]
    try:
        yield onnxruntime.InferenceSession(str(model), options, providers=named)
    except Exception as error:  # Upstream's exception classes have no base class of their own.
        raise OrtError(OrtErrorCode.FAIL, str(error)) from error
