"""Rockchip's first NPU, that of the RK1808. Its later ones (RK3566, RK3588) have another interface, RKNN."""

from __future__ import annotations

from collections.abc import Mapping

from armlet import mounts
from armlet.providers.base import CXX_LIBRARIES, FOREIGN_LIBRARY, ProviderRow, Sdk
from armlet.spec.cpu import Cpu

_DDK = f"{mounts.SDKS}/rknpu-ddk"


def _definitions(_cpu: Cpu) -> Mapping[str, str]:
    return {**FOREIGN_LIBRARY, "onnxruntime_USE_RKNPU": "ON", "RKNPU_DDK_PATH": _DDK}


ROW = ProviderRow(
    ort_name="RknpuExecutionProvider",
    definitions=_definitions,
    exports=("OrtSessionOptionsAppendExecutionProvider_Rknpu",),
    exporting=("onnxruntime_providers_rknpu=core/providers/rknpu/rknpu_provider_factory.cc",),
    shared_cxx=True,
    rootfs=CXX_LIBRARIES | {"librknpu_ddk.so"},
    sdks=(
        Sdk(
            name="rknpu-ddk",
            environment="RKNPU_DDK_PATH",
            needs=(("include/rknpu/rknpu_pub.h",), ("lib64/librknpu_ddk.so",)),
            source="Rockchip's RKNPU DDK for the RK1808 (github.com/airockchip/rknpu_ddk)",
        ),
    ),
    not_on={"armhf": "ONNX Runtime supports the 64-bit RK1808 alone"},
    not_in={"minimal": "it hands the NPU whole ONNX graphs, which a minimal build cannot write"},
)
