"""The tar headers of a payload: written one way, compared byte by byte, and explained where they differ.

A payload's manifest says the name and size of each member and the time of all of them, so every header of the archive
is known before it is read. That is why none is parsed: a header is right where it equals ours. Links, devices,
extensions, other number formats, paths out of the folder and whatever else tar can hold are other bytes, and need no
rule each that could be forgotten. ``tarfile`` only explains what came instead; its own writer is not used because its
bytes differ between versions of Python.
"""

from __future__ import annotations

import re
import tarfile

from armlet_runtime.refusal import DAMAGED, FORM, LIMIT, UNSAFE, PayloadError

BLOCK = 512
END = bytes(2 * BLOCK)
LARGEST = 8**11 - 1
"""Bytes: what the size field of a header holds."""
LONGEST_NAME = 100

_AGAIN = "get it again from who made it"
_PACK = "make it with: inv model.pack"
_COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"\xfd7zXZ\x00": "xz",
    b"PK\x03\x04": "zip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bzip2",
    b"\x5d\x00\x00": "lzma",
    b"\x04\x22\x4d\x18": "lz4",
}
_KINDS = {
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.LNKTYPE: "a hard link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a pipe",
    tarfile.DIRTYPE: "a folder",
    tarfile.GNUTYPE_SPARSE: "a sparse file",
    tarfile.GNUTYPE_LONGNAME: "a GNU long name",
    tarfile.GNUTYPE_LONGLINK: "a GNU long link",
    tarfile.XHDTYPE: "a PAX header",
    tarfile.XGLTYPE: "a global PAX header",
    tarfile.SOLARIS_XHDTYPE: "a PAX header",
}


def header(name: str, size: int, mtime: int) -> bytes:
    """The header (POSIX.1-1988, ustar) of a file owned by root that all may read.

    Raises:
        ValueError: the name is too long or not ASCII, or a number does not fit.
    """
    encoded = name.encode("ascii")
    if len(encoded) > LONGEST_NAME or not 0 <= size <= LARGEST or not 0 <= mtime <= LARGEST:
        raise ValueError(f"no header can hold {name!r}, {size}, {mtime}")
    start = encoded.ljust(100, b"\0") + b"0000644\x000000000\x000000000\0" + b"%011o\0%011o\0" % (size, mtime)
    end = b"0" + bytes(100) + b"ustar\x0000" + bytes(247)
    checksum = sum(start) + 8 * ord(" ") + sum(end)
    return start + b"%06o\0 " % checksum + end


def numbers(block: bytes) -> tuple[int, int] | None:
    """Size and time in a header of ours; None where they are in another form."""
    found = re.fullmatch(rb"([0-7]{11})\0([0-7]{11})\0", block[124:148])
    return (int(found[1], 8), int(found[2], 8)) if found else None


def padding(size: int) -> int:
    """Zero bytes after a file of ``size`` bytes."""
    return -size % BLOCK


def demand_plain(start: bytes) -> None:
    """Raises:
    PayloadError: (FORM) a file that starts like this is compressed.
    """
    for magic, name in _COMPRESSED.items():
        if start.startswith(magic):
            raise PayloadError(FORM, f"it is compressed ({name}): a payload is a plain tar", _PACK)


def other(block: bytes, wanted: str, size: int | None = None) -> PayloadError:
    """What to tell of a block that is not the header of the file ``wanted`` (of ``size`` bytes)."""
    if len(block) < BLOCK:
        return PayloadError(DAMAGED, f"it ends where {wanted} should begin", _AGAIN)
    if not any(block):
        return PayloadError(DAMAGED, f"it has no {wanted}", _AGAIN)
    try:
        found = tarfile.TarInfo.frombuf(block, "ascii", "backslashreplace")
    except (tarfile.TarError, ValueError):
        return PayloadError(DAMAGED, f"there is no tar header where {wanted} should begin", _AGAIN)
    told = found.name.encode("unicode_escape").decode("ascii")
    if found.type in _KINDS:
        return PayloadError(UNSAFE, f"it holds {_KINDS[found.type]}, {told}, where {wanted} should be", _PACK)
    if found.name.startswith("/") or ".." in found.name.split("/"):
        return PayloadError(UNSAFE, f"it holds a path out of its folder: {told}", _PACK)
    if found.name != wanted:
        return PayloadError(FORM, f"it holds {told} where {wanted} should be", _PACK)
    if size is not None and found.size != size:
        return PayloadError(DAMAGED, f"{wanted} has {found.size} bytes in it, and {size} were signed", _AGAIN)
    if not 0 <= found.size <= LARGEST:
        return PayloadError(LIMIT, f"the size of {wanted} is {found.size}", _PACK)
    return PayloadError(FORM, f"the tar header of {wanted} is written in another form than a payload's", _PACK)
