"""ONNX Runtime through its C API, in pure Python.

The names are those of the official ``onnxruntime`` package where it has them. NumPy is used when it can
be imported; without it results are :class:`Tensor`. The native library is looked for at first use, see
:func:`load_library`.
"""

from __future__ import annotations

from ._api_table import API_VERSION, OrtErrorCode
from ._binding import IOBinding, OrtValue
from ._errors import LibraryError, OrtError
from ._library import (
    Library,
    get_available_providers,
    get_build_info,
    get_version,
    load_library,
    set_default_logger_severity,
)
from ._metadata import ModelMetadata, NodeArg
from ._profile import NodeRun, provider_of_each_node
from ._providers import try_provider
from ._tensor import Tensor
from .options import ExecutionMode, GraphOptimizationLevel, RunOptions, SessionOptions
from .session import InferenceSession

__all__ = [
    "API_VERSION",
    "ExecutionMode",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "Library",
    "LibraryError",
    "ModelMetadata",
    "NodeArg",
    "NodeRun",
    "OrtError",
    "OrtErrorCode",
    "OrtValue",
    "RunOptions",
    "SessionOptions",
    "Tensor",
    "get_available_providers",
    "get_build_info",
    "get_version",
    "load_library",
    "provider_of_each_node",
    "set_default_logger_severity",
    "try_provider",
]
