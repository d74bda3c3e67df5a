"""Whether a store may be on a file system: one that renames a file into place wholly or not at all, also where the
power goes."""

from __future__ import annotations

import ctypes
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from armlet_runtime.store.disk import NEW, Disk, remove_tree, replace
from armlet_runtime.store.errors import StoreError

SAFE: dict[int, str] = {
    0xEF53: "ext4",
    0x58465342: "xfs",
    0x9123683E: "btrfs",
    0xF2F52010: "f2fs",
    0x24051905: "ubifs",
    0x72B6: "jffs2",
    0x2FC12FC1: "zfs",
    0xCA451A4E: "bcachefs",
    0x3434: "nilfs2",
    0x794C7630: "overlay",
    0x01021994: "tmpfs",
    0x858458F6: "ramfs",
}
"""Magic number of statfs(2) -> name. ext2, ext3 and ext4 share one: the table of mounts tells them apart."""

UNSAFE: dict[int, str] = {
    0x4D44: "FAT",
    0x2011BAB0: "exFAT",
    0x5346544E: "NTFS",
    0x7366746E: "NTFS",
    0x65735546: "FUSE",
    0xFF534D42: "CIFS",
    0xFE534D42: "SMB",
    0x517B: "SMB",
    0x6969: "NFS",
    0x01021997: "9p",
    0x6A656A63: "virtiofs",
    0x5346414F: "AFS",
    0x00C36400: "CephFS",
    0x4244: "HFS",
    0x482B: "HFS+",
    0x137F: "minix",
    0x138F: "minix",
    0x2468: "minix",
    0x2478: "minix",
    0x4D5A: "minix",
    0xADF5: "ADFS",
    0x9FA0: "proc",
    0x62656572: "sysfs",
    0x15013346: "UDF",
}
"""Those that are often met, by name; whatever is in neither table is refused as well."""

NOT_SAFE_THOUGH = ("ext2",)
"""They have the magic number of a safe one, and no journal."""

PROBE = "probe"
"""A file that is there for a moment."""
INSTEAD = "use ext4, f2fs, ubifs, xfs or btrfs, for instance on a partition of its own, and say where: [updates] store"
_STATFS_BYTES = 512
_OCTAL = re.compile(r"\\([0-7]{3})")


class Mount(NamedTuple):
    point: str
    kind: str
    """As the kernel calls it: ``vfat``, ``fuse.sshfs``."""


def magic_of(path: Path) -> int:
    """``f_type`` of statfs(2). Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = (ctypes.c_ulong * (_STATFS_BYTES // ctypes.sizeof(ctypes.c_ulong)))()
    # Where words have 32 bits, the other one fails on large file systems.
    statfs = getattr(libc, "statfs64", None) or libc.statfs
    if statfs(os.fsencode(path), ctypes.byref(buffer)):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(path))
    # It is the first member on every processor that Armlet knows, as wide as a word; no number has more than 32 bits.
    return int(buffer[0]) & 0xFFFFFFFF


def mount_of(path: Path, table: str) -> Mount:
    """What ``path`` is on, by the text of ``/proc/self/mountinfo``; of mounts on one point the last one counts."""
    place = str(path)
    found = Mount("/", "")
    for line in table.splitlines():
        left, _, right = line.partition(" - ")
        words, kinds = left.split(" "), right.split(" ")
        if len(words) < 6 or not kinds[0]:
            continue
        point = _OCTAL.sub(lambda octal: chr(int(octal[1], 8)), words[4])
        inside = point == "/" or place == point or place.startswith(point + "/")
        if inside and len(point) >= len(found.point):
            found = Mount(point, kinds[0])
    return found


def refusal_of(magic: int, mount: Mount) -> str:
    """Why there can be no store there, in words; empty: there can."""
    if magic in SAFE and mount.kind not in NOT_SAFE_THOUGH:
        return ""
    name = UNSAFE.get(magic) or mount.kind or f"unknown, 0x{magic:x}"
    kind = f"{name}, {mount.kind}" if mount.kind and mount.kind.lower() != name.lower() else name
    known = magic in UNSAFE or mount.kind in NOT_SAFE_THOUGH
    why = (
        "a file cannot be replaced safely there" if known else "Armlet does not know whether a file is replaced safely"
    )
    return f"the file system at {mount.point} ({kind}) is none for payloads: {why}"


def demand_safe(root: Path) -> None:
    """Raises:
    StoreError: ("store") there can be no store in this folder.
    OSError: nobody can say.
    """
    place = root.resolve()
    table = ""
    with suppress(OSError):
        table = Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape")
    refusal = refusal_of(magic_of(place), mount_of(place, table))
    if refusal:
        raise StoreError("store", refusal, INSTEAD)


def demand_renames(disk: Disk, root: Path) -> None:
    """Tries what everything rests on: a file replaced by another, and a folder synced.

    Raises:
        StoreError: ("store") it does not do what it should.
        OSError: it fails.
    """
    probe = root / PROBE
    try:
        for content in (b"before", b"after"):
            replace(disk, probe, content)
        if probe.read_bytes() != b"after" or os.path.lexists(str(probe) + NEW):
            raise StoreError("store", f"a file in {root} is not what it was replaced by", INSTEAD)
    finally:
        with suppress(OSError):
            remove_tree(disk, probe)


def is_readonly(root: Path) -> bool:
    """Whether the file system is mounted so. Raises OSError."""
    return bool(os.statvfs(root).f_flag & os.ST_RDONLY)


def free_bytes(root: Path) -> int:
    """What may still be written. Raises OSError."""
    found = os.statvfs(root)
    return found.f_bavail * found.f_frsize
