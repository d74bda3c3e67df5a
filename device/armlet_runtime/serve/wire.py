"""Frames between the supervisor and a worker: a length, a JSON header, and the raw elements of tensors.

Nothing in a frame is ever executed. What does not hold together is refused before memory is taken for it.
"""

from __future__ import annotations

import contextlib
import json
import math
import socket
import struct
import threading
from dataclasses import dataclass, field
from typing import Any, Mapping

from armlet_runtime import ort

MAX_HEADER = 4 << 20
"""Bytes."""
MAX_BODY = 1 << 30
"""Bytes, where nobody says otherwise."""
MAX_TENSORS = 4096
_PREFIX = struct.Struct("<4sIQ")
_MAGIC = b"AWF1"
_LENGTH = struct.Struct("<I")
# Below this a copy is cheaper than another system call.
_JOIN = 64 << 10


class WireError(Exception):
    """The other side does not speak this protocol, or what was to be sent is beyond its limits."""


class Hangup(Exception):
    """The other side is gone."""


@dataclass(frozen=True)
class Frame:
    """``header`` has the key "op"; tensors share one buffer that nobody else has."""

    header: Mapping[str, Any]
    tensors: Mapping[str, ort.Tensor] = field(default_factory=dict)

    @property
    def op(self) -> str:
        """What it is about."""
        return str(self.header["op"])


def encode(header: Mapping[str, Any], tensors: Mapping[str, ort.Tensor], max_body: int = MAX_BODY) -> list[Any]:
    """The buffers of one frame, tensors in place. Raises :class:`WireError` where it is too large."""
    bodies = [_body(tensor) for tensor in tensors.values()]
    entries: list[dict[str, Any]] = [
        {"name": name, "dtype": tensor.dtype, "shape": list(tensor.shape), "size": memoryview(body).nbytes}
        for (name, tensor), body in zip(tensors.items(), bodies)
    ]
    size = sum(entry["size"] for entry in entries)
    text = json.dumps({**header, "tensors": entries}, separators=(",", ":")).encode()
    if len(text) > MAX_HEADER or size > max_body or len(entries) > MAX_TENSORS:
        raise WireError(f"{size} bytes of {len(entries)} tensors, {max_body} bytes of {MAX_TENSORS} at most")
    return [_PREFIX.pack(_MAGIC, len(text), size) + text, *(body for body in bodies if memoryview(body).nbytes)]


def decode_header(text: bytes, body_size: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The header, and its entries of tensors, which fill the body exactly. Raises :class:`WireError`."""
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WireError(f"the header is no JSON: {error}") from error
    if not isinstance(header, dict) or not isinstance(header.get("op"), str):
        raise WireError("the header names no operation")
    entries = header.pop("tensors", [])
    if not isinstance(entries, list) or len(entries) > MAX_TENSORS or not all(map(_sound, entries)):
        raise WireError("the header's tensors make no sense")
    if sum(entry["size"] for entry in entries) != body_size:
        raise WireError("the tensors do not fill the frame")
    if len({entry["name"] for entry in entries}) != len(entries):
        raise WireError("two tensors have one name")
    return header, entries


def decode_tensors(entries: list[dict[str, Any]], body: memoryview) -> dict[str, ort.Tensor]:
    """The tensors of a body, which they share. Raises :class:`WireError` where shape and size disagree."""
    tensors: dict[str, ort.Tensor] = {}
    start = 0
    for entry in entries:
        part: Any = body[start : start + entry["size"]]
        start += entry["size"]
        try:
            if entry["dtype"] == "string":
                part = unpack_strings(part, math.prod(entry["shape"]))
            tensors[entry["name"]] = ort.Tensor(part, entry["dtype"], entry["shape"])
        except (ort.OrtError, TypeError, OverflowError) as error:
            raise WireError(f'tensor "{entry["name"]}": {error}') from error
    return tensors


class Channel:
    """One end of the connection. Any thread may send; one thread receives."""

    def __init__(self, connection: socket.socket, max_body: int = MAX_BODY) -> None:
        self._socket = connection
        self.max_body = max_body
        self._sending = threading.Lock()

    def send(self, header: Mapping[str, Any], tensors: Mapping[str, ort.Tensor] | None = None) -> None:
        """Send one frame; blocks while the other side does not read.

        Raises :class:`WireError` before anything is sent, :class:`Hangup`.
        """
        buffers = encode(header, tensors or {}, self.max_body)
        if sum(memoryview(buffer).nbytes for buffer in buffers) <= _JOIN:
            buffers = [b"".join(buffers)]
        try:
            with self._sending:
                for buffer in buffers:
                    self._socket.sendall(buffer)
        except OSError as error:
            raise Hangup from error

    def receive(self) -> Frame:
        """The next frame. Raises :class:`Hangup`, :class:`WireError` (after which nothing makes sense any more)."""
        magic, header_size, body_size = _PREFIX.unpack(self._read(_PREFIX.size))
        if magic != _MAGIC or header_size > MAX_HEADER or body_size > self.max_body:
            raise WireError("no frame begins like this")
        header, entries = decode_header(bytes(self._read(header_size)), body_size)
        return Frame(header, decode_tensors(entries, self._read(body_size)))

    def close(self) -> None:
        """Hang up; a thread that sends or receives sees it."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _read(self, size: int) -> memoryview:
        whole = memoryview(bytearray(size))
        view = whole
        while view.nbytes:
            try:
                count = self._socket.recv_into(view)
            except OSError as error:
                raise Hangup from error
            if not count:
                raise Hangup
            view = view[count:]
        return whole


def pack_strings(strings: Any) -> bytes:
    """Each string as its length (four bytes, little-endian) and its bytes."""
    parts = []
    for text in strings:
        raw = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
        if not isinstance(raw, bytes):
            raise WireError(f"{text!r} is no string")
        parts += [_LENGTH.pack(len(raw)), raw]
    return b"".join(parts)


def unpack_strings(data: memoryview, count: int) -> list[bytes]:
    """The reverse of :func:`pack_strings`. Raises :class:`WireError` unless ``count`` strings fill the data."""
    strings: list[bytes] = []
    start = 0
    while start + _LENGTH.size <= data.nbytes and len(strings) < count:
        (size,) = _LENGTH.unpack_from(data, start)
        start += _LENGTH.size
        if start + size > data.nbytes:
            break
        strings.append(bytes(data[start : start + size]))
        start += size
    if start != data.nbytes or len(strings) != count:
        raise WireError(f"{data.nbytes} bytes are not {count} strings")
    return strings


def _body(tensor: ort.Tensor) -> Any:
    return pack_strings(tensor.data) if tensor.dtype == "string" else tensor.data


def _sound(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and entry.keys() == {"name", "dtype", "shape", "size"}
        and isinstance(entry["name"], str)
        and isinstance(entry["dtype"], str)
        and isinstance(entry["shape"], list)
        and all(_is_count(size) for size in entry["shape"])
        and _is_count(entry["size"])
    )


def _is_count(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 2**63
