"""What runs on the target: ``armlet_runtime.ort`` binds ONNX Runtime, and the service is built on it.

Importing this package loads nothing else: no native library, no NumPy.
"""

from __future__ import annotations

__version__ = "0.1.0"
