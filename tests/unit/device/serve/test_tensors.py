"""Bodies of inferences: both forms of every type, what is refused, and how much memory hostile ones take."""

from __future__ import annotations

import contextlib
import json
import math
import struct
import tracemalloc
from typing import Any

import pytest
from armlet_runtime.ort import Tensor
from armlet_runtime.serve import datatypes, tensors
from armlet_runtime.serve.http_message import HttpError
from armlet_runtime.serve.interface import Answer
from armlet_runtime.serve.limits import Limits
from hypothesis import given
from hypothesis import strategies as st

LIMITS = Limits()
NUMBERS: dict[str, st.SearchStrategy[Any]] = {
    "BOOL": st.booleans(),
    **{f"INT{bits}": st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"UINT{bits}": st.integers(0, (1 << bits) - 1) for bits in (8, 16, 32, 64)},
    **{f"FP{bits}": st.floats(allow_nan=False, allow_infinity=False, width=bits) for bits in (16, 32, 64)},
    "BF16": st.floats(allow_nan=False, allow_infinity=False, width=16).map(lambda value: math.ldexp(round(value), 3)),
    "BYTES": st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
}


def read(content: Any, binary: bytes = b"", length: str | None = None) -> tensors.InferBody:
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    header = length if length is not None else (str(len(raw)) if binary else None)
    return tensors.read_request(memoryview(bytearray(raw + binary)), header, LIMITS)


def one(datatype: str, shape: Any, data: Any) -> dict[str, Any]:
    return {"inputs": [{"name": "x", "datatype": datatype, "shape": shape, "data": data}]}


def status(content: Any, binary: bytes = b"", length: str | None = None) -> int:
    with pytest.raises(HttpError) as caught:
        read(content, binary, length)
    return caught.value.status


def test_every_type_is_tried() -> None:
    assert set(NUMBERS) == set(datatypes.DTYPES)


@pytest.mark.parametrize("datatype", sorted(NUMBERS))
@given(data=st.data())
def test_values_come_back_as_they_went_in(datatype: str, data: st.DataObject) -> None:
    values = data.draw(st.lists(NUMBERS[datatype], max_size=6))
    if datatype == "BF16":
        values = datatypes.json_values(Tensor(datatypes.elements(values, datatype), "bfloat16", (len(values),)))
    tensor = read(one(datatype, [len(values)], values)).inputs["x"]
    asked = tensors.InferBody("", {}, None, {}, False, None)
    content = json.loads(b"".join(tensors.write_response(asked, "echo", Answer("1", {"y": tensor})).parts))
    assert content["outputs"] == [{"name": "y", "datatype": datatype, "shape": [len(values)], "data": values}]

    raw = tensors.write_response(tensors.InferBody("", {}, None, {}, True, None), "echo", Answer("1", {"y": tensor}))
    binary = b"".join(raw.parts[1:])
    described = {"name": "x", "datatype": datatype, "shape": [len(values)]}
    again = read({"inputs": [{**described, "parameters": {"binary_data_size": len(binary)}}]}, binary, None)
    back = again.inputs["x"]
    assert datatypes.json_values(back) == values


@pytest.mark.parametrize("data", [[[1, 2, 3], [4, 5, 6]], [1, 2, 3, 4, 5, 6]])
def test_flat_and_nested_are_the_same(data: Any) -> None:
    assert read(one("FP32", [2, 3], data)).inputs["x"].tolist() == [[1, 2, 3], [4, 5, 6]]


def test_halves_are_rounded_to_the_nearest() -> None:
    tensor = read(one("BF16", [3], [1.0, 1.00390625, 1.01171875])).inputs["x"]
    assert tensor.data.cast("H").tolist() == [0x3F80, 0x3F80, 0x3F82]


@pytest.mark.parametrize(
    ("datatype", "shape", "data"),
    [
        ("FP32", [2], [1]),
        ("FP32", [2, 3], [[1, 2, 3], [4, 5]]),
        ("FP32", [2, 2], [[[1, 2], [3, 4]]]),
        ("FP32", [2], [[1], [2]]),
        ("FP32", [1], 1),
        ("FP32", [1], [None]),
        ("FP32", [1], ["1"]),
        ("FP32", [1], [True]),
        ("FP32", [1], [1e300]),
        ("FP32", [1], [10**400]),
        ("FP16", [1], [65536]),
        ("FP16", [1], [10**60]),
        ("FP32", [1], [10**60]),
        ("BF16", [1], [3.4e38]),
        ("BF16", [1], [10**60]),
        ("INT8", [1], [128]),
        ("INT8", [1], [1.0]),
        ("INT8", [1], [True]),
        ("UINT8", [1], [-1]),
        ("BOOL", [1], [1]),
        ("BYTES", [1], [1]),
        ("BYTES", [1], ["\ud800"]),
        ("FP8", [1], [1]),
        (None, [1], [1]),
        ("FP32", [-1], [1]),
        ("FP32", [1.0], [1]),
        ("FP32", [True], [1]),
        ("FP32", "1", [1]),
        ("FP32", [1] * 33, [1]),
        ("FP32", [1 << 64], [1]),
        ("FP32", [1 << 62, 1 << 62], []),
    ],
)
def test_tensors_that_are_refused(datatype: Any, shape: Any, data: Any) -> None:
    assert status(one(datatype, shape, data)) == 400


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        b'{"inputs": [], "inputs": []}',
        b"[" * 100_000,
        b'{"inputs": [' + b"1" * 5000 + b"]}",
        {},
        {"inputs": {}},
        {"inputs": [1]},
        {"inputs": [{"datatype": "FP32", "shape": [1], "data": [1]}]},
        {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1]}]},
        {"inputs": one("FP32", [1], [1])["inputs"] * 2},
        {"inputs": [], "id": 1},
        {"inputs": [], "outputs": 1},
        {"inputs": [], "outputs": [{"name": "y"}, {"name": "y"}]},
        {"inputs": [], "outputs": [{"name": "y", "parameters": {"binary_data": 1}}]},
        {"inputs": [], "parameters": []},
        {"inputs": [], "parameters": {"binary_data_output": "yes"}},
        {"inputs": [], "parameters": {"timeout": -1}},
        {"inputs": [], "parameters": {"timeout": 1.5}},
    ],
)
def test_bodies_that_are_refused(content: Any) -> None:
    assert status(content) == 400


def sized(size: Any, shape: list[int], datatype: str = "FP32", **more: Any) -> dict[str, Any]:
    described = {"name": "x", "datatype": datatype, "shape": shape, "parameters": {"binary_data_size": size}}
    return {"inputs": [{**described, **more}]}


@pytest.mark.parametrize(
    ("content", "binary", "length"),
    [
        (sized(4, [2]), b"1234", None),
        (sized(8, [1]), b"12345678", None),
        (sized(8, [2]), b"1234", None),
        (sized(4, [1]), b"12345", None),
        (sized(-4, [1]), b"1234", None),
        (sized("4", [1]), b"1234", None),
        (sized(True, [1], "INT8"), b"1", None),
        (sized(4, [1], data=[1]), b"1234", None),
        (sized(4, [1]), b"1234", "1"),
        (sized(4, [1]), b"1234", "9999"),
        (sized(4, [1]), b"1234", "-1"),
        (sized(4, [1]), b"1234", "\xb2"),
        (sized(4, [1]), b"1234", "9" * 100),
        (sized(1, [1], "BOOL"), b"\2", None),
        (sized(3, [1], "BYTES"), b"\0\0\0", None),
        (sized(4, [1], "BYTES"), b"\1\0\0\0", None),
        (sized(4, [1], "BYTES"), b"\xff\xff\xff\xff", None),
        (sized(5, [1], "BYTES"), b"\0\0\0\0\0", None),
        (sized(4, [1 << 40], "BYTES"), b"\0\0\0\0", None),
        (sized(8, [2], "BYTES"), b"\2\0\0\0abcd", None),
    ],
)
def test_binary_tensors_that_are_refused(content: Any, binary: bytes, length: str | None) -> None:
    assert status(content, binary, length) == 400


def test_shape_and_byte_count_that_disagree_are_named() -> None:
    with pytest.raises(HttpError, match=r'input "x": shape \[2, 3\] of FP32 takes 24 bytes, its data has 20'):
        read(sized(20, [2, 3]), bytes(20))


def test_binary_tensors_are_not_copied() -> None:
    header = json.dumps(sized(4000, [1000])).encode()
    body = bytearray(header + bytes(4000))
    tensor = tensors.read_request(memoryview(body), str(len(header)), LIMITS).inputs["x"]
    body[len(header) : len(header) + 4] = struct.pack("<f", 7.0)
    assert tensor.tolist()[0] == 7.0


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["name", "inputs", "outputs", "shape", "datatype", "data", "parameters", "binary_data_size"]
            )
            | st.text(max_size=3),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)
almost = st.fixed_dictionaries(
    {
        "inputs": st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "name": st.sampled_from(["x", "y"]) | json_like,
                    "datatype": st.sampled_from(sorted(datatypes.DTYPES)) | json_like,
                    "shape": st.lists(st.integers(-1, 4), max_size=3) | json_like,
                    "data": st.lists(st.integers(-1, 300) | st.floats(), max_size=8) | json_like,
                    "parameters": st.fixed_dictionaries({"binary_data_size": st.integers(-1, 16)}) | json_like,
                },
            ),
            max_size=3,
        )
    },
    optional={"id": json_like, "outputs": json_like, "parameters": json_like},
)


@given(almost | json_like, st.binary(max_size=24), st.none() | st.integers(-2, 40).map(str))
def test_no_body_makes_it_fail_otherwise(content: Any, binary: bytes, length: str | None) -> None:
    with contextlib.suppress(HttpError):
        for tensor in read(json.dumps(content).encode(), binary, length).inputs.values():
            assert isinstance(tensor, Tensor)


@given(st.binary(max_size=64), st.none() | st.text(max_size=4))
def test_no_bytes_make_it_fail_otherwise(raw: bytes, length: str | None) -> None:
    with contextlib.suppress(HttpError):
        tensors.read_request(memoryview(raw), length, LIMITS)


HOSTILE = {
    "small numbers": b"[" + b"0," * 100_000 + b"0]",
    "numbers": b"[" + b"999," * 50_000 + b"0]",
    "fractions": b"[" + b"0.5," * 50_000 + b"0]",
    "strings": b"[" + b'"ab",' * 40_000 + b'"ab"]',
    "empty lists": b"[" + b"[]," * 2000 + b"[]]",
    "lists": b"[" + b"[7]," * 2000 + b"[7]]",
    "too many lists": b"[" + b"[7]," * 60_000 + b"[7]]",
    "objects": b"[" + b'{"":0},' * 50 + b"0]",
    "too many objects": b"[" + b"{}," * 60_000 + b"0]",
    "wide text": '"\U0001f600'.encode() + b"a" * 200_000 + b'"',
    "keys": b"{" + b",".join(b'"%d":0' % number for number in range(20_000)) + b"}",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=list(HOSTILE))
def test_memory_stays_within_its_bound(text: bytes) -> None:
    limits = Limits(json_arrays=2100, json_objects=60)
    # 112 bytes for a short list, 240 for an object; at the default limits 16 MiB together.
    fixed = 112 * limits.json_arrays + 240 * limits.json_objects
    assert 112 * LIMITS.json_arrays + 240 * LIMITS.json_objects <= 16 << 20
    tensor = b'{"inputs":[{"name":"x","datatype":"INT64","shape":[%d],"data":%s}]}' % (text.count(b",") + 1, text)
    for body in (text, tensor):
        view = memoryview(body)
        tracemalloc.start()
        try:
            with contextlib.suppress(HttpError):
                tensors.read_request(view, None, limits)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 24 * len(body) + fixed


def test_too_much_json_is_refused_before_it_is_read() -> None:
    limits = Limits(json_bytes=100)
    with pytest.raises(HttpError) as caught:
        tensors.read_request(memoryview(b" " * 101), None, limits)
    assert caught.value.status == 413
