"""The Arm Compute Library: a shared library of its own that travels in the package."""

from __future__ import annotations

from collections.abc import Mapping

from armlet import mounts
from armlet.providers.base import CXX_LIBRARIES, FOREIGN_LIBRARY, ProviderRow
from armlet.spec.cpu import Cpu


def _definitions(_cpu: Cpu) -> Mapping[str, str]:
    return {
        # ACL's configure() throws where a kernel does not fit; the session then fails with its message.
        **FOREIGN_LIBRARY,
        "onnxruntime_USE_ACL": "ON",
        "onnxruntime_ACL_LIBS": mounts.LIBRARIES,
    }


ROW = ProviderRow(
    ort_name="ACLExecutionProvider",
    definitions=_definitions,
    exports=("OrtSessionOptionsAppendExecutionProvider_ACL",),
    exporting=("onnxruntime_providers_acl=core/providers/acl/acl_provider_factory.cc",),
    component=True,
    shared_cxx=True,
    rootfs=CXX_LIBRARIES,
    not_on={
        "armhf": "ONNX Runtime's ACL provider is only tested with 64-bit Arm, and the source set has no 32-bit ACL"
    },
    convolution_share=0.9,
    takes_fused=True,
)
