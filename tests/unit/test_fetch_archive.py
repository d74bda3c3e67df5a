"""Unpacking: what lands where, what is refused, and that equal archives give equal trees."""

from __future__ import annotations

import io
import os
import random
import stat
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest
import zstandard

from armlet.errors import ArmletError
from armlet.fetch import unpack
from armlet.reproducible import EPOCH


def member(name: str, data: bytes = b"", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in fields.items():
        setattr(info, key, value)
    return info, data


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tuple[tarfile.TarInfo, bytes]:
    return member(name, type=kind, linkname=target)


def tar_bytes(members: Iterable[tuple[tarfile.TarInfo, bytes]], mode: str = "w") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as tar:  # type: ignore[call-overload]
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    return stream.getvalue()


def write(path: Path, members: Iterable[tuple[tarfile.TarInfo, bytes]], mode: str = "w") -> Path:
    path.write_bytes(tar_bytes(members, mode))
    return path


def ar_bytes(members: dict[str, bytes]) -> bytes:
    out = b"!<arch>\n"
    for name, data in members.items():
        out += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2)
    return out


def tree(folder: Path) -> dict[str, bytes | None]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


PLAIN = [member("top/a.txt", b"a"), member("top/b/c.sh", b"c", mode=0o750), member("other/x", b"x")]

BULKY = [member("a", random.Random(1).randbytes(5000))]


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_every_compression_is_known(tmp_path: Path, mode: str) -> None:
    unpack(write(tmp_path / "a.tar", PLAIN, mode), tmp_path / "out", strip=1)
    assert tree(tmp_path / "out") == {"a.txt": b"a", "b": None, "b/c.sh": b"c", "x": b"x"}


def test_zstd_is_known(tmp_path: Path) -> None:
    (tmp_path / "a.tar.zst").write_bytes(zstandard.compress(tar_bytes(PLAIN)))
    unpack(tmp_path / "a.tar.zst", tmp_path / "out", strip=1)
    assert tree(tmp_path / "out")["a.txt"] == b"a"


@pytest.mark.parametrize("name", ["data.tar.xz", "data.tar.xz/"])
def test_a_debian_package_gives_its_files(tmp_path: Path, name: str) -> None:
    data = tar_bytes([member("./usr/include/x.hpp", b"x"), member("./usr/share/doc/x", b"doc")], "w:xz")
    parts = {"debian-binary": b"2.0\n", "control.tar.xz": b"odd", name: data}
    (tmp_path / "x.deb").write_bytes(ar_bytes(parts))
    unpack(tmp_path / "x.deb", tmp_path / "out", keep=["usr/include"])
    assert tree(tmp_path / "out") == {"usr": None, "usr/include": None, "usr/include/x.hpp": b"x"}


def test_a_wheel_gives_its_files_with_their_executable_bits(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.whl", "w") as archive:
        tool = zipfile.ZipInfo("data/bin/tool")
        tool.external_attr = 0o100755 << 16
        archive.writestr(tool, "#!/bin/sh\n")
        archive.writestr("x.py", "")
    unpack(tmp_path / "x.whl", tmp_path / "out")
    assert os.access(tmp_path / "out/data/bin/tool", os.X_OK)
    assert stat.S_IMODE((tmp_path / "out/x.py").stat().st_mode) == 0o644


def test_only_what_is_kept_is_written_and_names_are_whole(tmp_path: Path) -> None:
    archive = write(
        tmp_path / "a.tar",
        [member("b/libs/mp11/x", b"x"), member("b/libs/mp11-not/y", b"y"), member("b/LICENCE", b"l"), member("b/z")],
    )
    unpack(archive, tmp_path / "out", strip=1, keep=["libs/mp11", "LICENCE"])
    assert tree(tmp_path / "out") == {"LICENCE": b"l", "libs": None, "libs/mp11": None, "libs/mp11/x": b"x"}


def test_a_kept_path_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ArmletError, match="has no nowhere"):
        unpack(write(tmp_path / "a.tar", PLAIN), tmp_path / "out", keep=["top", "nowhere"])


def test_modes_and_times_do_not_depend_on_the_archive(tmp_path: Path) -> None:
    odd = [
        member("d", type=tarfile.DIRTYPE, mode=0o700, mtime=7),
        member("d/a", b"a", mode=0o4600, mtime=99, uid=1234),
        member("d/run", b"r", mode=0o711),
        link("d/to-a", "a"),
    ]
    unpack(write(tmp_path / "a.tar", odd), tmp_path / "out")
    found = {path.name: path.lstat() for path in [tmp_path / "out", *(tmp_path / "out").rglob("*")]}
    assert {int(one.st_mtime) for one in found.values()} == {EPOCH}
    modes = {name: oct(stat.S_IMODE(one.st_mode)) for name, one in found.items() if name != "to-a"}
    assert modes == {"out": "0o755", "d": "0o755", "a": "0o644", "run": "0o755"}


def test_links_inside_the_tree_are_kept(tmp_path: Path) -> None:
    members = [
        link("p/docs/README", "../README"),
        member("p/README", b"r"),
        link("p/gone", "not-here"),
        link("p/d", "docs"),
    ]
    unpack(write(tmp_path / "a.tar", members), tmp_path / "out", strip=1)
    assert (tmp_path / "out/docs/README").read_bytes() == b"r"
    assert (tmp_path / "out/gone").readlink() == Path("not-here")
    assert (tmp_path / "out/d/README").read_bytes() == b"r"


def test_hard_links_become_files(tmp_path: Path) -> None:
    members = [member("p/a", b"a", mode=0o755), link("p/b", "p/a", tarfile.LNKTYPE)]
    unpack(write(tmp_path / "a.tar", members), tmp_path / "out", strip=1)
    assert tree(tmp_path / "out") == {"a": b"a", "b": b"a"}
    assert os.access(tmp_path / "out/b", os.X_OK)


def test_links_that_go_round_in_circles_lead_nowhere_else(tmp_path: Path) -> None:
    unpack(write(tmp_path / "a.tar", [link("a", "b"), link("b", "a")]), tmp_path / "out")
    assert (tmp_path / "out/a").readlink() == Path("b")


@pytest.mark.parametrize(
    "members",
    [
        [member("/etc/evil", b"x")],
        [member("../evil", b"x")],
        [member("a/../../evil", b"x")],
        [link("out", "/etc")],
        [link("a/out", "../..")],
        [link("here", "."), link("up", "here/..")],
        [link("one", "two/../.."), link("two", "d"), member("d/x")],
        [link("way", "/tmp"), member("way/evil", b"x")],
        [link("b", "../../evil", tarfile.LNKTYPE)],
        [member("pipe", type=tarfile.FIFOTYPE)],
        [member("disk", type=tarfile.BLKTYPE)],
        [member("x", b"x"), link("x", "y")],
        [link("way", "../.."), link("way/evil", "x")],
    ],
)
def test_whatever_reaches_out_of_the_folder_is_refused(
    tmp_path: Path, members: list[tuple[tarfile.TarInfo, bytes]]
) -> None:
    inside = tmp_path / "in"
    archive = write(tmp_path / "a.tar", members)
    with pytest.raises(ArmletError) as caught:
        unpack(archive, inside / "out")
    assert caught.value.where == "a.tar"
    assert "evil" not in {path.name for path in tmp_path.rglob("*") if "out" not in path.parts}
    assert not Path("/tmp/evil").exists()
    assert not Path("/etc/evil").exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no archive at all",
        tar_bytes(BULKY, "w:gz")[:3000],
        tar_bytes(BULKY, "w:xz")[:3000],
        zstandard.compress(tar_bytes(BULKY))[:3000],
        b"PK\x03\x04 broken",
        b"!<arch>\nshort",
        ar_bytes({"debian-binary": b"2.0\n"}),
        ar_bytes({"data.tar.xz": b"no tar"}),
        tar_bytes([link("b", "a", tarfile.LNKTYPE)]),
        tar_bytes([member("a", b"a"), link("a", "a", tarfile.LNKTYPE)]),
        tar_bytes([member("a", b"a"), member("a/b", b"b")]),
        tar_bytes([member("a/b", b"b"), member("a", b"a")]),
    ],
)
def test_damaged_archives_are_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.tar").write_bytes(content)
    with pytest.raises(ArmletError, match="cannot be unpacked"):
        unpack(tmp_path / "a.tar", tmp_path / "out")
