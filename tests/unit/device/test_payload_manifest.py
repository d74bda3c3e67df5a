"""What a signed ``payload.json`` may say: the device refuses what the host refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from armlet_runtime import payload_manifest as device
from armlet_runtime import refusal
from armlet_runtime.refusal import PayloadError
from pydantic import TypeAdapter, ValidationError

from armlet.spec import payload as spec
from armlet.spec.base import Name
from armlet.spec.sku import ElementType
from tests.fakes.payloads import FILES, manifest

LIMIT = 1 << 20
INPUT = {"name": "x", "dtype": "float", "shape": [4, 32], "file": "golden/0/input-0.bin"}
OUTPUT = {"name": "y", "dtype": "int64", "shape": [0], "file": "golden/0/output-0.bin"}
VECTOR = {"name": "a", "inputs": [INPUT], "outputs": [OUTPUT], "atol": 1e-4, "rtol": 0}


def vector(**other: Any) -> dict[str, Any]:
    return {"golden": [{**VECTOR, **other}]}


def tensor(**other: Any) -> dict[str, Any]:
    return vector(inputs=[{**INPUT, **other}])


def read(**fields: Any) -> device.Manifest:
    return device.read_manifest(manifest(**fields), limit=LIMIT)


RIGHT: dict[str, dict[str, Any]] = {
    "a vector": vector(),
    "no vectors": {"golden": []},
    "bytes": tensor(dtype="uint8", shape=[512]),
    "a number without dimensions": tensor(dtype="string", shape=[]),
    "the largest generation": {"generation": 2**53},
    "threads": {"threads": 1024},
    "no threads": {"threads": None},
    "fields of a newer version": {"colour": {"of": ["sky"]}},
    "a longer description": {"description": "wörter 文字"},
    "an ONNX model": {"format": "onnx", "content": {"model.onnx": b"x"}},
}


@pytest.mark.parametrize("fields", RIGHT.values(), ids=RIGHT)
def test_what_is_taken(fields: dict[str, Any]) -> None:
    read(**fields)


CONTRADICTIONS: dict[str, dict[str, Any]] = {
    **{f"generation {value!r}": {"generation": value} for value in (0, -1, 2**53 + 1, 1.0, 1.5, True, "1", None)},
    **{f"threads {value!r}": {"threads": value} for value in (0, -1, 1025, 1.0, True, "1")},
    "another format": {"format": "onnx"},
    "a format of its own": {"format": "tflite"},
    "no format": {"format": None},
    "a list as format": {"format": []},
    "another file first": {"content": dict(reversed([*FILES.items()]))},
    "no model": {"content": {"a.bin": b"x"}},
    "no golden": {"golden": None},
    "golden that is no list": {"golden": {}},
    "a vector that is none": {"golden": ["a"]},
    **{f"atol {value!r}": vector(atol=value) for value in (-1, -1e-9, True, "1", None, 10**400)},
    **{f"rtol {value!r}": vector(rtol=value) for value in (-1, None)},
    "a name of two lines": vector(name="a\nb"),
    "inputs that are no list": vector(inputs=None),
    "outputs that are no list": vector(outputs={}),
    "a tensor that is none": vector(inputs=["x"]),
    "no name": tensor(name=None),
    "a file that is not listed": tensor(file="golden/9/input-0.bin"),
    "a file elsewhere": tensor(file="../../etc/passwd"),
    "no file": tensor(file=None),
    "a list as file": tensor(file=[]),
    "a shape that is larger": tensor(shape=[999999, 3]),
    "a shape that is smaller": tensor(shape=[4, 31]),
    "a negative shape": tensor(shape=[-4, -32]),
    "a shape of truth": tensor(shape=[True, 128]),
    "a shape with names": tensor(shape=["N", 32]),
    "no shape": tensor(shape=None),
    "elements of another size": tensor(dtype="double"),
    "elements of no type": tensor(dtype="int4"),
    "a list as type": tensor(dtype=[]),
    "more strings than bytes": tensor(dtype="string", shape=[129]),
}


def reason(**fields: Any) -> str:
    with pytest.raises(PayloadError) as caught:
        read(**fields)
    assert caught.value.hint
    assert caught.value.what.isprintable()
    return caught.value.reason


@pytest.mark.parametrize("fields", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_what_makes_no_sense(fields: dict[str, Any]) -> None:
    assert reason(**fields) == refusal.FORM


UNSAFE: dict[str, dict[str, Any]] = {
    **{f"model {value!a}": {"model": value} for value in ("../x", "a/b", "A", "a\n", "", "a" * 65, None, 5)},
    **{f"version {value!a}": {"version": value} for value in ("../1", "1.0\n", "", "1/2", "v1", None, 1)},
    **{
        f"{key} {value!a}": {key: value}
        for key in ("description", "licence")
        for value in ("\x1b[31m", "a\nb", "a\0", "a\x85b", "a\u2028b", "", "a" * 201, None)
    },
}


@pytest.mark.parametrize("fields", UNSAFE.values(), ids=UNSAFE)
def test_what_is_not_safe(fields: dict[str, Any]) -> None:
    assert reason(**fields) == refusal.UNSAFE


def test_text_that_is_none_and_numbers_that_are_too_large() -> None:
    assert reason(description="\ud800") == refusal.FORM
    assert reason(colour=["\ud800"]) == refusal.FORM
    endless = manifest(**vector(atol=12345)).replace(b"12345", b"1e400")
    with pytest.raises(PayloadError):
        device.read_manifest(endless, limit=LIMIT)


@pytest.mark.parametrize("key", ["model", "version", "generation", "description", "licence", "format", "golden"])
def test_what_is_needed(key: str) -> None:
    fields = json.loads(manifest())
    del fields[key]
    with pytest.raises(PayloadError):
        device.read_manifest(json.dumps(fields).encode(), limit=LIMIT)


@pytest.mark.parametrize(("key", "kind"), [("model", Name), ("version", spec.ModelVersion)])
@pytest.mark.parametrize(
    "text", ["a", "a-b_c.d", "1", "1.0~rc1+2", "1..", "A", "1-2", "", "_", "0" * 64, "0" * 65, "é"]
)
def test_names_are_those_of_the_host(key: str, kind: Any, text: str) -> None:
    try:
        TypeAdapter(kind).validate_python(text)
    except ValidationError:
        assert reason(**{key: text}) == refusal.UNSAFE
    else:
        read(**{key: text})


def test_element_types_are_those_of_the_host() -> None:
    assert {*device.ELEMENT_SIZES, "string"} == {*ElementType.__args__}  # type: ignore[attr-defined]
