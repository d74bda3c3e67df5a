"""VeriSilicon's NPU, as in NXP's i.MX 8M Plus, by way of TIM-VX."""

from __future__ import annotations

from collections.abc import Mapping

from armlet import mounts
from armlet.providers.base import CXX_LIBRARIES, FOREIGN_LIBRARY, ProviderRow, Sdk
from armlet.spec.cpu import Cpu

_TIM_VX, _VIVANTE = f"{mounts.SDKS}/tim-vx", f"{mounts.SDKS}/vivante"


def _definitions(_cpu: Cpu) -> Mapping[str, str]:
    return {
        **FOREIGN_LIBRARY,
        "onnxruntime_USE_VSINPU": "ON",
        # What upstream's find_library would answer, were it not for the cross compiler's CMAKE_FIND_ROOT_PATH.
        "TIMVX_LIBRARY": f"{_TIM_VX}/lib/libtim-vx.so",
    }


ROW = ProviderRow(
    ort_name="VSINPUExecutionProvider",
    definitions=_definitions,
    exports=("OrtSessionOptionsAppendExecutionProvider_VSINPU",),
    exporting=("onnxruntime_providers_vsinpu=core/providers/vsinpu/vsinpu_provider_factory.cc",),
    shared_cxx=True,
    rootfs=CXX_LIBRARIES | {"libtim-vx.so"},
    sdks=(
        Sdk(
            name="tim-vx",
            environment="TIM_VX_INSTALL",
            needs=(("include/tim/vx/graph.h",), ("lib/libtim-vx.so",)),
            source="install TIM-VX for the board (github.com/VeriSilicon/TIM-VX; NXP's BSP has it as tim-vx)",
        ),
        Sdk(
            name="vivante",
            environment="VIVANTE_SDK_DIR",
            needs=(("drivers", "lib"),),
            source="the NPU's user-space driver: of NXP's BSP (imx-gpu-viv), or VeriSilicon's SDK for the board",
        ),
    ),
    environment={"TIM_VX_INSTALL": _TIM_VX, "VIVANTE_SDK_DIR": _VIVANTE},
    not_on={"armhf": "TIM-VX and its driver come for 64-bit Arm alone"},
)
