"""Which file systems a store may be on, and how one that may not is told."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from armlet_runtime.store import filesystem
from armlet_runtime.store.disk import Disk
from armlet_runtime.store.errors import StoreError
from armlet_runtime.store.filesystem import SAFE, UNSAFE, Mount, demand_renames, magic_of, mount_of, refusal_of

TABLE = """\
22 1 179:2 / / rw,relatime shared:1 - ext4 /dev/root rw
23 22 0:21 / /proc rw shared:2 - proc proc rw
30 22 179:1 / /boot rw shared:9 - vfat /dev/mmcblk0p1 rw,umask=0022
31 22 179:3 / /media/a\\040stick rw - exfat /dev/sda1 rw
32 22 179:4 / /data rw master:3 - ext4 /dev/mmcblk0p4 rw
33 32 0:55 /x /data rw - fuse.sshfs far: rw
34 22 179:5 / /old rw - ext2 /dev/sdb rw
cut short
35 22 - rw
"""


@pytest.mark.parametrize(
    ("path", "point", "kind"),
    [
        ("/var/lib/armlet", "/", "ext4"),
        ("/boot", "/boot", "vfat"),
        ("/boot/armlet", "/boot", "vfat"),
        ("/bootless", "/", "ext4"),
        ("/media/a stick/armlet", "/media/a stick", "exfat"),
        ("/data/armlet", "/data", "fuse.sshfs"),
        ("/old/armlet", "/old", "ext2"),
    ],
)
def test_the_mount_is_the_nearest_and_the_last(path: str, point: str, kind: str) -> None:
    assert mount_of(Path(path), TABLE) == Mount(point, kind)


@pytest.mark.parametrize("table", ["", "nonsense\n - \n"])
def test_without_a_table_the_magic_number_has_to_do(table: str) -> None:
    mount = mount_of(Path("/x"), table)
    assert refusal_of(0xEF53, mount) == ""
    assert "FAT" in refusal_of(0x4D44, mount)


@pytest.mark.parametrize("magic", SAFE)
def test_safe_ones_are_taken(magic: int) -> None:
    assert refusal_of(magic, Mount("/", SAFE[magic])) == ""


@pytest.mark.parametrize("magic", UNSAFE)
def test_unsafe_ones_are_refused_with_their_place_and_name(magic: int) -> None:
    told = refusal_of(magic, Mount("/mnt/card", "kind"))
    assert "/mnt/card" in told
    assert UNSAFE[magic] in told


def test_ext2_has_the_number_of_ext4_and_is_refused() -> None:
    assert "ext2" in refusal_of(0xEF53, Mount("/old", "ext2"))
    assert refusal_of(0xEF53, Mount("/old", "ext3")) == ""


def test_an_unknown_one_is_refused_as_such() -> None:
    assert "does not know" in refusal_of(0x12345678, Mount("/m", "newfs"))
    assert "0x12345678" in refusal_of(0x12345678, Mount("/", ""))


def test_no_number_is_in_both_tables() -> None:
    assert not SAFE.keys() & UNSAFE.keys()


def test_the_kernel_is_asked() -> None:
    assert magic_of(Path("/proc")) == 0x9FA0
    with pytest.raises(StoreError, match="/proc") as caught:
        filesystem.demand_safe(Path("/proc/self"))
    assert (caught.value.category, "ext4" in caught.value.hint) == ("store", True)
    with pytest.raises(OSError, match="No such") as missing:
        magic_of(Path("/nowhere/at/all"))
    assert missing.value.errno == errno.ENOENT


def test_the_probe_leaves_nothing(tmp_path: Path) -> None:
    demand_renames(Disk(), tmp_path)
    assert not [*tmp_path.iterdir()]


class FakeWithoutReplacing(Disk):
    """Of a file system that says that it replaced a file, and did not."""

    def rename(self, path: Path, target: Path) -> None:
        if not target.exists():
            super().rename(path, target)


def test_the_probe_finds_a_rename_that_does_nothing(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="replaced"):
        demand_renames(FakeWithoutReplacing(), tmp_path)


class FakeWithoutFolderSync(Disk):
    def sync_folder(self, path: Path) -> None:
        raise OSError(errno.EINVAL, "no sync of folders")


def test_the_probe_finds_a_folder_that_cannot_be_synced(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no sync"):
        demand_renames(FakeWithoutFolderSync(), tmp_path)
    assert not [*tmp_path.iterdir()]
