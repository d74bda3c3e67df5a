"""Without NumPy: plain buffers and lists go in, ``Tensor`` comes out."""

from __future__ import annotations

import array
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from armlet_runtime import ort

pytestmark = pytest.mark.usefixtures("no_numpy")

# Element type, NumPy's name, values, format of the view.
TYPES = [
    ("FLOAT", "float32", [1.5, -2.0, math.inf], "f"),
    ("DOUBLE", "float64", [0.1, -2.0, 1e300], "d"),
    ("FLOAT16", "float16", [0.5, -2.0, 65504.0], "H"),
    ("INT8", "int8", [-128, 0, 127], "b"),
    ("UINT8", "uint8", [0, 1, 255], "B"),
    ("INT16", "int16", [-32768, 0, 32767], "h"),
    ("UINT16", "uint16", [0, 1, 65535], "H"),
    ("INT32", "int32", [-(2**31), 0, 2**31 - 1], "i"),
    ("UINT32", "uint32", [0, 1, 2**32 - 1], "I"),
    ("INT64", "int64", [-(2**63), 0, 2**63 - 1], "q"),
    ("UINT64", "uint64", [0, 1, 2**64 - 1], "Q"),
    ("BOOL", "bool", [True, False, True], "?"),
    ("BFLOAT16", "bfloat16", [0x3F80, 0, 0xFFFF], "H"),
    ("STRING", "string", ["a", "", "猫"], None),
]


def identity(build: Any, element: str, shape: list[Any]) -> ort.InferenceSession:
    return ort.InferenceSession(build("Identity", [("x", element, shape)], [("y", element, shape)]))


@pytest.mark.parametrize(("element", "dtype", "values", "view"), TYPES, ids=[t[0] for t in TYPES])
def test_each_type(build: Any, element: str, dtype: str, values: list[Any], view: str | None) -> None:
    with identity(build, element, ["n", "m"]) as session:
        for value in ([values], ort.Tensor.from_list([values], dtype)):
            (result,) = session.run(None, {"x": value})
            assert isinstance(result, ort.Tensor)
            assert (result.dtype, result.shape, result.tolist()) == (dtype, (1, 3), [values])
            if view is not None:
                assert (result.memoryview.format, result.memoryview.shape) == (view, (1, 3))
                assert result.tobytes() == ort.Tensor.from_list(values, dtype).tobytes()
    with identity(build, element, []) as session:
        (result,) = session.run(None, {"x": values[0]})
        assert (result.shape, result.tolist()) == ((), values[0])
    with identity(build, element, [2, 0]) as session:
        (result,) = session.run(None, {"x": [[], []]})
        assert (result.shape, result.tolist()) == ((2, 0), [[], []])


def test_buffers(build: Any) -> None:
    with identity(build, "FLOAT", ["n"]) as session:
        for value in (array.array("f", [1, 2]), memoryview(array.array("f", [1, 9, 2]))[::2]):
            assert session.run(None, {"x": value})[0].tolist() == [1, 2]
        with pytest.raises(ort.OrtError, match=r"tensor\(double\) given, tensor\(float\) wanted"):
            session.run(None, {"x": array.array("d", [1, 2])})
    with identity(build, "UINT8", ["n"]) as session:
        assert session.run(None, {"x": b"ab"})[0].tobytes() == b"ab"


def test_a_view_of_a_result_is_typed(build: Any) -> None:
    with identity(build, "INT64", [2, 2]) as session:
        (result,) = session.run(None, {"x": [[1, 2], [3, 4]]})
    assert result.memoryview[1, 0] == 3
    assert repr(result) == "Tensor(dtype='int64', shape=(2, 2))"


@pytest.mark.parametrize(
    ("data", "dtype", "shape", "message"),
    [
        (bytes(8), "float32", (3,), r"shape \[3\] of float32 takes 12 bytes, 8 given"),
        (bytes(8), "float33", (2,), 'unknown element type "float33"; known: float32'),
        (bytes(4), "int8", (-2, -2), r"shape \[-2, -2\]"),
        (["a"], "string", (2,), r"shape \[2\] of string takes 2 strings, 1 given"),
        ([1.0], "float32", (1,), "list is not a buffer; use Tensor.from_list"),
        (memoryview(bytes(8))[::2], "int8", (4,), "not C-contiguous"),
    ],
)
def test_tensors_that_do_not_fit(data: Any, dtype: str, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(ort.OrtError, match=message):
        ort.Tensor(data, dtype, shape)


def test_strings_have_no_bytes() -> None:
    with pytest.raises(ort.OrtError, match="use tolist"):
        ort.Tensor.from_list(["a"], "string").tobytes()


def test_numpy_is_never_imported(adder: bytes, library: ort.Library, tmp_path: Path) -> None:
    """A fresh interpreter in which ``import numpy`` fails, as on a target without it."""
    model = tmp_path / "m.onnx"
    model.write_bytes(adder)
    script = f"""
import sys
sys.modules["numpy"] = None
from armlet_runtime import ort
session = ort.InferenceSession({str(model)!r}, library={library.path!r})
(z,) = session.run(None, {{"x": [[1, 2, 3]], "y": [[1, 2, 3]]}})
print(type(z).__name__, z.tolist())
"""
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{script}"],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("Tensor [[2.0, 4.0, 6.0]]\n", "")
