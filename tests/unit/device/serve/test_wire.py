"""Frames between supervisor and worker: whatever comes in, nothing worse than a refusal."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from armlet_runtime import ort
from armlet_runtime.serve.wire import MAX_HEADER, Channel, Frame, Hangup, WireError, encode
from hypothesis import given, settings
from hypothesis import strategies as st

NUMBERS = {"float32": 1.5, "int64": -(2**40), "uint8": 255, "bool": True, "float16": 0.5, "bfloat16": 3}


@pytest.fixture
def ends() -> Iterator[tuple[Channel, Channel]]:
    a, b = socket.socketpair()
    left, right = Channel(a, 1 << 20), Channel(b, 1 << 20)
    yield left, right
    left.close()
    right.close()


def read(data: bytes, most: int = 4096) -> Frame:
    """What a channel makes of these bytes, with nothing behind them."""
    a, b = socket.socketpair()
    with a:
        channel = Channel(b, most)

        def send() -> None:
            a.sendall(data)
            a.shutdown(socket.SHUT_WR)

        sender = threading.Thread(target=send)
        sender.start()
        try:
            return channel.receive()
        finally:
            # A frame that was refused early leaves the rest unread, and the sender in the middle.
            channel.close()
            sender.join()


def frame(header: Any, body: bytes = b"", size: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<4sIQ", b"AWF1", len(text), len(body) if size is None else size) + text + body


def entry(**changes: Any) -> dict[str, Any]:
    return {"op": "infer", "tensors": [{"name": "x", "dtype": "float32", "shape": [2], "size": 8, **changes}]}


def test_there_and_back(ends: tuple[Channel, Channel]) -> None:
    left, right = ends
    tensors = {name: ort.Tensor.from_list([[value]], name) for name, value in NUMBERS.items()}
    tensors |= {
        "none": ort.Tensor(b"", "float32", (0, 3)),
        "scalar": ort.Tensor.from_list(7, "int32"),
        "text": ort.Tensor.from_list(["a", "", "猫"], "string"),
    }
    left.send({"op": "infer", "id": 3}, tensors)
    got = right.receive()
    assert (got.op, got.header) == ("infer", {"op": "infer", "id": 3})
    assert list(got.tensors) == list(tensors)
    for name, tensor in tensors.items():
        assert (got.tensors[name].dtype, got.tensors[name].shape) == (tensor.dtype, tensor.shape)
        if name != "text":
            assert got.tensors[name].tobytes() == tensor.tobytes()
    assert got.tensors["text"].tolist() == [b"a", b"", "猫".encode()]


def test_large_frames_and_many_senders(ends: tuple[Channel, Channel]) -> None:
    left, right = ends
    tensor = ort.Tensor(bytes(range(256)) * 2048, "uint8", (256 * 2048,))
    threads = [threading.Thread(target=left.send, args=({"op": "a", "id": n}, {"x": tensor})) for n in range(4)]
    for thread in threads:
        thread.start()
    frames = [right.receive() for _ in threads]
    for thread in threads:
        thread.join()
    assert sorted(got.header["id"] for got in frames) == [0, 1, 2, 3]
    assert all(got.tensors["x"].tobytes() == tensor.tobytes() for got in frames)


def test_what_is_too_large_is_never_sent(ends: tuple[Channel, Channel]) -> None:
    left, right = ends
    with pytest.raises(WireError, match="1048577 bytes of 1 tensors, 1048576"):
        left.send({"op": "a"}, {"x": ort.Tensor(bytes((1 << 20) + 1), "uint8", ((1 << 20) + 1,))})
    with pytest.raises(WireError):
        left.send({"op": "a" * (MAX_HEADER + 1)})
    with pytest.raises(WireError, match="3 is no string"):
        left.send({"op": "a"}, {"x": ort.Tensor([3], "string", (1,))})
    left.send({"op": "b"})
    assert right.receive().op == "b"


def test_the_other_side_is_gone(ends: tuple[Channel, Channel]) -> None:
    left, right = ends
    right.close()
    with pytest.raises(Hangup):
        left.receive()
    with pytest.raises(Hangup):
        left.send({"op": "a"})
    with pytest.raises(Hangup):
        right.send({"op": "a"})


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        struct.pack("<4sIQ", b"AWF1", MAX_HEADER + 1, 0),
        struct.pack("<4sIQ", b"AWF1", 2, 2**63),
        frame(b"{"),
        frame(b"[" * 100_000),
        frame([]),
        frame({}),
        frame({"op": 1}),
        frame({"op": "a", "tensors": 3}),
        frame({"op": "a"}, b"12345678"),
        frame(entry(size=7), b"1234567"),
        frame(entry(size=-8)),
        frame(entry(size=True), b"1"),
        frame(entry(shape=[-2]), b"12345678"),
        frame(entry(shape=[2**62, 8]), b"12345678"),
        frame(entry(shape=[2.0]), b"12345678"),
        frame(entry(shape="2"), b"12345678"),
        frame(entry(dtype="object"), b"12345678"),
        frame(entry(name=None), b"12345678"),
        frame(entry(extra=1), b"12345678"),
        frame(entry(dtype="string"), b"\xff\xff\xff\xff1234"),
        frame(entry(dtype="string", shape=[2**40]), b"12345678"),
        frame({"op": "a", "tensors": entry()["tensors"] * 2}, b"12345678" * 2),
    ],
)
def test_what_makes_no_sense(data: bytes) -> None:
    with pytest.raises(WireError):
        read(data)


@pytest.mark.parametrize("cut", [0, 3, 16, 20, -1])
def test_a_frame_that_ends_early(cut: int) -> None:
    with pytest.raises(Hangup):
        read(frame(entry(), b"12345678")[:cut])


headers = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["op", "tensors", "name", "dtype", "shape", "size"]) | st.text(max_size=3), inner
        )
    ),
    max_leaves=12,
)
entries = st.fixed_dictionaries(
    {
        "name": st.text(max_size=3),
        "dtype": st.sampled_from([*NUMBERS, "string", "complex64", ""]),
        "shape": st.lists(st.integers(-1, 5) | st.integers(), max_size=4),
        "size": st.integers(-1, 40),
    }
)


@settings(max_examples=300, deadline=None)
@given(
    st.binary(max_size=200)
    | st.builds(frame, headers, st.binary(max_size=64))
    | st.builds(frame, headers, st.binary(max_size=64), st.integers(0, 2**64 - 1))
    | st.builds(
        lambda found, body: frame({"op": "infer", "tensors": found}, body),
        st.lists(entries, max_size=3),
        st.binary(max_size=80),
    )
)
def test_anything_at_all(data: bytes) -> None:
    try:
        got = read(data)
    except (WireError, Hangup):
        return
    # What was taken can be sent again, and means the same.
    again = read(b"".join(bytes(part) for part in encode(got.header, got.tensors)))
    assert json.dumps(again.header) == json.dumps(got.header)
    assert {name: t.tolist() for name, t in again.tensors.items()}.keys() == got.tensors.keys()
