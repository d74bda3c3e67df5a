"""Whether two tensors are the same, as far as a payload asks for it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from armlet_runtime import ort
from armlet_runtime.serve.golden import TrialError, difference, tensor_of, zeros


def of(values: Any, dtype: str = "float32") -> ort.Tensor:
    return ort.Tensor.from_list(values, dtype)


@pytest.mark.parametrize(
    ("got", "wanted", "dtype"),
    [
        ([1.0, 2.0], [1.001, 2.0], "float32"),
        ([math.nan, math.inf, -math.inf], [math.nan, math.inf, -math.inf], "float32"),
        ([1, 2], [1, 2], "int64"),
        ([True], [True], "bool"),
        ([0x3F80], [0x3F81], "bfloat16"),
        (["a", "猫"], ["a", "猫"], "string"),
        ([], [], "float32"),
    ],
)
def test_close_enough(got: Any, wanted: Any, dtype: str) -> None:
    assert difference(of(got, dtype), of(wanted, dtype), 0.01, 0.001) == ""


@pytest.mark.parametrize(
    ("got", "wanted", "dtype", "told"),
    [
        ([[1.0, 2.0], [3.0, 4.5]], [[1.0, 2.0], [3.0, 4.0]], "float32", "4.5 at [1, 1], 4.0 wanted within 0.01"),
        ([math.nan], [0.0], "float32", "nan at [0]"),
        ([0.0], [math.nan], "float32", "nan wanted"),
        ([math.inf], [1e38], "float32", "inf at [0]"),
        ([1e38], [-math.inf], "float32", "-inf wanted"),
        ([3], [4], "int64", "3 at [0], 4 wanted"),
        ([0x3F80], [0x4000], "bfloat16", "1.0 at [0], 2.0 wanted"),
        (["a"], ["b"], "string", "b'a' at [0]"),
        ([1.0], [[1.0]], "float32", "it is float32[1], float32[1, 1] wanted"),
    ],
)
def test_not_close_enough(got: Any, wanted: Any, dtype: str, told: str) -> None:
    assert told in difference(of(got, dtype), of(wanted, dtype), 0.01, 0.001)


@pytest.mark.parametrize("dtype", ["float", "double", "float16", "int8", "bool", "string"])
def test_zeros(dtype: str) -> None:
    tensor = zeros(dtype, (2, "n", ""))
    assert (tensor.element.name, tensor.shape) == (dtype, (2, 1, 1))


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"file": "none", "dtype": "float", "shape": [1]}, "No such file"),
        ({"file": "x", "dtype": "float", "shape": [1]}, "takes 4 bytes, 9 given"),
        ({"file": "x", "dtype": "quark", "shape": [9]}, "quark"),
        ({"file": "x", "dtype": "string", "shape": [3]}, "9 bytes are not 3 strings"),
        ({"file": "x", "dtype": "int8"}, "shape"),
    ],
)
def test_files_that_are_no_tensors(tmp_path: Path, entry: dict[str, Any], told: str) -> None:
    (tmp_path / "x").write_bytes(b"\1\0\0\0a\0\0\0\0")
    assert tensor_of(tmp_path, {"file": "x", "dtype": "int8", "shape": [9]}).tolist()[:2] == [1, 0]
    with pytest.raises(TrialError, match=told):
        tensor_of(tmp_path, entry)
