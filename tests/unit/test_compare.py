"""What differs between two folders is named down to the member of an archive and the section of an ELF file."""

from __future__ import annotations

import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from armlet import compare
from tests.fakes.elf_file import FakeElf


def tar(members: dict[str, bytes], *, kind: str = "w:xz", mtime: int = 0, mode: int = 0o644) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=kind) as archive:  # type: ignore[call-overload]
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime, info.mode = len(data), mtime, mode
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def wheel(members: dict[str, bytes], year: int = 2025) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name, (year, 1, 1, 0, 0, 0)), data)
    return out.getvalue()


def deb(members: dict[str, bytes], time: str = "0") -> bytes:
    def member(name: str, data: bytes) -> bytes:
        return (
            f"{name + '/':16}{time:12}{'0':6}{'0':6}{'100644':8}{len(data):<10}`\n".encode()
            + data
            + b"\n" * (len(data) % 2)
        )

    return b"!<arch>\n" + b"".join(member(name, data) for name, data in members.items())


def found(name: str, one: bytes, two: bytes) -> list[tuple[str, str]]:
    return [(each.path, each.what) for each in compare.data(name, one, two)]


def test_equal_folders_have_no_difference(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name / "inner").mkdir(parents=True)
        (tmp_path / name / "inner/file").write_bytes(tar({"x": b"1"}))
        (tmp_path / name / "link").symlink_to("inner")
    assert compare.folders(tmp_path / "a", tmp_path / "b") == ()


def test_names_kinds_links_and_modes_count(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    for folder in (a, b):
        folder.mkdir()
        (folder / "program").write_text("x")
    (a / "mine").write_text("")
    (b / "other").write_text("")
    (a / "link").symlink_to("x")
    (b / "link").symlink_to("y")
    (a / "thing").mkdir()
    (b / "thing").write_text("")
    os.chmod(b / "program", 0o755)  # noqa: PTH101
    told = {each.path: each.what for each in compare.folders(a, b)}
    assert told["mine"] == "only in the first"
    assert told["other"] == "only in the second"
    assert told["link"] == "target: 'x' and 'y'"
    assert told["thing"] == "kind: 'folder' and 'file'"
    assert told["program"] == "runs: False and True"


def test_who_may_read_a_file_is_the_machines_matter(tmp_path: Path) -> None:
    for name, mode in (("a", 0o644), ("b", 0o664)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("x")
        (tmp_path / name / "file").chmod(mode)
    assert compare.folders(tmp_path / "a", tmp_path / "b") == ()


def test_a_line_of_a_text() -> None:
    assert found("a.json", b"1\n2\n", b"1\n3\n") == [("a.json", "line 2: '2' and '3'")]
    assert found("a.txt", b"1\n", b"1\n2\n") == [("a.txt", "line 2: '' and '2'")]
    [(_, what)] = found("long", b"x" * 9000 + b"a", b"x" * 9000 + b"b")
    assert len(what) < 500


def test_the_end_of_a_line_counts() -> None:
    [(_, what)] = found("a.txt", b"1\n", b"1\r\n")
    assert "first at 0x1" in what


def test_a_byte_of_what_is_no_text() -> None:
    assert found("a.bin", b"\0\xff\0", b"\0\xff\1") == [("a.bin", "3 bytes, first at 0x2")]
    [(_, what)] = found("a.bin", b"\0\xff" + b"/home/one/x", b"\0\xff" + b"/home/two/x")
    assert "/home/one/x" in what
    assert "/home/two/x" in what


def test_a_section_of_an_elf_file() -> None:
    [(path, what)] = found("lib.so", FakeElf(extra=b"one").build(), FakeElf(extra=b"two").build())
    assert path.startswith("lib.so > .")
    assert "one" in what or "first at" in what


def test_a_build_id_that_differs_is_named() -> None:
    paths = {path for path, _ in found("l", FakeElf(build_id=b"1" * 20).build(), FakeElf(build_id=b"2" * 20).build())}
    assert paths == {"l > .note.gnu.build-id"}


@pytest.mark.parametrize("pack", [tar, wheel, deb])
def test_a_member_of_an_archive(pack: object) -> None:
    assert callable(pack)
    one, two = pack({"same": b"x", "a": b"text one\n"}), pack({"same": b"x", "a": b"text two\n"})
    assert found("p", one, two) == [("p > a", "line 1: 'text one' and 'text two'")]


def test_an_archive_in_an_archive() -> None:
    inner = [tar({"./lib.so": FakeElf(extra=extra).build()}, kind="w:gz") for extra in (b"one", b"two")]
    one, two = (deb({"debian-binary": b"2.0\n", "data.tar.gz": data}) for data in inner)
    assert found("x.deb", one, two)[0][0].startswith("x.deb > data.tar.gz > ./lib.so > .")


@pytest.mark.parametrize(
    ("one", "two", "key"),
    [
        (tar({"a": b"x"}), tar({"a": b"x"}, mtime=5), "time"),
        (tar({"a": b"x"}), tar({"a": b"x"}, mode=0o600), "mode"),
        (wheel({"a": b"x"}), wheel({"a": b"x"}, 2026), "time"),
        (deb({"a": b"x"}), deb({"a": b"x"}, "9"), "time"),
    ],
)
def test_what_an_archive_says_of_its_members(one: bytes, two: bytes, key: str) -> None:
    [(path, what)] = found("p", one, two)
    assert path == "p > a"
    assert what.startswith(f"{key}: ")


def test_the_same_members_packed_otherwise() -> None:
    [(path, what)] = found("p.tar", tar({"a": b"x" * 99}, kind="w:xz"), tar({"a": b"x" * 99}, kind="w:gz"))
    assert (path, what.partition(";")[0]) == ("p.tar", "the same contents in other bytes")
    assert found("p", tar({"a": b"", "b": b""}), tar({"b": b"", "a": b""})) == [
        ("p", "the same members in another order")
    ]


def test_a_damaged_archive_is_bytes() -> None:
    whole = tar({"a": b"x" * 999})
    [(path, what)] = found("p.tar.xz", whole, whole[:50])
    assert path == "p.tar.xz"
    assert f"{len(whole)} and 50 bytes" in what
