"""Providers that Armlet does not build, for libraries that have them: CUDA, TensorRT, Core ML, NNAPI and others."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Mapping

from ._errors import invalid, unsupported
from ._library import Library

SUFFIX = "ExecutionProvider"
Append = Callable[[Library, int, Mapping[str, str]], None]

_OWN_OPTIONS = {"CUDA": "CUDA_V2", "Tensorrt": "TensorRT_V2", "CANN": "CANN", "Dnnl": "Dnnl", "ROCM": "ROCM"}
"""Short name -> what the C API's function that takes its own kind of options ends with."""
_NUMBER = {"Nnapi": ("flags", ctypes.c_uint32), "Dml": ("device_id", ctypes.c_int)}
"""Short name -> the one option of the function that such a library exports."""
_GENERIC = {"Azure": "AZURE", "WebNN": "WEBNN", "Js": "JS"}
"""Short name -> what the C API's function for all others calls it, where that differs."""


def append_to(name: str) -> Append:
    """What appends the provider of that official name, as a library reports it, to a session's options."""
    short = name[: -len(SUFFIX)] if name.endswith(SUFFIX) else name
    if short in _OWN_OPTIONS:
        return _own_options(_OWN_OPTIONS[short])
    if short in _NUMBER:
        return _number(short, *_NUMBER[short])
    return _generic(_GENERIC.get(short, short))


def exported(library: Library, name: str, *more: Any) -> Callable[..., None]:
    """The function by which a library built with a provider appends it; ``more`` are types of further arguments."""
    symbol = f"OrtSessionOptionsAppendExecutionProvider_{name}"
    try:
        function = getattr(library.native, symbol)
    except AttributeError:
        raise unsupported(f"the library does not export {symbol}") from None
    function.restype = ctypes.c_void_p
    function.argtypes = (ctypes.c_void_p, *more)
    return library.api.checked(function)


def append_generic(library: Library, native: int, name: str, options: Mapping[str, str]) -> None:
    """By the C API's function that takes a name and any options."""
    keys, values = _arrays(options)
    library.api.SessionOptionsAppendExecutionProvider(native, name.encode(), keys, values, len(options))


def _generic(name: str) -> Append:
    def append(library: Library, native: int, options: Mapping[str, str]) -> None:
        append_generic(library, native, name, options)

    return append


def _own_options(ending: str) -> Append:
    kind = "TensorRT" if ending.startswith("TensorRT") else ending.partition("_")[0]

    def append(library: Library, native: int, options: Mapping[str, str]) -> None:
        api = library.api
        made = api.pointer(f"Create{kind}ProviderOptions")
        try:
            if options:
                getattr(api, f"Update{kind}ProviderOptions")(made, *_arrays(options), len(options))
            getattr(api, f"SessionOptionsAppendExecutionProvider_{ending}")(native, made)
        finally:
            getattr(api, f"Release{kind}ProviderOptions")(made)

    return append


def _number(name: str, option: str, kind: Any) -> Append:
    def append(library: Library, native: int, options: Mapping[str, str]) -> None:
        text = options.get(option, "0")
        if not text.isdecimal() or set(options) - {option}:
            raise invalid(f"{name} takes one option, {option}, a whole number")
        exported(library, name, kind)(native, int(text))

    return append


def _arrays(options: Mapping[str, str]) -> tuple[Any, Any]:
    strings = ctypes.c_char_p * len(options)
    return strings(*(key.encode() for key in options)), strings(*(value.encode() for value in options.values()))
