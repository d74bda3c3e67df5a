"""Loading, describing, running and releasing a model."""

from __future__ import annotations

import contextlib
import gc
import mmap
import os
import resource
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from armlet_runtime import ort

ONES = np.ones((1, 3), np.float32)
FEED = {"x": ONES, "y": ONES}


@pytest.mark.parametrize("form", ["str", "path", "bytes", "bytearray", "memoryview", "mmap"])
def test_models_from_files_and_buffers(adder: bytes, tmp_path: Path, form: str) -> None:
    path = tmp_path / "ädder.onnx"
    path.write_bytes(adder)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        forms = {
            "str": str(path),
            "path": path,
            "bytes": adder,
            "bytearray": bytearray(adder),
            "memoryview": memoryview(adder),
            "mmap": mapped,
        }
        session = ort.InferenceSession(forms[form])
    # The mapping is gone: an ONNX model was copied out of it.
    assert session.run(None, FEED)[0].tolist() == [[2, 2, 2]]


def test_an_ort_format_model_is_used_in_place(adder: bytes, tmp_path: Path) -> None:
    path = tmp_path / "adder.ort"
    saving = ort.SessionOptions()
    saving.optimized_model_filepath = str(path)
    ort.InferenceSession(adder, saving).close()
    in_place = ort.SessionOptions()
    in_place.add_session_config_entry("session.use_ort_model_bytes_directly", "1")
    in_place.add_session_config_entry("session.use_ort_model_bytes_for_initializers", "1")
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    session = ort.InferenceSession(mapped, in_place)
    with pytest.raises(BufferError):
        mapped.close()
    assert session.run(None, FEED)[0].tolist() == [[2, 2, 2]]
    session.close()
    mapped.close()

    copied = mmap.mmap(-1, path.stat().st_size)
    copied.write(path.read_bytes())
    session = ort.InferenceSession(copied)
    copied.close()
    assert session.run(None, FEED)[0].tolist() == [[2, 2, 2]]


@pytest.mark.parametrize(
    ("model", "code"),
    [
        ("/no/such/model.onnx", "NO_SUCHFILE"),
        ("/no/such\0/model.onnx", "INVALID_ARGUMENT"),
        (b"not a model", "INVALID_PROTOBUF"),
        (b"", "INVALID_ARGUMENT"),
        (3, "INVALID_ARGUMENT"),
    ],
    ids=str,
)
def test_models_that_do_not_load(model: Any, code: str) -> None:
    with pytest.raises(ort.OrtError) as caught:
        ort.InferenceSession(model)
    assert caught.value.code is ort.OrtErrorCode[code]


def test_an_operator_nobody_has(build: Any, official: Any) -> None:
    model = build("Nonsense", [("x", "FLOAT", [1])], [("y", "FLOAT", [1])])
    with pytest.raises(ort.OrtError, match="Nonsense") as caught:
        ort.InferenceSession(model)
    with pytest.raises(official.capi.onnxruntime_pybind11_state.InvalidGraph) as expected:
        official.InferenceSession(model, providers=["CPUExecutionProvider"])
    assert caught.value.code is ort.OrtErrorCode.INVALID_GRAPH
    assert caught.value.message in str(expected.value)


def test_description_matches_the_official_one(build: Any, official: Any) -> None:
    shape = ["batch", None, 3]
    weights = onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [3], [1, 2, 3])
    model = build.graph(
        [onnx.helper.make_node("Add", ["x", "w"], ["y"]), onnx.helper.make_node("Shape", ["u"], ["z"])],
        [build.info(v) for v in [("x", "FLOAT", shape), ("u", "INT64", None), ("w", "FLOAT", [3])]],
        [build.info(v) for v in [("y", "FLOAT", shape), ("z", "INT64", [None])]],
        initializer=[weights],
    )
    mine = ort.InferenceSession(model)
    theirs = official.InferenceSession(model, providers=["CPUExecutionProvider"])
    for what in ("get_inputs", "get_outputs", "get_overridable_initializers"):
        assert [(a.name, a.type, a.shape) for a in getattr(mine, what)()] == [
            (a.name, a.type, a.shape) for a in getattr(theirs, what)()
        ]
    assert mine.get_inputs()[0].shape == shape
    assert mine.get_providers() == theirs.get_providers() == ["CPUExecutionProvider"]
    x = np.zeros((1, 1, 3), np.float32)
    replaced = {"x": x, "u": np.zeros(4, np.int64), "w": np.array([7, 8, 9], np.float32)}
    assert mine.run(["y"], replaced)[0].tolist() == theirs.run(["y"], replaced)[0].tolist() == [[[7, 8, 9]]]

    meta, wanted = mine.get_modelmeta(), theirs.get_modelmeta()
    for name in ("producer_name", "graph_name", "graph_description", "domain", "description", "version"):
        assert getattr(meta, name) == getattr(wanted, name)
    assert meta.custom_metadata_map == wanted.custom_metadata_map == {"labels": "cat,dog", "käse": "ja"}


def test_options_reach_the_session(adder: bytes, build: Any, tmp_path: Path) -> None:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.execution_mode = ort.ExecutionMode.ORT_PARALLEL
    options.enable_mem_pattern = False
    options.enable_cpu_mem_arena = False
    options.use_deterministic_compute = True
    options.log_severity_level = 3
    options.log_verbosity_level = 0
    options.logid = "test"
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_free_dimension_override_by_name("n", 2)
    session = ort.InferenceSession(adder, options)
    assert session.get_inputs()[0].shape == [2, 3]
    assert (tmp_path / "optimised.onnx").stat().st_size > 0
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"


def test_options_are_checked(adder: bytes) -> None:
    options = ort.SessionOptions()
    with pytest.raises(AttributeError):
        options.intra_op_threads = 1
    with pytest.raises(ort.OrtError, match='no entry "a"'):
        options.get_session_config_entry("a")
    for key, value in (("", "v"), ("k" * 1025, "v"), ("k", "v" * 2049)):
        with pytest.raises(ort.OrtError):
            options.add_session_config_entry(key, value)
    options.graph_optimization_level = 77  # type: ignore[assignment]
    with pytest.raises(ort.OrtError, match="graph_optimization_level"):
        ort.InferenceSession(adder, options)


def test_defaults_match_the_official_ones(official: Any) -> None:
    mine, theirs = ort.SessionOptions(), official.SessionOptions()
    for name in ort.SessionOptions.__slots__:
        if not name.startswith("_"):
            assert int_or_same(getattr(mine, name)) == int_or_same(getattr(theirs, name)), name


def test_a_closed_session_says_so(adder: bytes) -> None:
    with ort.InferenceSession(adder) as session:
        pass
    session.close()
    for call in (lambda: session.run(None, FEED), session.end_profiling, session.get_modelmeta):
        with pytest.raises(ort.OrtError, match="this session is closed"):
            call()


def test_a_dropped_session_is_released(adder: bytes, library: ort.Library, monkeypatch: pytest.MonkeyPatch) -> None:
    released = []
    real = library.api.ReleaseSession

    def release(pointer: int) -> None:
        released.append(pointer)
        real(pointer)

    monkeypatch.setattr(library.api, "ReleaseSession", release)
    session = ort.InferenceSession(adder, library=library)
    watch = weakref.ref(session)
    del session
    gc.collect()
    assert watch() is None
    assert len(released) == 1


def test_closing_waits_for_runs_under_way(slow: bytes) -> None:
    session = ort.InferenceSession(slow)
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(session.run, None, SLOW_FEED) for _ in range(4)]
        time.sleep(0.05)
        session.close()
        for run in runs:
            # Either it was in before the close and ended well, or it came too late.
            error = run.exception()
            assert error is None or "this session is closed" in str(error)
        assert any(run.exception() is None for run in runs)


def test_threads_share_a_session(adder: bytes, official: Any) -> None:
    session = ort.InferenceSession(adder)

    def work(seed: int) -> bool:
        rng = np.random.default_rng(seed)
        for _ in range(100):
            x, y = (rng.random((5, 3), np.float32) for _ in range(2))
            if not np.array_equal(session.run(None, {"x": x, "y": y})[0], x + y):
                return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def test_a_run_lets_other_threads_go_on(slow: bytes) -> None:
    session = ort.InferenceSession(slow)
    ticks = 0
    done = threading.Event()

    def run() -> None:
        session.run(None, SLOW_FEED)
        done.set()

    thread = threading.Thread(target=run)
    thread.start()
    while not done.is_set():
        ticks += 1
        time.sleep(0.001)
    thread.join()
    assert ticks > 5


def test_terminate_ends_a_run(slow: bytes) -> None:
    session = ort.InferenceSession(slow)
    options = ort.RunOptions()
    options.logid = "tagged"
    timer = threading.Timer(0.05, setattr, (options, "terminate", True))
    timer.start()

    def until_terminated() -> None:
        for _ in range(200):
            session.run(None, SLOW_FEED, options)

    with pytest.raises(ort.OrtError, match="terminate"):
        until_terminated()
    timer.join()
    options.terminate = False
    assert not options.terminate
    session.run(None, SLOW_FEED, options)


def test_run_options_are_set_once(session: ort.InferenceSession, capfd: pytest.CaptureFixture[str]) -> None:
    options = ort.RunOptions()
    options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    session.run(None, FEED, options)
    options.add_run_config_entry("armlet.test", "1")
    session.run(None, FEED, options)
    # ONNX Runtime would warn of a key that is set again.
    assert capfd.readouterr().err == ""


def test_no_leak_over_ten_thousand_runs(adder: bytes) -> None:
    session = ort.InferenceSession(adder)
    x = np.ones((40, 3), np.float32)
    good, wrong = {"x": x, "y": x}, {"x": x, "y": x[0]}
    options = ort.RunOptions()

    def work() -> None:
        session.run(None, good, options)
        with contextlib.suppress(ort.OrtError):
            session.run(None, wrong)

    # One OrtValue, OrtStatus or array per run would be 100 kB or more in each round.
    assert least_growth(work, times=2_000) < 50_000


def test_no_leak_of_sessions(adder: bytes, library: ort.Library) -> None:
    def work() -> None:
        with ort.InferenceSession(adder, library=library) as session:
            session.run(None, FEED)

    assert least_growth(work, times=30) < 200_000


def test_no_leak_of_strings(build: Any) -> None:
    session = ort.InferenceSession(build("Identity", [("x", "STRING", ["n"])], [("y", "STRING", ["n"])]))
    words = ["a word longer than what std::string keeps in place"] * 10
    assert least_growth(lambda: session.run(None, {"x": words}), times=500) < 100_000


def least_growth(work: Callable[[], object], times: int) -> int:
    """Bytes by which this process grew in the best of five rounds: a leak grows in all, an allocator in some."""
    growths = []
    for _ in range(5):
        before = resident()
        for _ in range(times):
            work()
        growths.append(resident() - before)
    return min(growths)


EXITS = {
    "open session": "",
    "closed session": "s.close()",
    "cycle": "s.me = s",
    "module attribute": "import builtins; builtins.s = s; del s",
    "daemon thread inside a run": """
import contextlib, threading, time
def work():
    # Once the exit has closed the session, a run says so.
    with contextlib.suppress(ort.OrtError):
        while True:
            s.run(None, feed)
threading.Thread(target=work, daemon=True).start()
time.sleep(0.05)
""",
    "forked child": """
pid = os.fork()
if pid:
    assert os.waitpid(pid, 0)[1] == 0
""",
}


@pytest.mark.parametrize("how", EXITS)
def test_interpreter_exit(adder: bytes, library: ort.Library, tmp_path: Path, how: str) -> None:
    model = tmp_path / "m.onnx"
    model.write_bytes(adder)
    script = f"""
import os
from armlet_runtime import ort
s = ort.InferenceSession({str(model)!r}, library={library.path!r})
feed = {{"x": [[1, 2, 3]], "y": [[1, 2, 3]]}}
s.run(None, feed)
b = s.io_binding()
b.bind_cpu_input("x", ort.Tensor.from_list([[1, 2, 3]], "float32"))
{EXITS[how]}
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    # CPython itself warns of forking with threads; anything else on stderr is a fault at shutdown.
    lines = [line for line in done.stderr.splitlines() if "fork" not in line]
    assert (done.returncode, lines) == (0, [])


SLOW_FEED = {"x": np.ones((400, 400), np.float32)}


@pytest.fixture(scope="module")
def slow(build: Any) -> bytes:
    """Twenty matrix products in a row: long enough to act in the middle of, with a check between nodes."""
    helper = onnx.helper
    count = 20
    nodes = [helper.make_node("MatMul", [f"x{i}" if i else "x", "x"], [f"x{i + 1}"]) for i in range(count)]
    shape = [400, 400]
    return bytes(build.graph(nodes, [build.info(("x", "FLOAT", shape))], [build.info((f"x{count}", "FLOAT", shape))]))


def resident() -> int:
    """Resident bytes of this process."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def int_or_same(value: Any) -> Any:
    return int(value) if not isinstance(value, str) else value
