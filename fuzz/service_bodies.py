"""Fuzzes what the inference service reads from its clients: heads of requests, bodies of inferences.

    .venv/bin/python -m pip install atheris
    PYTHONPATH=.:device .venv/bin/python -m fuzz.service_bodies -runs=1000000 [folder with inputs]

The first byte chooses: a head of a request, a body as it is, or a body built from the bytes so that most of it makes
sense. A finding is any exception but the refusal, or memory beyond the stated bound.
"""

from __future__ import annotations

import contextlib
import json
import math
import sys
from dataclasses import replace
from typing import Any

import atheris

with atheris.instrument_imports(include=["armlet_runtime.serve", "armlet_runtime.ort"]):
    from armlet_runtime.serve import tensors
    from armlet_runtime.serve.datatypes import DTYPES
    from armlet_runtime.serve.http_message import HttpError, parse_head
    from armlet_runtime.serve.interface import Answer
    from armlet_runtime.serve.limits import Limits
    from armlet_runtime.serve.looks import some

from fuzz.bounded import bounded

LIMITS = Limits()
MODEL = "m"
FIXED = 16 << 20
TIMES = 24


def one_input(data: bytes) -> None:
    """Raises for a finding."""
    with bounded(len(data), times=TIMES, fixed=FIXED), contextlib.suppress(HttpError):
        _read(data)


def _read(data: bytes) -> None:
    kind, rest = data[:1], data[3:]
    if kind < b"\x20":
        parse_head(rest, LIMITS.head_fields)
        return
    if kind < b"\x60":
        size = int.from_bytes(data[1:3], "little") % (len(rest) + 2)
        _infer(rest, None if kind < b"\x40" else str(size))
        return
    header, binary = _built(atheris.FuzzedDataProvider(data[1:]))
    _infer(header + binary, str(len(header)))


def _infer(body: bytes, header_length: str | None) -> None:
    """There and, as far as JSON can hold it, back."""
    asked = tensors.read_request(memoryview(bytearray(body)), header_length, LIMITS)
    for name, tensor in asked.inputs.items():
        list(some(tensor))
        with contextlib.suppress(HttpError):
            tensors.write_response(replace(asked, outputs=None), MODEL, Answer("1", {name: tensor}))


def _built(bytes_: atheris.FuzzedDataProvider) -> tuple[bytes, bytes]:
    """JSON whose keys and types are mostly right, and binary tensors of mostly the right size."""
    inputs, binary = [], b""
    for _ in range(bytes_.ConsumeIntInRange(0, 3)):
        datatype = bytes_.PickValueInList([*DTYPES, "FP8"])
        shape = [bytes_.ConsumeIntInRange(-1, 5) for _ in range(bytes_.ConsumeIntInRange(0, 3))]
        one: dict[str, Any] = {"name": bytes_.PickValueInList(["x", "y", ""]), "datatype": datatype, "shape": shape}
        count = math.prod(shape)
        if bytes_.ConsumeBool():
            size = max(count * bytes_.PickValueInList([1, 2, 4, 8, 5]) + bytes_.PickValueInList([0, 0, 0, 1, -1]), 0)
            raw = bytes_.ConsumeBytes(size)
            raw += bytes(size - len(raw)) if bytes_.ConsumeBool() else b""
            one["parameters"] = {"binary_data_size": len(raw) + bytes_.PickValueInList([0, 0, 0, 1])}
            binary += raw
        else:
            pick = {"BYTES": bytes_.ConsumeUnicode, "BOOL": lambda _: bytes_.ConsumeBool()}
            if datatype.startswith(("FP", "BF")):
                pick[datatype] = lambda _: bytes_.ConsumeFloat()
            value = pick.get(datatype, lambda _: bytes_.ConsumeInt(bytes_.PickValueInList([1, 2, 4, 8, 9, 40, 130])))
            one["data"] = [value(4) for _ in range(max(count + bytes_.PickValueInList([0, 0, 0, 1]), 0))]
        inputs.append(one)
    content = {"inputs": inputs, "parameters": {"binary_data_output": bytes_.ConsumeBool()}}
    if bytes_.ConsumeBool():
        content["outputs"] = [{"name": "x", "parameters": {"binary_data": bytes_.ConsumeBool()}}]
    return json.dumps(content).encode("utf-8", "surrogatepass"), binary


def seeds() -> list[bytes]:
    """Inputs from which mutations get somewhere."""
    plain = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "data": [1, 2.5]}], "id": "1"}
    binary = {
        "inputs": [{"name": "x", "datatype": "BYTES", "shape": [1], "parameters": {"binary_data_size": 6}}],
        "outputs": [{"name": "y", "parameters": {"binary_data": True}}],
        "parameters": {"timeout": 5, "binary_data_output": False},
    }
    header = json.dumps(binary).encode()
    return [
        b"\x00\x00\x00POST /v2/models/a%2F/infer?x HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nExpect: 100-continue",
        b"\x20\x00\x00" + json.dumps(plain).encode(),
        b"\x40" + len(header).to_bytes(2, "little") + header + b"\x02\x00\x00\x00ab",
    ]


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
