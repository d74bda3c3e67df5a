"""What is to be known of an execution provider."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from armlet.spec.cpu import Arch, Cpu
from armlet.spec.sku import Flavor

CXX_LIBRARIES = frozenset({"libstdc++.so.6", "libgcc_s.so.1"})
"""The C++ runtime of a rootfs."""


def _no_definitions(_cpu: Cpu) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sdk:
    """A vendor's files, which no public archive has: the SKU or the environment names their folder."""

    name: str
    """As in ``runtime.sdks``; the container has it at ``mounts.SDKS/<name>``."""
    environment: str
    """The variable that upstream's own build reads."""
    needs: tuple[tuple[str, ...], ...]
    """Paths inside that upstream's CMake looks for; of each group, one has to be there."""
    source: str
    """Where to get it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderRow:
    """How one provider gets into a build and how it shows from outside."""

    ort_name: str
    """The name that ONNX Runtime reports."""
    definitions: Callable[[Cpu], Mapping[str, str]] = _no_definitions
    """CMake cache variables, given the weakest core; they overrule the flavor's."""
    exports: tuple[str, ...] = ()
    """Functions it adds to the library's dynamic symbols (``core/providers/<name>/symbols.txt``)."""
    exporting: tuple[str, ...] = ()
    """Where they are defined: ``<CMake target>=<source below onnxruntime/>``."""
    component: bool = False
    """The source set has its library, which travels in the package."""
    shared_cxx: bool = False
    """It is a C++ library of its own: both sides must use one C++ runtime, the rootfs's, and throw through it."""
    rootfs: frozenset[str] = frozenset()
    """Libraries by soname that the rootfs must have for it."""
    sdks: tuple[Sdk, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that upstream's CMake reads while it configures."""
    not_on: Mapping[Arch, str] = field(default_factory=dict)
    """Architecture -> why there is no build for it."""
    not_in: Mapping[Flavor, str] = field(default_factory=dict)
    """Flavor -> why it cannot be part of it."""
    convolution_share: float | None = None
    """Least share of a model's convolutions that the smoke asks of it where it is preferred; null: nothing is asked."""
    takes_fused: bool = False
    """It has a kernel for ``com.microsoft:FusedConv``: a model converted for the CPU provider alone is no mistake."""


FOREIGN_LIBRARY: Mapping[str, str] = {
    # What a build without exceptions cannot catch ends the process.
    "onnxruntime_DISABLE_EXCEPTIONS": "OFF",
    "onnxruntime_DISABLE_RTTI": "OFF",
    # CMake would write the folder that the library was linked from into ours.
    "CMAKE_SKIP_RPATH": "ON",
}
"""Definitions for a provider that links a C++ library of somebody else's."""
