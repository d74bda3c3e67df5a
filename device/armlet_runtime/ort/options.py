"""How a session and a run are set up."""

from __future__ import annotations

import os
import threading
from typing import Any, Callable

from ._api_table import ExecutionMode, GraphOptimizationLevel
from ._errors import invalid
from ._handles import Handle
from ._library import Library

__all__ = ["ExecutionMode", "GraphOptimizationLevel", "RunOptions", "SessionOptions"]

_DEFAULTS: dict[str, Any] = {
    "enable_cpu_mem_arena": True,
    "enable_mem_pattern": True,
    "enable_profiling": False,
    "execution_mode": ExecutionMode.ORT_SEQUENTIAL,
    "graph_optimization_level": GraphOptimizationLevel.ORT_ENABLE_ALL,
    "inter_op_num_threads": 0,
    "intra_op_num_threads": 0,
    "log_severity_level": -1,
    "log_verbosity_level": 0,
    "logid": "",
    "optimized_model_filepath": "",
    "profile_file_prefix": "onnxruntime_profile_",
    "use_deterministic_compute": False,
}


class SessionOptions:
    """Settings of a session, with the official package's names and defaults.

    Plain Python: no library is needed to fill it in, sessions read it once when they are made, and one
    object may serve many. A misspelt attribute raises :class:`AttributeError`.

    * ``intra_op_num_threads``, ``inter_op_num_threads``: threads within and across operators; 0 is one per
      core. With the XNNPACK provider the first defaults to 1 instead, see :class:`InferenceSession`.
    * ``graph_optimization_level``: :class:`GraphOptimizationLevel`. A minimal build only applies what the
      conversion to ORT format recorded.
    * ``execution_mode``: :class:`ExecutionMode`.
    * ``enable_profiling``, ``profile_file_prefix``: write ``<prefix><time>.json``.
    * ``enable_mem_pattern``, ``enable_cpu_mem_arena``: plan memory ahead; keep freed memory for reuse.
    * ``optimized_model_filepath``: save the optimised model; a minimal build cannot.
    * ``log_severity_level``: 0 verbose … 4 fatal, -1 for the default; ``log_verbosity_level``; ``logid``.
    * ``use_deterministic_compute``: prefer kernels whose results do not vary from run to run.
    """

    __slots__ = (*_DEFAULTS, "_assigned", "_config", "_dimensions")

    enable_cpu_mem_arena: bool
    enable_mem_pattern: bool
    enable_profiling: bool
    execution_mode: ExecutionMode
    graph_optimization_level: GraphOptimizationLevel
    inter_op_num_threads: int
    intra_op_num_threads: int
    log_severity_level: int
    log_verbosity_level: int
    logid: str
    optimized_model_filepath: str
    profile_file_prefix: str
    use_deterministic_compute: bool
    _assigned: set[str]
    _config: dict[str, str]
    _dimensions: list[tuple[str, str, int]]

    def __init__(self) -> None:
        object.__setattr__(self, "_assigned", set())
        object.__setattr__(self, "_config", {})
        object.__setattr__(self, "_dimensions", [])
        for name, value in _DEFAULTS.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        self._assigned.add(name)

    def assigned(self, name: str) -> bool:
        """Whether an attribute was set by the user, even to its default."""
        return name in self._assigned

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Set one of the keys of ``onnxruntime_session_options_config_keys.h``, both as text."""
        # Checked here because a library without exceptions ends the process over a key it cannot take.
        if not 0 < len(key.encode()) <= 1024 or len(value.encode()) > 2048:
            raise invalid("a session config key has 1 to 1024 bytes and its value at most 2048")
        self._config[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """The value set for ``key``; raises :class:`OrtError` when there is none."""
        try:
            return self._config[key]
        except KeyError:
            raise invalid(f'session config has no entry "{key}"') from None

    def has_session_config_entry(self, key: str) -> bool:
        """Whether ``key`` was set."""
        return key in self._config

    @property
    def uses_model_bytes_in_place(self) -> bool:
        """Whether the buffer of an ORT-format model must outlive the session."""
        return self._config.get("session.use_ort_model_bytes_directly") == "1"

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Fix the symbolic dimension ``name``, as it stands in input shapes, to ``size``."""
        self._dimensions.append(("AddFreeDimensionOverrideByName", name, size))

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """Fix every symbolic dimension of that denotation, such as DATA_BATCH, to ``size``."""
        self._dimensions.append(("AddFreeDimensionOverride", denotation, size))

    def apply(self, library: Library, native: int) -> None:
        """Copy the settings into the ``OrtSessionOptions`` at ``native``."""
        api = library.api
        api.SetIntraOpNumThreads(native, self.intra_op_num_threads)
        api.SetInterOpNumThreads(native, self.inter_op_num_threads)
        api.SetSessionExecutionMode(native, self.execution_mode)
        api.SetSessionGraphOptimizationLevel(native, self.graph_optimization_level)
        _switch(api.EnableMemPattern, api.DisableMemPattern, native, self.enable_mem_pattern)
        _switch(api.EnableCpuMemArena, api.DisableCpuMemArena, native, self.enable_cpu_mem_arena)
        if self.log_severity_level >= 0:
            api.SetSessionLogSeverityLevel(native, self.log_severity_level)
        api.SetSessionLogVerbosityLevel(native, self.log_verbosity_level)
        api.SetSessionLogId(native, self.logid.encode())
        if self.enable_profiling:
            api.EnableProfiling(native, os.fsencode(self.profile_file_prefix))
        if self.optimized_model_filepath:
            api.SetOptimizedModelFilePath(native, os.fsencode(self.optimized_model_filepath))
        if self.use_deterministic_compute:
            api.SetDeterministicCompute(native, True)
        for key, value in self._config.items():
            api.AddSessionConfigEntry(native, key.encode(), value.encode())
        for function, name, size in self._dimensions:
            getattr(api, function)(native, name.encode(), size)


class RunOptions:
    """Settings of one or more runs; ``terminate`` ends those that are under way.

    ``logid`` tags the log lines of a run, ``log_severity_level`` is 0 verbose … 4 fatal.
    """

    def __init__(self) -> None:
        self.logid = ""
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self._config: dict[str, str] = {}
        self._terminate = False
        self._handles: dict[Library, Handle] = {}
        self._lock = threading.Lock()

    @property
    def terminate(self) -> bool:
        """Set to True, from any thread, to make the runs that use this object fail as soon as they can.

        Stays set, and fails later runs too, until it is False again.
        """
        return self._terminate

    @terminate.setter
    def terminate(self, value: bool) -> None:
        with self._lock:
            self._terminate = value
            for library, handle in self._handles.items():
                with handle as native:
                    _set_terminate(library, native, value)

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Set one of the keys of ``onnxruntime_run_options_config_keys.h``, both as text."""
        with self._lock:
            self._config[key] = value
            for library, handle in self._handles.items():
                with handle as native:
                    library.api.AddRunConfigEntry(native, key.encode(), value.encode())

    def native(self, library: Library) -> Handle:
        """The ``OrtRunOptions`` for a library, made at first use and brought up to date."""
        api = library.api
        with self._lock:
            if library not in self._handles:
                made = Handle(self, "RunOptions", api.pointer("CreateRunOptions"), api.ReleaseRunOptions)
                with made as native:
                    for key, value in self._config.items():
                        api.AddRunConfigEntry(native, key.encode(), value.encode())
                self._handles[library] = made
            handle = self._handles[library]
            with handle as native:
                api.RunOptionsSetRunTag(native, self.logid.encode())
                api.RunOptionsSetRunLogSeverityLevel(native, self.log_severity_level)
                api.RunOptionsSetRunLogVerbosityLevel(native, self.log_verbosity_level)
                _set_terminate(library, native, self._terminate)
            return handle


def _set_terminate(library: Library, native: int, value: bool) -> None:
    _switch(library.api.RunOptionsSetTerminate, library.api.RunOptionsUnsetTerminate, native, value)


def _switch(on: Callable[[int], Any], off: Callable[[int], Any], native: int, value: bool) -> None:
    if value:
        on(native)
    else:
        off(native)
