"""Fuzzes the reader of payloads' archives, which come from whoever could write to a topic or a server.

    .venv/bin/python -m pip install atheris
    PYTHONPATH=.:device .venv/bin/python -m fuzz.payload_archive -runs=1000000 [folder with inputs]

The first byte chooses: an archive as it is; one that is right but for a few bytes that are changed, taken out or put
in; or the manifest of one that is otherwise right. Each is read as one that need not be signed, with a verifier that
takes any signature, and with one that takes none; some are unpacked. A finding is any exception but the refusal, an
archive taken that nobody signed, a file out of its folder or left behind, or memory beyond the stated bound.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import shutil
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["armlet_runtime"]):
    from armlet_runtime.payload import Payload, verify_archive
    from armlet_runtime.refusal import PayloadError
    from armlet_runtime.signature import Key

from fuzz.bounded import bounded
from tests.fakes import payloads

FIXED = 6 << 20
TIMES = 60
"""Bytes of memory for each of an archive; the manifest alone is held as a whole, and as what is in it."""
_UNPACKED_ONE_IN = 16
_LIMIT = 1 << 20
_KEYS = (Key("k", bytes(32)),)
_RIGHT = payloads.archive()
_GOLDEN = [
    {
        "name": "0",
        "atol": 0.1,
        "rtol": 0,
        "inputs": [{"name": "x", "dtype": "float", "shape": [4, 32], "file": "golden/0/input-0.bin"}],
        "outputs": [{"name": "y", "dtype": "float", "shape": [0], "file": "golden/0/output-0.bin"}],
    }
]
_MANIFEST = payloads.manifest(golden=_GOLDEN, threads=2)

_runs = 0
_place = Path(tempfile.mkdtemp(prefix="armlet-fuzz-"))


def one_input(data: bytes) -> None:
    """Raises for a finding."""
    global _runs
    _runs += 1
    archive = _built(data[:1], data[1:])
    with bounded(len(archive), times=TIMES, fixed=FIXED):
        _read(archive)


def _built(kind: bytes, rest: bytes) -> bytes:
    if kind < b"\x40":
        return rest
    if kind < b"\x90":
        return payloads.packed(payloads.members(text=rest, key=None))
    bytes_ = atheris.FuzzedDataProvider(rest)
    changed = bytearray(_RIGHT)
    for _ in range(bytes_.ConsumeIntInRange(0, 4)):
        at = bytes_.ConsumeIntInRange(0, len(changed))
        if bytes_.ConsumeBool():
            del changed[at : at + bytes_.PickValueInList([1, 7, 512, 1024, bytes_.ConsumeIntInRange(0, 4096)])]
        new = bytes_.ConsumeBytes(bytes_.ConsumeIntInRange(0, 12))
        changed[at : at + (len(new) if bytes_.ConsumeBool() else 0)] = new
    return bytes(changed)


def _read(archive: bytes) -> None:
    with contextlib.suppress(PayloadError):
        _checked(archive, verify_archive(io.BytesIO(archive), None, limit=_LIMIT))
    with contextlib.suppress(PayloadError):
        verify_archive(io.BytesIO(archive), _KEYS, limit=_LIMIT, verifier=lambda *_: True)
    with contextlib.suppress(PayloadError):
        verify_archive(io.BytesIO(archive), _KEYS, limit=_LIMIT, verifier=lambda *_: False)
        raise AssertionError("taken, though nobody signed it")
    if _runs % _UNPACKED_ONE_IN == 0:
        _unpack(archive)


def _checked(archive: bytes, found: Payload) -> None:
    sizes = [entry.size for entry in found.files]
    assert sum(sizes) <= min(_LIMIT, len(archive))


def _unpack(archive: bytes) -> None:
    around = _place / "around"
    into = around / "into"
    into.mkdir(parents=True)
    try:
        found = verify_archive(io.BytesIO(archive), None, limit=_LIMIT, into=into)
    except PayloadError:
        assert not list(into.iterdir()), "something is left of what was refused"
    else:
        for entry in found.files:
            assert hashlib.sha256((into / entry.path).read_bytes()).hexdigest() == entry.sha256
        there = {str(path.relative_to(into)) for path in into.rglob("*") if path.is_file()}
        assert there - {"payload.json", "payload.json.sig"} == {entry.path for entry in found.files}
    assert list(around.iterdir()) == [into], "something was written out of the folder"
    assert list(_place.iterdir()) == [around]
    shutil.rmtree(around)


def seeds() -> list[bytes]:
    """Inputs from which mutations get somewhere."""
    return [
        b"\x00" + _RIGHT,
        b"\x00" + payloads.archive(key=None),
        b"\x50" + _MANIFEST,
        b"\xa0" + bytes(range(64)),
    ]


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
