"""The body of an inference: JSON, and binary tensors behind it; both ways."""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass
from typing import Any, Mapping, Sequence

from armlet_runtime.ort import OrtError, Tensor

from . import datatypes
from .http_message import Buffer, HttpError, Response
from .interface import Answer, ModelInfo, TensorInfo
from .limits import Limits

HEADER_LENGTH = "Inference-Header-Content-Length"
BINARY_TYPE = "application/octet-stream"
_MOST_DIMENSIONS = 32
# Asked for by a parameter, and answered wrongly if it were ignored.
_NOT_DONE = {
    "classification": "classification",
    "sequence_id": "sequences",
    "shared_memory_region": "shared memory",
}


@dataclass(frozen=True)
class InferBody:
    """What a client asks for."""

    id: str
    inputs: Mapping[str, Tensor]
    outputs: Sequence[str] | None
    """Names; None: all."""
    binary: Mapping[str, bool]
    """Outputs that say how they want to be sent."""
    binary_default: bool
    timeout: float | None
    """Seconds."""


def read_request(body: memoryview, header_length: str | None, limits: Limits) -> InferBody:
    """Raises :class:`HttpError`. Binary tensors are views of ``body``, at whatever address they happen to begin."""
    text, binary = _apart(body, header_length)
    content = _object(datatypes.parse(text, limits), "the body")
    parameters = _parameters(content, "the request")
    outputs = [_object(item, "an output") for item in _list(content.get("outputs", []), "outputs")]
    names = [_name(item, "an output") for item in outputs]
    if len(set(names)) < len(names):
        raise HttpError(400, "an output is asked for twice")
    wanted = {name: _parameters(item, f'output "{name}"').get("binary_data") for name, item in zip(names, outputs)}
    identifier = content.get("id", "")
    if not isinstance(identifier, str) or not datatypes.is_text(identifier):
        raise HttpError(400, "id is no text")
    return InferBody(
        id=identifier,
        inputs=_inputs(_list(content.get("inputs"), "inputs"), binary),
        outputs=names or None,
        binary={name: _bool(value, "binary_data") for name, value in wanted.items() if value is not None},
        binary_default=_bool(parameters.get("binary_data_output", False), "binary_data_output"),
        timeout=_timeout(parameters.get("timeout")),
    )


def check(asked: InferBody, model: ModelInfo) -> None:
    """Whether the model takes such tensors; raises :class:`HttpError` naming all that is wrong."""
    wanted = {info.name: info for info in model.inputs}
    problems = [f'no input "{name}"' for name in asked.inputs if name not in wanted]
    problems += [f'input "{name}" is missing' for name in wanted if name not in asked.inputs]
    for name, tensor in asked.inputs.items():
        if name in wanted and (tensor.element.name != wanted[name].dtype or not _fits(tensor.shape, wanted[name])):
            problems.append(f'input "{name}" is {_described(wanted[name])}, not {_described_tensor(tensor)}')
    known = {info.name for info in model.outputs}
    problems += [f'no output "{name}"' for name in asked.outputs or () if name not in known]
    if problems:
        raise HttpError(400, f'model "{model.name}": {"; ".join(problems)}')


def write_response(asked: InferBody, model: str, answer: Answer) -> Response:
    """Raises :class:`HttpError` where JSON is wanted for what it cannot hold."""
    described, parts = [], []
    for name in asked.outputs or answer.outputs:
        tensor = answer.outputs[name]
        output: dict[str, Any] = {
            "name": name,
            "datatype": datatypes.protocol_name(tensor.dtype),
            "shape": list(tensor.shape),
        }
        if asked.binary.get(name, asked.binary_default):
            raw = _raw(tensor)
            output["parameters"] = {"binary_data_size": len(raw)}
            parts.append(raw)
        else:
            try:
                output["data"] = datatypes.json_values(tensor)
            except ValueError as error:
                raise HttpError(
                    406, f'output "{name}" cannot be JSON: {error}; ask for it with "binary_data": true'
                ) from None
        described.append(output)
    content: dict[str, Any] = {"model_name": model, "model_version": answer.version, "outputs": described}
    if asked.id:
        content["id"] = asked.id
    header = json.dumps(content, allow_nan=False).encode("ascii")
    if not any("parameters" in output for output in described):
        return Response(200, (header,))
    return Response(200, (header, *parts), BINARY_TYPE, ((HEADER_LENGTH, str(len(header))),))


def _apart(body: memoryview, header_length: str | None) -> tuple[memoryview, memoryview]:
    if header_length is None:
        return body, body[:0]
    if not header_length.isascii() or not header_length.isdigit() or len(header_length) > 19:
        raise HttpError(400, f"{HEADER_LENGTH} is no number")
    size = int(header_length)
    if size > len(body):
        raise HttpError(400, f"{HEADER_LENGTH} says {size} bytes, the body has {len(body)}")
    return body[:size], body[size:]


def _inputs(items: Sequence[Any], binary: memoryview) -> dict[str, Tensor]:
    inputs: dict[str, Tensor] = {}
    for item in items:
        content = _object(item, "an input")
        name = _name(content, "an input")
        if name in inputs:
            raise HttpError(400, f'input "{name}" is given twice')
        size = _parameters(content, f'input "{name}"').get("binary_data_size")
        try:
            if size is None:
                inputs[name] = _from_json(content)
            elif isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= len(binary):
                raise ValueError(f"its binary_data_size is {size}, and {len(binary)} bytes of binary data are left")
            elif "data" in content:
                raise ValueError("it has both data and binary_data_size")
            else:
                inputs[name], binary = _from_binary(content, binary[:size]), binary[size:]
        except (ValueError, OrtError) as error:
            raise HttpError(400, f'input "{name}": {getattr(error, "message", error)}') from None
    if len(binary):
        raise HttpError(400, f"{len(binary)} bytes of binary data belong to no input")
    return inputs


def _from_json(content: Mapping[str, Any]) -> Tensor:
    datatype, shape = _declared(content)
    if "data" not in content:
        raise ValueError("it has neither data nor binary_data_size")
    flat = content["data"]
    if not isinstance(flat, list):
        raise ValueError("its data is no list")
    dimensions = shape
    # Either flat, or nested as the shape is.
    while flat and isinstance(flat[0], list):
        size, dimensions = (dimensions[1:2] or (None,))[0], dimensions[1:]
        if any(not isinstance(row, list) or len(row) != size for row in flat):
            raise ValueError(f"its data is not nested as its shape {list(shape)}")
        flat = [value for row in flat for value in row]
    if len(flat) != math.prod(shape):
        raise ValueError(f"shape {list(shape)} has {math.prod(shape)} elements, its data {len(flat)}")
    return Tensor(datatypes.elements(flat, datatype), datatypes.DTYPES[datatype], shape)


def _from_binary(content: Mapping[str, Any], raw: memoryview) -> Tensor:
    datatype, shape = _declared(content)
    dtype, count = datatypes.DTYPES[datatype], math.prod(shape)
    if datatype == "BYTES":
        return Tensor(_strings(raw, count), dtype, shape)
    itemsize = Tensor(b"", dtype, (0,)).element.itemsize
    if len(raw) != count * itemsize:
        raise ValueError(f"shape {list(shape)} of {datatype} takes {count * itemsize} bytes, its data has {len(raw)}")
    if datatype == "BOOL" and raw.tobytes().strip(b"\0\1"):
        raise ValueError("a BOOL is a byte of 0 or 1")
    return Tensor(raw, dtype, shape)


def _strings(raw: memoryview, count: int) -> list[bytes]:
    if 4 * count > len(raw):
        raise ValueError(f"{count} strings take at least {4 * count} bytes, its data has {len(raw)}")
    found, position = [], 0
    for _ in range(count):
        if position + 4 > len(raw):
            raise ValueError("its data ends within a string's length")
        (size,) = struct.unpack_from("<I", raw, position)
        position += 4 + size
        if position > len(raw):
            raise ValueError("its data ends within a string")
        found.append(raw[position - size : position].tobytes())
    if position < len(raw):
        raise ValueError(f"{len(raw) - position} bytes after its last string")
    return found


def _raw(tensor: Tensor) -> Buffer:
    if tensor.dtype != "string":
        return memoryview(tensor.data)
    texts = [text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text for text in tensor.data]
    return b"".join(part for text in texts for part in (struct.pack("<I", len(text)), text))


def _declared(content: Mapping[str, Any]) -> tuple[str, tuple[int, ...]]:
    datatype, shape = content.get("datatype"), content.get("shape")
    if not isinstance(datatype, str) or datatype not in datatypes.DTYPES:
        raise ValueError(f"datatype is none of {', '.join(datatypes.DTYPES)}")
    if not isinstance(shape, list) or len(shape) > _MOST_DIMENSIONS:
        raise ValueError(f"shape is no list of at most {_MOST_DIMENSIONS} numbers")
    if any(type(size) is not int or not 0 <= size < 1 << 63 for size in shape):
        raise ValueError("shape has what is no size")
    return datatype, tuple(shape)


def _fits(shape: Sequence[int], wanted: TensorInfo) -> bool:
    return len(shape) == len(wanted.shape) and all(
        isinstance(size, str) or size == given for given, size in zip(shape, wanted.shape)
    )


def _described(info: TensorInfo) -> str:
    return f"{datatypes.protocol_name(info.dtype)} [{', '.join(str(size or '?') for size in info.shape)}]"


def _described_tensor(tensor: Tensor) -> str:
    return f"{datatypes.protocol_name(tensor.dtype)} {list(tensor.shape)}"


def _parameters(content: Mapping[str, Any], whose: str) -> Mapping[str, Any]:
    parameters = _object(content.get("parameters", {}), f"the parameters of {whose}")
    for name, feature in _NOT_DONE.items():
        if parameters.get(name):
            raise HttpError(400, f"{whose}: {feature} are not supported")
    return parameters


def _object(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise HttpError(400, f"{what} is no object")
    return value


def _list(value: Any, what: str) -> Sequence[Any]:
    if not isinstance(value, list):
        raise HttpError(400, f"{what} is no list")
    return value


def _name(content: Mapping[str, Any], what: str) -> str:
    name = content.get("name")
    if not isinstance(name, str):
        raise HttpError(400, f"{what} has no name")
    return name


def _bool(value: Any, what: str) -> bool:
    if not isinstance(value, bool):
        raise HttpError(400, f"{what} is neither true nor false")
    return value


def _timeout(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 1 << 63:
        raise HttpError(400, "timeout is no number of microseconds")
    return value / 1e6
