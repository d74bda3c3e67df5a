"""Fuzzes what a device reads from a broker: wishes, and blocks of an archive that is on its way.

    .venv/bin/python -m pip install atheris
    PYTHONPATH=.:device .venv/bin/python -m fuzz.update_messages -runs=1000000 [folder with inputs]

The first byte chooses: a message as it is, one built from the bytes so that most of it makes sense, or a download whose
deliveries are. A finding is any exception but the refusal, a wish that is out of bounds, a block in a wrong place, or
memory beyond the stated bound.
"""

from __future__ import annotations

import contextlib
import json
import sys
from typing import Any

import atheris

with atheris.instrument_imports(include=["armlet_runtime.update", "armlet_runtime.payload_manifest"]):
    from armlet_runtime.update.blocks import BlocksFetcher
    from armlet_runtime.update.desired import LARGEST_BLOCK, LARGEST_MESSAGE, LONGEST_URL, WishError, parse
    from armlet_runtime.update.interface import Desired, FetchError

from fuzz.bounded import bounded
from tests.fakes.incoming import FakeIncoming

FIXED = 4 << 20
TIMES = 24
"""Bytes of memory for each of a message."""

_BLOCK, _COUNT = 8, 6
_DATA = bytes(range(1, _BLOCK * _COUNT - 2))
_ARCHIVE, _OTHER = "ab" * 32, "cd" * 32
_WISH = Desired("m", "1", 1, "0" * 64, len(_DATA), _ARCHIVE, block_size=_BLOCK)
_GOOD: dict[str, Any] = {
    "schema": 1,
    "model": "m",
    "version": "1.2.0",
    "generation": 7,
    "payload": _ARCHIVE,
    "archive": {"size": 1000, "sha256": _OTHER},
    "url": "https://models.example/m.payload",
    "blocks": {"size": 32768},
}


def one_input(data: bytes) -> None:
    """Raises for a finding."""
    with bounded(len(data), times=TIMES, fixed=FIXED):
        _read(data)


def _read(data: bytes) -> None:
    kind, rest = data[:1], data[1:]
    if kind < b"\x60":
        _wish(rest)
    elif kind < b"\xb0":
        _wish(json.dumps(_built(atheris.FuzzedDataProvider(rest))).encode())
    else:
        _deliveries(atheris.FuzzedDataProvider(rest))


def _wish(message: bytes) -> None:
    with contextlib.suppress(WishError):
        wish = parse(message, "m")
        if wish is None:
            assert not message
            return
        assert len(message) <= LARGEST_MESSAGE
        assert wish.model == "m"
        assert 0 < wish.generation <= 2**53
        assert 0 < wish.archive_size < 2**33
        assert len(bytes.fromhex(wish.payload)) == len(bytes.fromhex(wish.archive_sha256)) == 32
        assert bool(wish.url) != bool(wish.block_size)
        assert 0 <= wish.block_size <= LARGEST_BLOCK
        assert not wish.url or (wish.url.lower().startswith("https://") and len(wish.url) <= LONGEST_URL)
        assert wish.url.isascii()
        assert not set(wish.url) & set(" \r\n\t\0#\\")


def _built(bytes_: atheris.FuzzedDataProvider) -> Any:
    """A wish of which a few fields are something else."""
    fields = {**_GOOD, "archive": dict(_GOOD["archive"]), "blocks": dict(_GOOD["blocks"])}
    fields.pop(bytes_.PickValueInList(["url", "blocks", "later"]), None)
    for _ in range(bytes_.ConsumeIntInRange(0, 3)):
        within = bytes_.PickValueInList([fields, fields, *(value for value in fields.values() if type(value) is dict)])
        within[bytes_.PickValueInList([*_GOOD, "size", "sha256", "x"])] = _value(bytes_)
    return fields


def _value(bytes_: atheris.FuzzedDataProvider) -> Any:
    kind = bytes_.ConsumeIntInRange(0, 8)
    if kind == 0:
        return bytes_.ConsumeInt(bytes_.PickValueInList([1, 2, 4, 8, 9, 40]))
    if kind == 1:
        return bytes_.ConsumeFloat()
    if kind == 2:
        return bytes_.ConsumeUnicode(70)
    if kind == 3:
        return "https://" + bytes_.ConsumeUnicode(40)
    if kind == 4:
        return "https://" + bytes_.ConsumeString(40)
    if kind == 5:
        return bytes_.PickValueInList([None, True, False, [], {}, "", _ARCHIVE, _ARCHIVE.upper()])
    if kind == 6:
        return {bytes_.PickValueInList(["size", "sha256"]): bytes_.ConsumeInt(5)}
    return json.loads("[" * 30 + "]" * 30) if kind == 7 else "x" * bytes_.ConsumeIntInRange(0, 20000)


class _Source:
    """Delivers what the bytes say, and then, once they are used up, what is right (unless patience ended before)."""

    def __init__(self, bytes_: atheris.FuzzedDataProvider, falsified: set[int]) -> None:
        self._bytes = bytes_
        self._falsified = falsified
        self.fetcher = BlocksFetcher(self, first_wait=0.0001, patience=0.003)

    def want(self, _desired: Desired, numbers: list[int]) -> bool:
        if self._bytes.remaining_bytes() and self._bytes.ConsumeProbability() < 0.05:
            return False
        for asked in numbers:
            if not self._bytes.remaining_bytes():
                self.fetcher.deliver(_ARCHIVE, asked, _DATA[asked * _BLOCK : (asked + 1) * _BLOCK])
                continue
            for _ in range(self._bytes.ConsumeIntInRange(0, 2)):
                self._deliver(asked)
        return True

    def _deliver(self, asked: int) -> None:
        archive = self._bytes.PickValueInList([_ARCHIVE, _ARCHIVE, _ARCHIVE, _OTHER, ""])
        number = self._bytes.PickValueInList([asked, asked, asked + 1, -1, self._bytes.ConsumeInt(9)])
        right = _DATA[number * _BLOCK : (number + 1) * _BLOCK] if 0 <= number < _COUNT else b""
        data = self._bytes.PickValueInList([right, right, right[:-1], bytes(len(right)), self._bytes.ConsumeBytes(9)])
        if data != right:
            self._falsified.add(number)
        self.fetcher.deliver(archive, number, data)


def _deliveries(bytes_: atheris.FuzzedDataProvider) -> None:
    falsified: set[int] = set()
    into = FakeIncoming(len(_DATA), _BLOCK)
    with contextlib.suppress(FetchError):
        _Source(bytes_, falsified).fetcher.fetch(_WISH, into, lambda _: None, lambda: False)
    assert len(into.puts) == len(set(into.puts))
    for number, data in into.held.items():
        assert number in falsified or data == _DATA[number * _BLOCK : (number + 1) * _BLOCK]


def seeds() -> list[bytes]:
    """Inputs from which mutations get somewhere."""
    by_url = {key: value for key, value in _GOOD.items() if key != "blocks"}
    by_blocks = {key: value for key, value in _GOOD.items() if key != "url"}
    return [
        b"\x00" + json.dumps(by_url).encode(),
        b"\x00" + json.dumps(by_blocks).encode(),
        b"\x61" + bytes(range(64)),
        b"\xc0" + bytes(range(200)),
    ]


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
