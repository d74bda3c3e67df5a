"""Archives and folders made to do harm: each is refused for its reason, and leaves nothing."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from armlet_runtime import payload, refusal
from armlet_runtime.payload_manifest import demand_harmless
from armlet_runtime.refusal import PayloadError
from armlet_runtime.signature import public_key

from tests.fakes.payloads import FILES, KEY, Member, archive, manifest, member, members, packed, public_pem, unpacked

TRUSTED = (public_key("release", public_pem()),)


def refused(data: bytes, into: Path, **how: Any) -> str:
    """The reason."""
    place = into / "in"
    place.mkdir(exist_ok=True)
    with pytest.raises(PayloadError) as caught:
        payload.verify_archive(io.BytesIO(data), TRUSTED, into=place, **how)
    assert [*into.rglob("*")] == [place]
    return caught.value.reason


def instead(at: int, *new: Member) -> bytes:
    """A right archive but for one member."""
    content = members()
    content[at : at + 1] = new
    return packed(content)


LINK = {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd", "size": 0}
SPECIAL = {
    "a symbolic link": LINK,
    "a link out of the folder": {**LINK, "linkname": "../../x"},
    "a hard link": {**LINK, "type": tarfile.LNKTYPE, "linkname": "payload.json"},
    "a character device": {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3, "size": 0},
    "a block device": {"type": tarfile.BLKTYPE, "devmajor": 8, "size": 0},
    "a pipe": {"type": tarfile.FIFOTYPE, "size": 0},
    "a folder": {"type": tarfile.DIRTYPE, "size": 0},
}


@pytest.mark.parametrize("fields", SPECIAL.values(), ids=SPECIAL)
@pytest.mark.parametrize("at", [0, 1, 2, 4])
def test_what_is_no_file(fields: dict[str, Any], at: int, tmp_path: Path) -> None:
    name = members()[at][0].name
    assert refused(instead(at, member(name, b"", **fields)), tmp_path) == refusal.UNSAFE


@pytest.mark.parametrize("name", ["/etc/passwd", "../model.ort", "golden/../../x", "/", ".."])
def test_names_out_of_the_folder(name: str, tmp_path: Path) -> None:
    assert refused(instead(2, member(name, b"x")), tmp_path) == refusal.UNSAFE


EXTENSIONS = {
    "a PAX header": (tarfile.PAX_FORMAT, {"pax_headers": {"path": "../x"}}),
    "a PAX header with another size": (tarfile.PAX_FORMAT, {"pax_headers": {"size": "9" * 30}}),
    "a sparse file in PAX": (tarfile.PAX_FORMAT, {"pax_headers": {"GNU.sparse.realsize": "99999999999"}}),
    "a GNU long name": (tarfile.GNU_FORMAT, {"path": "a" * 300}),
    "a GNU long link": (tarfile.GNU_FORMAT, {"linkname": "a" * 300, "type": tarfile.SYMTYPE}),
}


@pytest.mark.parametrize(("form", "fields"), EXTENSIONS.values(), ids=EXTENSIONS)
@pytest.mark.parametrize("at", [0, 2])
def test_extensions_of_tar(form: int, fields: dict[str, Any], at: int, tmp_path: Path) -> None:
    content = members()
    whole = packed(content[:at], end=b"") + packed([member(content[at][0].name, content[at][1], **fields)], form=form)
    assert refused(whole, tmp_path) == refusal.UNSAFE


def test_a_sparse_file(tmp_path: Path) -> None:
    assert refused(instead(2, member("model.ort", b"", type=tarfile.GNUTYPE_SPARSE)), tmp_path) == refusal.UNSAFE


def test_a_global_pax_header_in_front(tmp_path: Path) -> None:
    front = tarfile.TarInfo.create_pax_global_header({"path": "x"})
    assert refused(front + archive(), tmp_path) == refusal.UNSAFE


def patched(at: int, field: slice, value: bytes) -> bytes:
    """A right archive whose member's header has another field, and the checksum for it."""
    start = len(packed(members()[:at], end=b""))
    block = bytearray(archive()[start : start + 512])
    block[field] = value
    block[148:156] = b"%06o\0 " % tarfile.calc_chksums(bytes(block))[0]  # type: ignore[attr-defined]
    return archive()[:start] + bytes(block) + archive()[start + 512 :]


SIZE, MODE, UID, TIME, MAGIC = slice(124, 136), slice(100, 108), slice(108, 116), slice(136, 148), slice(257, 265)
FIELDS = {
    "a negative size in base 256": (SIZE, b"\xff" * 11 + b"\xf6"),
    "a huge size in base 256": (SIZE, b"\x80" + b"\x7f" * 11),
    "a size of 8 GiB": (SIZE, b"77777777777\0"),
    "a size in another notation": (SIZE, b"      02400 "),
    "another mode": (MODE, b"0004755\0"),
    "another owner": (UID, b"0001750\0"),
    "another time": (TIME, b"00000000000\0"),
    "GNU's magic": (MAGIC, b"ustar  \0"),
    "no magic": (MAGIC, bytes(8)),
    "a prefix": (slice(345, 348), b"../"),
}


@pytest.mark.parametrize(("field", "value"), FIELDS.values(), ids=FIELDS)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_headers_in_another_form(field: slice, value: bytes, at: int, tmp_path: Path) -> None:
    reasons = {refusal.FORM, refusal.UNSAFE, refusal.DAMAGED, refusal.LIMIT, refusal.SIGNATURE}
    assert refused(patched(at, field, value), tmp_path) in reasons


def test_all_members_of_another_time_than_signed(tmp_path: Path) -> None:
    content = members()
    for info, _ in content:
        info.mtime = 1
    assert refused(packed(content), tmp_path) == refusal.FORM


def compressed(data: bytes) -> dict[str, bytes]:
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as out:
        out.writestr("payload.json", data)
    return {
        "gzip": gzip.compress(data),
        "xz": lzma.compress(data),
        "lzma": lzma.compress(data, lzma.FORMAT_ALONE),
        "bzip2": bz2.compress(data),
        "zstd": zstandard.compress(data),
        "zip": zipped.getvalue(),
        "a bomb of 256 MiB": gzip.compress(bytes(1 << 28), 1),
    }


def test_compressed_archives(tmp_path: Path) -> None:
    for name, data in compressed(archive()).items():
        assert refused(data, tmp_path) == refusal.FORM, name


def changed(change: Callable[[list[Member]], None]) -> bytes:
    content = members()
    change(content)
    return packed(content)


ORDERS: dict[str, Callable[[list[Member]], None]] = {
    "an extra member": lambda content: content.append(member("extra", b"x")),
    "an extra member in front": lambda content: content.insert(0, member("extra", b"x")),
    "a member twice": lambda content: content.append(content[2]),
    "the manifest twice": lambda content: content.insert(1, content[0]),
    "another order": lambda content: content.reverse(),
    "two files changed places": lambda content: content.insert(2, content.pop(3)),
    "a missing member": lambda content: content.pop(3) and None,
    "a missing last member": lambda content: content.pop() and None,
    "a file that is longer": lambda content: content.__setitem__(2, member("model.ort", FILES["model.ort"] + b"x")),
    "a file that is shorter": lambda content: content.__setitem__(2, member("model.ort", b"x")),
    "a file of the same size": lambda content: content.__setitem__(2, member("model.ort", bytes(256 * 5))),
    "nothing": list.clear,
}


@pytest.mark.parametrize("change", ORDERS.values(), ids=ORDERS)
def test_members_that_were_not_signed(change: Callable[[list[Member]], None], tmp_path: Path) -> None:
    assert refused(changed(change), tmp_path) in {refusal.FORM, refusal.DAMAGED, refusal.SIGNATURE}


@pytest.mark.parametrize("end", [b"", bytes(512), bytes(1536), bytes(10240), bytes(1024) + b"x", archive()])
def test_every_other_end(end: bytes, tmp_path: Path) -> None:
    assert refused(packed(members(), end=end), tmp_path) in {refusal.FORM, refusal.DAMAGED}


def test_something_hidden_behind_a_file(tmp_path: Path) -> None:
    data = bytearray(archive())
    data[data.index(FILES["model.ort"]) - 512 - 1] ^= 1
    assert refused(bytes(data), tmp_path) == refusal.FORM


LISTED: dict[str, dict[str, Any]] = {
    "no files": {"files": []},
    "files that are no list": {"files": {"path": "x"}},
    "a file that is no object": {"files": ["model.ort"]},
    "a negative size": {"files": [{"path": "a", "size": -1, "sha256": "0" * 64}]},
    "a size that is no number": {"files": [{"path": "a", "size": True, "sha256": "0" * 64}]},
    "no hash": {"files": [{"path": "a", "size": 1, "sha256": "0"}]},
    "another schema": {"schema": 2},
    "a schema that only looks like one": {"schema": True},
    "no time": {"created": None},
    "a time without zeros": {"created": "2026-1-31T12:00:00Z"},
    "a time before all": {"created": "1969-12-31T23:59:59Z"},
    "a time that tar cannot hold": {"created": "2300-01-01T00:00:00Z"},
}


@pytest.mark.parametrize("fields", LISTED.values(), ids=LISTED)
def test_signed_manifests_that_make_no_sense(fields: dict[str, Any], tmp_path: Path) -> None:
    assert refused(archive(text=manifest(**fields)), tmp_path) == refusal.FORM


@pytest.mark.parametrize("text", [b"", b"[]", b"null", b"{", b"\xff", b'{"schema":1,"schema":1}', b'{"x":NaN}'])
def test_signed_text_that_is_no_manifest(text: bytes, tmp_path: Path) -> None:
    assert refused(archive(text=text), tmp_path) == refusal.FORM


NAMES = {
    "absolute": ["/etc/passwd"],
    "up": ["../x"],
    "up inside": ["a/../../x"],
    "here": ["./x"],
    "hidden": [".x"],
    "nothing": [""],
    "a folder": ["a/"],
    "two slashes": ["a//b"],
    "a backslash": ["a\\..\\b"],
    "a space": ["a b"],
    "a line end": ["a\n"],
    "a zero": ["a\0b"],
    "no ASCII": ["ä"],
    "too long": ["a" * 101],
    "twice": ["a", "a"],
    "a capital": ["model.ort", "Model.ORT"],
    "a folder's capital": ["golden/a", "Golden/b"],
    "a file as a folder": ["a", "a/b"],
    "a folder as a file": ["a/b", "a"],
    "a file as a folder, but for a capital": ["a", "A/b"],
    "the manifest": ["payload.json"],
    "the signature": ["PAYLOAD.json.sig"],
    "below the manifest": ["payload.json/x"],
}


@pytest.mark.parametrize("paths", NAMES.values(), ids=NAMES)
def test_signed_names_that_are_not_safe(paths: list[str], tmp_path: Path) -> None:
    listed = [{"path": path, "size": 0, "sha256": "0" * 64} for path in paths]
    assert refused(archive(text=manifest(files=listed)), tmp_path) == refusal.UNSAFE


def test_names_that_are_safe() -> None:
    demand_harmless(["a", "b", "c/d", "c/e", "c/f/g", "model.onnx.data", "a" * 100, "_x-1+2=3@4~5"])


def test_limits(tmp_path: Path) -> None:
    total = sum(map(len, FILES.values()))
    payload.verify_archive(io.BytesIO(archive()), TRUSTED, limit=total)
    assert refused(archive(), tmp_path, limit=total - 1) == refusal.LIMIT
    huge = {"path": "a", "size": 8**11, "sha256": "0" * 64}
    assert refused(archive(text=manifest(files=[huge])), tmp_path, limit=1 << 60) == refusal.LIMIT
    assert refused(archive(text=bytes((1 << 20) + 1)), tmp_path) == refusal.LIMIT
    assert refused(archive(text=bytes(1 << 20)), tmp_path) == refusal.FORM


def folder(tmp_path: Path) -> Path:
    return unpacked(tmp_path / "payload", members())


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def socket_of(path: Path) -> None:
    path.unlink()
    os.mknod(path, stat.S_IFSOCK | 0o600)


def folder_of(path: Path) -> None:
    path.unlink()
    path.mkdir()


def link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


HARM: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "a file that is a link": ("model.ort", link, refusal.UNSAFE),
    "a manifest that is a link": ("payload.json", link, refusal.UNSAFE),
    "a folder that is a link": ("golden", link, refusal.UNSAFE),
    "a file that is a pipe": ("model.ort", fifo, refusal.UNSAFE),
    "a manifest that is a pipe": ("payload.json", fifo, refusal.UNSAFE),
    "a manifest that is a socket": ("payload.json", socket_of, refusal.UNSAFE),
    "a manifest that is a folder": ("payload.json", folder_of, refusal.UNSAFE),
    "a signature that is a folder": ("payload.json.sig", folder_of, refusal.UNSAFE),
    "a file that is a folder": ("model.ort", folder_of, refusal.FORM),
    "a missing file": ("model.ort", Path.unlink, refusal.DAMAGED),
    "a missing manifest": ("payload.json", Path.unlink, refusal.DAMAGED),
    "a missing signature": ("payload.json.sig", Path.unlink, refusal.SIGNATURE),
    "a longer signature": ("payload.json.sig", lambda path: path.write_bytes(bytes(65)), refusal.SIGNATURE),
    "another signature": ("payload.json.sig", lambda path: path.write_bytes(bytes(64)), refusal.SIGNATURE),
    "a changed manifest": ("payload.json", lambda path: path.write_bytes(manifest() + b" "), refusal.SIGNATURE),
    "a huge manifest": ("payload.json", lambda path: os.truncate(path, 1 << 33), refusal.LIMIT),
    "another file": ("model.ort", lambda path: path.write_bytes(bytes(256 * 5)), refusal.DAMAGED),
    "a huge file": ("model.ort", lambda path: os.truncate(path, 1 << 40), refusal.DAMAGED),
    "an extra file": ("golden/extra", Path.touch, refusal.FORM),
    "an extra folder": ("golden/extra", Path.mkdir, refusal.FORM),
    "a hidden file": (".extra", Path.touch, refusal.FORM),
    "a name that is no text": ("golden/\udcff", Path.touch, refusal.FORM),
    "an extra link": ("golden/extra", lambda path: path.symlink_to("/"), refusal.UNSAFE),
}


@pytest.mark.parametrize(("path", "harm", "reason"), HARM.values(), ids=HARM)
def test_folders(path: str, harm: Callable[[Path], object], reason: str, tmp_path: Path) -> None:
    place = folder(tmp_path)
    payload.verify(place, TRUSTED)
    harm(place / path)
    with pytest.raises(PayloadError) as caught:
        payload.verify(place, TRUSTED)
    # A link's target is an extra file too, and either is found first.
    assert caught.value.reason in (reason, refusal.FORM) if harm is link else caught.value.reason == reason


def test_a_folder_may_be_reached_through_a_link_and_is_not_unpacked_again(tmp_path: Path) -> None:
    place = folder(tmp_path)
    (tmp_path / "current").symlink_to(place)
    assert payload.verify(tmp_path / "current", TRUSTED).key == TRUSTED[0]
    with pytest.raises(ValueError, match="unpacked"):
        payload.verify(place, TRUSTED, into=tmp_path)


def test_a_signature_of_another_payload(tmp_path: Path) -> None:
    content = members()
    content[1] = member("payload.json.sig", KEY.sign(b"other"))
    assert refused(packed(content), tmp_path) == refusal.SIGNATURE
