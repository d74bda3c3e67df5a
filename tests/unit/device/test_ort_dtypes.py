"""Every element type goes in and comes out as with the official package."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from armlet_runtime import ort

NUMBERS = {
    "FLOAT": "float32",
    "DOUBLE": "float64",
    "FLOAT16": "float16",
    "INT8": "int8",
    "UINT8": "uint8",
    "INT16": "int16",
    "UINT16": "uint16",
    "INT32": "int32",
    "UINT32": "uint32",
    "INT64": "int64",
    "UINT64": "uint64",
    "BOOL": "bool",
}
# Types that NumPy lacks travel as their bits.
BITS = {"BFLOAT16": "uint16", "FLOAT8E4M3FN": "uint8", "FLOAT8E5M2": "uint8"}
SHAPES = [(), (1,), (2, 3), (0,), (2, 0, 3)]


def both(model: bytes, official: Any, feed: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    with ort.InferenceSession(model) as mine:
        theirs = official.InferenceSession(model, providers=["CPUExecutionProvider"])
        return mine.run(None, feed), theirs.run(None, feed)


def same(mine: Any, theirs: Any) -> None:
    assert type(mine) is type(theirs)
    assert mine.dtype == theirs.dtype
    assert mine.shape == theirs.shape
    np.testing.assert_array_equal(mine, theirs)


def sample(dtype: str, shape: tuple[int, ...]) -> Any:
    """Values that use the whole width of the type."""
    raw = np.random.default_rng(7).bytes(int(np.prod(shape)) * np.dtype(dtype).itemsize)
    if dtype == "bool":
        return (np.frombuffer(raw, "uint8") % 2 == 1).reshape(shape)
    array = np.frombuffer(raw, dtype).reshape(shape)
    return np.asarray(np.nan_to_num(array)) if array.dtype.kind == "f" else array


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("element", NUMBERS)
def test_identity(build: Any, official: Any, element: str, shape: tuple[int, ...]) -> None:
    model = build("Identity", [("x", element, list(shape))], [("y", element, list(shape))])
    value = sample(NUMBERS[element], shape)
    (mine,), (theirs,) = both(model, official, {"x": value})
    same(mine, theirs)
    same(mine, np.asarray(value))


@pytest.mark.parametrize("element", NUMBERS)
def test_cast_from_float(build: Any, official: Any, element: str) -> None:
    model = build("Cast", [("x", "FLOAT", [3])], [("y", element, [3])], to=type_number(element))
    (mine,), (theirs,) = both(model, official, {"x": np.array([0, 1.5, 100], np.float32)})
    same(mine, theirs)


@pytest.mark.parametrize("element", ["FLOAT", "DOUBLE", "INT32", "INT64", "INT8", "UINT8"])
def test_arithmetic(build: Any, official: Any, element: str) -> None:
    model = build("Add", [("x", element, ["n"]), ("y", element, ["n"])], [("z", element, ["n"])])
    x = np.arange(5).astype(NUMBERS[element])
    (mine,), (theirs,) = both(model, official, {"x": x, "y": x})
    same(mine, theirs)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("element", BITS)
def test_bits_survive(build: Any, element: str, shape: tuple[int, ...]) -> None:
    model = build("Identity", [("x", element, list(shape))], [("y", element, list(shape))])
    value = sample(BITS[element], shape)
    with ort.InferenceSession(model) as session:
        same(session.run(None, {"x": value})[0], np.asarray(value))
        same(session.run(None, {"x": ort.Tensor(value, element.lower(), shape)})[0], np.asarray(value))


def test_bfloat16_is_the_upper_half_of_a_float(build: Any) -> None:
    model = build("Cast", [("x", "FLOAT", [2])], [("y", "BFLOAT16", [2])], to=type_number("BFLOAT16"))
    with ort.InferenceSession(model) as session:
        (bits,) = session.run(None, {"x": np.array([1, -2], np.float32)})
    assert bits.tolist() == [0x3F80, 0xC000]


STRINGS = ["", "plain", "grüße 猫 🦊", "nul\0inside\0", " x "]


@pytest.mark.parametrize("dtype", [object, str, None], ids=str)
def test_strings(build: Any, official: Any, dtype: Any) -> None:
    model = build("Identity", [("x", "STRING", ["n"])], [("y", "STRING", ["n"])])
    # Of NumPy's fixed-width strings the official package drops what follows a NUL.
    texts = [text for text in STRINGS if dtype is not str or "\0" not in text]
    value = texts if dtype is None else np.array(texts, dtype)
    (mine,), (theirs,) = both(model, official, {"x": value})
    same(mine, theirs)
    assert mine.tolist() == texts


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_string_shapes(build: Any, official: Any, shape: tuple[int, ...]) -> None:
    model = build("Identity", [("x", "STRING", list(shape))], [("y", "STRING", list(shape))])
    value = np.full(shape, "é", object)
    (mine,), (theirs,) = both(model, official, {"x": value})
    same(mine, theirs)


def test_string_bytes(build: Any) -> None:
    model = build("Identity", [("x", "STRING", ["n"])], [("y", "STRING", ["n"])])
    with ort.InferenceSession(model) as session:
        (mine,) = session.run(None, {"x": [b"ab", b"\xff\xfe"]})
        assert mine.tolist() == ["ab", "\udcff\udcfe"]
        (again,) = session.run(None, {"x": mine})
        assert again.tolist() == mine.tolist()
        assert session.run(None, {"x": np.array([b"s", b""])})[0].tolist() == ["s", ""]


def test_one_string_is_a_scalar(build: Any) -> None:
    model = build("Identity", [("x", "STRING", [])], [("y", "STRING", [])])
    with ort.InferenceSession(model) as session:
        assert session.run(None, {"x": "alone"})[0].item() == "alone"
        assert session.run(None, {"x": b"alone"})[0].item() == "alone"


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.arange(12, dtype=np.float32).reshape(4, 3)[::2],
        lambda: np.arange(6, dtype=np.float32).reshape(3, 2).T,
        lambda: np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
        lambda: np.broadcast_to(np.float32(3), (2, 3)),
        lambda: read_only(np.ones((2, 3), np.float32)),
    ],
    ids=["strided", "transposed", "fortran", "broadcast", "read-only"],
)
def test_layouts(build: Any, official: Any, make: Any) -> None:
    model = build("Identity", [("x", "FLOAT", [2, 3])], [("y", "FLOAT", [2, 3])])
    (mine,), (theirs,) = both(model, official, {"x": make()})
    same(mine, theirs)


def test_lists_take_the_type_of_the_model(build: Any) -> None:
    model = build("Identity", [("x", "FLOAT16", [2, 2])], [("y", "FLOAT16", [2, 2])])
    with ort.InferenceSession(model) as session:
        (mine,) = session.run(None, {"x": [[1, 2.5], (np.float32(3), -4)]})
    same(mine, np.array([[1, 2.5], [3, -4]], np.float16))


def test_a_result_is_the_callers(session: ort.InferenceSession) -> None:
    feed = {"x": np.ones((2, 3), np.float32), "y": np.ones((2, 3), np.float32)}
    (first,) = session.run(None, feed)
    first += 40
    (second,) = session.run(None, feed)
    session.close()
    assert first.tolist() == [[42, 42, 42]] * 2
    assert second.tolist() == [[2, 2, 2]] * 2


def read_only(array: Any) -> Any:
    array.flags.writeable = False
    return array


def type_number(element: str) -> int:
    return int(getattr(onnx.TensorProto, element))
