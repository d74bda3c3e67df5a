"""XNNPACK: linked in, floating-point and 8-bit convolutional networks."""

from __future__ import annotations

from collections.abc import Mapping

from armlet.providers.base import ProviderRow
from armlet.spec.cpu import Cpu

# XNNPACK's build options by the ISA extension their kernels need (its CMakeLists.txt).
_XNNPACK_KERNELS: dict[str, frozenset[str]] = {
    "ARM_FP16_SCALAR": frozenset({"fp16"}),
    "ARM_FP16_VECTOR": frozenset({"fp16"}),
    "ARM_BF16": frozenset({"bf16"}),
    "ARM_DOTPROD": frozenset({"dotprod"}),
    "ARM_I8MM": frozenset({"i8mm"}),
    "ARM_SME": frozenset({"sme"}),
    "ARM_SME2": frozenset({"sme2"}),
}


def _definitions(cpu: Cpu) -> Mapping[str, str]:
    kernels = {
        f"XNNPACK_ENABLE_{option}": "ON" if needed <= cpu.features else "OFF"
        for option, needed in _XNNPACK_KERNELS.items()
    }
    return {
        "onnxruntime_USE_XNNPACK": "ON",
        "XNNPACK_BUILD_ALL_MICROKERNELS": "OFF",
        # KleidiAI's kernels stop some cores older than Armv9 with SIGILL.
        "XNNPACK_ENABLE_KLEIDIAI": "OFF",
        **kernels,
    }


ROW = ProviderRow(
    ort_name="XnnpackExecutionProvider",
    definitions=_definitions,
    # It takes every 2-D convolution of floats whose weights are constant and whose sizes are known. A model may have a
    # few others; where more than one in ten goes elsewhere, the conversion is what is wrong.
    convolution_share=0.9,
)
