"""What runs on the target: ``armlet_runtime.ort`` binds ONNX Runtime, ``armlet_runtime.smoke`` tries a model,
``armlet_runtime.payload`` checks who signed a model and that nothing of it was changed.

Importing this package loads nothing else: no native library, no NumPy.
"""

from __future__ import annotations

__version__ = "0.1.0"
