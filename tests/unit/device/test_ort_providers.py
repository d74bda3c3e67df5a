"""Which providers a session asks for, with which threads."""

from __future__ import annotations

import ctypes
import os
from typing import Any

import pytest
from armlet_runtime import ort
from armlet_runtime.ort import _elsewhere, _providers

CORES = str(len(os.sched_getaffinity(0)))
SPINNING = "session.intra_op.allow_spinning"


def names(*arguments: Any) -> list[tuple[str, dict[str, str]]]:
    return [(choice.provider.name, dict(choice.options)) for choice in _providers.choose(*arguments)]


def test_cpu_is_always_last() -> None:
    cpu: tuple[str, dict[str, str]] = ("CPUExecutionProvider", {})
    assert names(None) == names([]) == names(["CPU"]) == names(["CPUExecutionProvider"]) == [cpu]
    xnnpack = ("XnnpackExecutionProvider", {"intra_op_num_threads": "2"})
    for spelling in ("XNNPACK", "xnnpack", "XnnpackExecutionProvider"):
        assert names([(spelling, {"intra_op_num_threads": 2}), "CPU"]) == [xnnpack, cpu]
        assert names([spelling], [{"intra_op_num_threads": 2}]) == [xnnpack, cpu]
    assert names(["ACL"])[0][0] == "ACLExecutionProvider"


@pytest.mark.parametrize(
    ("providers", "options", "message"),
    [
        (
            ["xnpack"],
            None,
            'unknown provider "xnpack"; did you mean "xnnpack"? Known: xnnpack, acl, vsinpu, rknpu, cpu',
        ),
        (["CPU", "XNNPACK"], None, "comes after the CPU provider and would never be used"),
        (["XNNPACK", "xnnpack"], None, "XnnpackExecutionProvider is named twice"),
        (["XNNPACK"], [{}, {}], "1 providers and 2 provider_options"),
        ("XNNPACK", None, "providers is a list"),
        ([("XNNPACK", {"threads": 2})], None, 'has no option "threads"; it has: intra_op_num_threads'),
        ([("XNNPACK", {"intra_op_num_threads": "many"})], None, "is a whole number, not 'many'"),
        ([("CPU", {"use_arena": 1})], None, 'has no option "use_arena"; it has: none'),
    ],
)
def test_wrong_choices(providers: Any, options: Any, message: str) -> None:
    with pytest.raises(ort.OrtError) as caught:
        _providers.choose(providers, options)
    assert message in caught.value.message
    assert caught.value.code is ort.OrtErrorCode.INVALID_ARGUMENT


def plan(options: ort.SessionOptions, *providers: Any) -> tuple[dict[str, Any], str]:
    settings, choices = _providers.with_thread_defaults(options, _providers.choose(providers))
    return settings, dict(choices[0].options).get("intra_op_num_threads", "")


def test_threads_go_to_xnnpack() -> None:
    options = ort.SessionOptions()
    quiet = {"intra_op_num_threads": 1, SPINNING: "0"}
    assert plan(options, "XNNPACK") == (quiet, CORES)
    assert plan(options, ("XNNPACK", {"intra_op_num_threads": 3})) == (quiet, "3")
    assert plan(options, "CPU") == plan(options, "ACL") == ({}, "")


def test_threads_stay_with_the_session_where_acl_is_asked_first() -> None:
    options = ort.SessionOptions()
    for _ in range(2):
        settings, choices = _providers.with_thread_defaults(options, _providers.choose(["ACL", "XNNPACK"]))
        assert settings == {SPINNING: "0"}
        assert [dict(choice.options) for choice in choices] == [{}, {"intra_op_num_threads": "1"}, {}]
        options.intra_op_num_threads = 4


def test_what_the_user_set_stands() -> None:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 4
    options.add_session_config_entry(SPINNING, "1")
    assert plan(options, "XNNPACK") == ({}, "4")
    assert plan(options, ("XNNPACK", {"intra_op_num_threads": 2})) == ({}, "2")
    options = ort.SessionOptions()
    options.intra_op_num_threads = 0
    assert plan(options, "XNNPACK") == ({SPINNING: "0"}, CORES)


def test_calls_for_xnnpack(adder: bytes, library: ort.Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """The calls themselves, since PyPI's library has no XNNPACK."""
    calls: list[Any] = []

    def record(function: str) -> None:
        def call(native: int, *rest: Any) -> None:
            calls.append((function, *(list(r) if isinstance(r, ctypes.Array) else r for r in rest)))

        monkeypatch.setattr(library.api, function, call, raising=False)

    for function in ("SetIntraOpNumThreads", "AddSessionConfigEntry", "SessionOptionsAppendExecutionProvider"):
        record(function)
    session = ort.InferenceSession(adder, providers=[("XNNPACK", {"intra_op_num_threads": 2}), "CPU"], library=library)
    assert calls[1:] == [
        ("SetIntraOpNumThreads", 1),
        ("AddSessionConfigEntry", SPINNING.encode(), b"0"),
        ("SessionOptionsAppendExecutionProvider", b"XNNPACK", [b"intra_op_num_threads"], [b"2"], 1),
    ]
    assert session.get_providers() == ["XnnpackExecutionProvider", "CPUExecutionProvider"]


def test_a_provider_that_was_not_built_is_an_error(adder: bytes, library: ort.Library) -> None:
    with pytest.raises(ort.OrtError, match=r"XNNPACK .*not supported in this build.*in this library:.*CPU"):
        ort.InferenceSession(adder, providers=["XNNPACK"], library=library)
    with pytest.raises(ort.OrtError, match="does not export OrtSessionOptionsAppendExecutionProvider_ACL") as caught:
        ort.InferenceSession(adder, providers=["ACL"], library=library)
    assert caught.value.code is ort.OrtErrorCode.NOT_IMPLEMENTED


@pytest.mark.parametrize(("text", "flag"), [("true", True), ("1", True), (True, True), ("OFF", False), (None, False)])
def test_calls_for_acl(library: ort.Library, monkeypatch: pytest.MonkeyPatch, text: Any, flag: bool) -> None:
    calls = []

    def append(native: int, fast_math: bool) -> Any:
        calls.append((native, fast_math))
        return None

    class Native:
        OrtSessionOptionsAppendExecutionProvider_ACL = ctypes.CFUNCTYPE(
            ctypes.c_void_p, ctypes.c_void_p, ctypes.c_bool
        )(append)

    monkeypatch.setattr(library, "native", Native)
    options = {} if text is None else {"enable_fast_math": text}
    chosen = _providers.choose([("ACL", options)])
    _providers.configure(library, 5, ort.SessionOptions(), chosen)
    assert calls == [(5, flag)]


@pytest.mark.parametrize(("provider", "symbol"), [("vsinpu", "VSINPU"), ("RknpuExecutionProvider", "Rknpu")])
def test_calls_for_npus(library: ort.Library, monkeypatch: pytest.MonkeyPatch, provider: str, symbol: str) -> None:
    calls = []

    def append(native: int) -> Any:
        calls.append(native)
        return None

    function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(append)
    native = type("Native", (), {f"OrtSessionOptionsAppendExecutionProvider_{symbol}": function})
    monkeypatch.setattr(library, "native", native)
    _providers.configure(library, 5, ort.SessionOptions(), _providers.choose([provider]))
    assert calls == [5]


def test_acl_options_are_read(library: ort.Library, monkeypatch: pytest.MonkeyPatch) -> None:
    class Native:
        @staticmethod
        def OrtSessionOptionsAppendExecutionProvider_ACL(*_: Any) -> None:
            raise AssertionError

    monkeypatch.setattr(library, "native", Native)
    chosen = _providers.choose([("ACL", {"enable_fast_math": "maybe"})])
    with pytest.raises(ort.OrtError, match="enable_fast_math is true or false, not 'maybe'"):
        _providers.configure(library, 5, ort.SessionOptions(), chosen)


def test_whatever_else_the_library_reports_is_a_provider_too(adder: bytes) -> None:
    reported = ["CUDAExecutionProvider", "AzureExecutionProvider", "CPUExecutionProvider"]
    cuda = ("CUDAExecutionProvider", {"device_id": "1"})
    assert names([("cuda", {"device_id": 1})], None, reported)[0] == cuda
    with pytest.raises(ort.OrtError, match='unknown provider "cuba"; did you mean "cuda"'):
        _providers.choose(["cuba"], None, reported)
    assert "AzureExecutionProvider" in ort.get_available_providers()
    with ort.InferenceSession(adder, providers=["azure", "cpu"]) as session:
        assert session.get_providers() == ["AzureExecutionProvider", "CPUExecutionProvider"]
        assert session.run(None, {"x": [[1, 2, 3]], "y": [[1, 2, 3]]})[0].tolist() == [[2, 4, 6]]


class NoProviders:
    """Stands in for the C API: notes calls in order."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def pointer(self, name: str) -> int:
        self.calls.append(name)
        return 7

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> None:
            told = [[*a] if isinstance(a, ctypes.Array) else a for a in arguments]
            self.calls.append((name, *told))

        return call


@pytest.mark.parametrize(
    ("name", "options", "calls"),
    [
        (
            "CUDAExecutionProvider",
            {"device_id": "1"},
            [
                "CreateCUDAProviderOptions",
                ("UpdateCUDAProviderOptions", 7, [b"device_id"], [b"1"], 1),
                ("SessionOptionsAppendExecutionProvider_CUDA_V2", 1, 7),
                ("ReleaseCUDAProviderOptions", 7),
            ],
        ),
        (
            "TensorrtExecutionProvider",
            {},
            [
                "CreateTensorRTProviderOptions",
                ("SessionOptionsAppendExecutionProvider_TensorRT_V2", 1, 7),
                ("ReleaseTensorRTProviderOptions", 7),
            ],
        ),
        (
            "CoreMLExecutionProvider",
            {"ModelFormat": "MLProgram"},
            [("SessionOptionsAppendExecutionProvider", 1, b"CoreML", [b"ModelFormat"], [b"MLProgram"], 1)],
        ),
    ],
)
def test_how_the_others_are_appended(name: str, options: dict[str, str], calls: list[Any]) -> None:
    api = NoProviders()
    library: Any = type("FakeLibrary", (), {"api": api, "native": object()})()
    _elsewhere.append_to(name)(library, 1, options)
    assert api.calls == calls
    with pytest.raises(ort.OrtError, match="does not export OrtSessionOptionsAppendExecutionProvider_Nnapi"):
        _elsewhere.append_to("NnapiExecutionProvider")(library, 1, {})
