"""ONNX Runtime's own kernels: part of every runtime."""

from __future__ import annotations

from armlet.providers.base import ProviderRow

ROW = ProviderRow(
    ort_name="CPUExecutionProvider",
    exports=("OrtGetApiBase", "OrtSessionOptionsAppendExecutionProvider_CPU"),
    exporting=(
        "onnxruntime_session=core/session/onnxruntime_c_api.cc",
        "onnxruntime_providers=core/providers/cpu/cpu_provider_factory.cc",
    ),
)
