"""The execution providers a runtime can be built with: one row each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

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


def _no_definitions(_cpu: Cpu) -> Mapping[str, str]:
    return {}


def _xnnpack_definitions(cpu: Cpu) -> Mapping[str, str]:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderRow:
    """How one provider gets into a build and how it shows from outside."""

    ort_name: str
    """The name that ONNX Runtime reports."""
    definitions: Callable[[Cpu], Mapping[str, str]] = _no_definitions
    """CMake cache variables, given the weakest core."""
    exports: tuple[str, ...] = ()
    """Functions it adds to the library's dynamic symbols (``core/providers/<name>/symbols.txt``)."""
    exporting: tuple[str, ...] = ()
    """Where they are defined: ``<CMake target>=<source below onnxruntime/>``."""


PROVIDERS: dict[str, ProviderRow] = {
    "cpu": ProviderRow(
        ort_name="CPUExecutionProvider",
        exports=("OrtGetApiBase", "OrtSessionOptionsAppendExecutionProvider_CPU"),
        exporting=(
            "onnxruntime_session=core/session/onnxruntime_c_api.cc",
            "onnxruntime_providers=core/providers/cpu/cpu_provider_factory.cc",
        ),
    ),
    "xnnpack": ProviderRow(ort_name="XnnpackExecutionProvider", definitions=_xnnpack_definitions),
}
