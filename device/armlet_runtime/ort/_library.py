"""Finding and loading ``libonnxruntime``."""

from __future__ import annotations

import ctypes
import os
import threading
from pathlib import Path
from typing import Any, Union

from ._api import Api, text_at
from ._api_table import API_VERSION, OrtAllocatorType, OrtErrorCode, OrtLoggingLevel, OrtMemType
from ._errors import LibraryError, OrtError
from ._handles import Handle

ENVIRONMENT_VARIABLE = "ARMLET_ORT_LIBRARY"
_NAMES = ("libonnxruntime.so.1", "libonnxruntime.so")


class Library:
    """One ONNX Runtime in this process. Get it from :func:`load_library`.

    ``path`` is what was loaded, ``version`` its release ("1.21.0"), ``api`` its functions.
    """

    def __init__(self, path: str, native: Any, base: int) -> None:
        functions = ctypes.cast(base, ctypes.POINTER(ctypes.c_void_p))
        get_api = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)(functions[0] or 0)
        get_version = ctypes.CFUNCTYPE(ctypes.c_char_p)(functions[1] or 0)
        self.path = path
        self.native = native
        self.version = (get_version() or b"").decode("ascii", "replace")
        # The table only ever grows at its end, so a newer library hands over the version asked for.
        table = get_api(API_VERSION)
        if not table:
            raise LibraryError(
                OrtErrorCode.FAIL,
                f"{path} is ONNX Runtime {self.version}; this binding needs C API {API_VERSION}, "
                f"which came with 1.{API_VERSION}",
            )
        self.api = Api(table)
        self._lock = threading.Lock()
        self._environment: Handle | None = None
        # Both live as long as the library, which is never unloaded.
        self.allocator = self.api.pointer("GetAllocatorWithDefaultOptions")
        self.cpu_memory = self.api.pointer("CreateCpuMemoryInfo", OrtAllocatorType.ArenaAllocator, OrtMemType.Default)

    @property
    def environment(self) -> Handle:
        """The ``OrtEnv``: logging, and what sessions share. Made at first use, released at exit."""
        with self._lock:
            if self._environment is None:
                pointer = self.api.pointer("CreateEnv", OrtLoggingLevel.WARNING, b"armlet")
                self._environment = Handle(self, "environment", pointer, self.api.ReleaseEnv)
            return self._environment

    def take_string(self, name: str, *arguments: Any) -> str:
        """Call ``name``, whose last parameter receives a string made by the default allocator."""
        address = self.api.pointer(name, *arguments)
        try:
            return text_at(address)
        finally:
            self.free(address)

    def free(self, address: int | None) -> None:
        """Give memory back to the default allocator; nothing happens for NULL."""
        if address:
            self.api.AllocatorFree(self.allocator, address)


# What callers may name a library by.
LibraryLike = Union[Library, str, "os.PathLike[str]", None]

_loaded: dict[str, Library] = {}
_loaded_lock = threading.Lock()
_beside: list[Any] = []


def load_library(library: LibraryLike = None) -> Library:
    """The library to use, loaded once per process.

    ``library`` or else ``$ARMLET_ORT_LIBRARY`` names a file or a soname, and nothing else is then tried.
    Without them: ``libonnxruntime.so.1`` and ``libonnxruntime.so`` next to this module, then the same
    names where the dynamic loader looks.

    Raises :class:`LibraryError` when there is none, when it does not load, or when it is older than the
    C API this binding was generated from.
    """
    if isinstance(library, Library):
        return library
    wanted = os.fspath(library) if library is not None else os.environ.get(ENVIRONMENT_VARIABLE, "")
    with _loaded_lock:
        if wanted not in _loaded:
            _loaded[wanted] = _open(wanted) if wanted else _search()
        return _loaded[wanted]


def _search() -> Library:
    beside = Path(__file__).resolve().parent
    candidates = [str(beside / name) for name in _NAMES]
    tried = []
    for candidate in [*candidates, *_NAMES]:
        if candidate in candidates and not Path(candidate).exists():
            tried.append(f"{candidate}: no such file")
            continue
        try:
            return _open(candidate)
        except LibraryError as error:
            # A library that is there and unfit must be heard of, not stepped over in favour of another.
            if candidate in candidates:
                raise
            tried.append(error.message)
    raise LibraryError(
        OrtErrorCode.FAIL,
        "\n  ".join([f"no ONNX Runtime found; set {ENVIRONMENT_VARIABLE} to its path. Tried:", *tried]),
    )


def _load(path: str) -> Any:
    """The loaded library. What it needs and the loader does not find is taken from beside it.

    Some providers' libraries travel in the package. Installed in a folder of the system's, the loader finds
    them there; unpacked anywhere else, it would not, as no file of a package carries a search path.
    """
    tried: set[str] = set()
    while True:
        try:
            return ctypes.CDLL(path)
        except OSError as error:
            # "<soname>: cannot open shared object file: ...", whatever the language of the rest.
            name = str(error).partition(":")[0]
            beside = Path(path).parent / name
            if "/" not in path or "/" in name or name in tried or not beside.is_file():
                raise
            tried.add(name)
            # The loader knows by soname what is loaded already; the reference keeps it.
            _beside.append(ctypes.CDLL(str(beside)))


def _open(path: str) -> Library:
    try:
        native = _load(path)
        get_base = native.OrtGetApiBase
    except OSError as error:
        reason = str(error) if path in str(error) else f"{path}: {error}"
        raise LibraryError(OrtErrorCode.FAIL, f"cannot load {reason}") from error
    except AttributeError as error:
        raise LibraryError(OrtErrorCode.FAIL, f"{path} is no ONNX Runtime: it lacks OrtGetApiBase") from error
    get_base.restype = ctypes.c_void_p
    get_base.argtypes = ()
    return Library(path, native, get_base())


def get_version(library: LibraryLike = None) -> str:
    """Release of the library, such as ``"1.21.0"``."""
    return load_library(library).version


def get_build_info(library: LibraryLike = None) -> str:
    """What the library says of its own build: git revision, build type, compiler flags."""
    return text_at(load_library(library).api.GetBuildInfoString())


def get_available_providers(library: LibraryLike = None) -> list[str]:
    """Official names of the execution providers compiled into the library, by priority."""
    api = load_library(library).api
    names = ctypes.POINTER(ctypes.c_char_p)()
    count = ctypes.c_int()
    api.GetAvailableProviders(ctypes.byref(names), ctypes.byref(count))
    try:
        return [(names[index] or b"").decode() for index in range(count.value)]
    finally:
        api.ReleaseAvailableProviders(names, count)


def set_default_logger_severity(severity: int, library: LibraryLike = None) -> None:
    """Least severity that is logged where a session sets none: 0 verbose … 4 fatal, 2 at the start."""
    loaded = load_library(library)
    if severity not in list(OrtLoggingLevel):
        raise OrtError(OrtErrorCode.INVALID_ARGUMENT, f"log severity {severity} is not in 0..4")
    with loaded.environment as environment:
        loaded.api.UpdateEnvWithCustomLogLevel(environment, severity)
