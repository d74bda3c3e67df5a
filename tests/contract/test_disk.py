"""What the crash proof rests on: no update changes a file but through ``Disk``, which the proof replaces."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

DEVICE = ROOT / "device" / "armlet_runtime"
THE_DISK = DEVICE / "store" / "disk.py"
FILES = sorted(
    {*(DEVICE / "store").rglob("*.py"), *(DEVICE / "update").rglob("*.py"), DEVICE / "payload_folder.py"} - {THE_DISK}
)
CHANGES = frozenset(
    [
        "chmod",
        "chown",
        "copyfileobj",
        "fallocate",
        "fdatasync",
        "fsync",
        "ftruncate",
        "hardlink_to",
        "lchmod",
        "link",
        "link_to",
        "makedirs",
        "mkdir",
        "mkfifo",
        "mkstemp",
        "mkdtemp",
        "move",
        "posix_fallocate",
        "pwrite",
        "pwritev",
        "removedirs",
        "rename",
        "renames",
        "rmdir",
        "rmtree",
        "symlink",
        "symlink_to",
        "touch",
        "truncate",
        "unlink",
        "utime",
        "write_bytes",
        "write_text",
        "NamedTemporaryFile",
        "TemporaryDirectory",
        "TemporaryFile",
    ]
)
"""Methods and functions, of whatever."""
OF_MODULES = {("os", "remove"), ("os", "replace"), ("os", "write"), ("shutil", "copy"), ("shutil", "copytree")}
OPENING_TO_WRITE = ("O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND")


def past_the_disk(source: str) -> Iterator[int]:
    """Lines that change a file by another way."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        receiver = ast.unparse(function.value) if isinstance(function, ast.Attribute) else ""
        if receiver in ("disk", "self._disk"):
            continue
        arguments = [ast.unparse(one) for one in (*node.args, *(keyword.value for keyword in node.keywords))]
        if name == "open":
            words = " ".join(arguments)
            mode = [one for one in arguments if one[:1] in "'\"" and set(one) & set("wax+") and len(one) < 7]
            if mode or any(flag in words for flag in OPENING_TO_WRITE):
                yield node.lineno
        elif name in CHANGES or (receiver, name) in OF_MODULES:
            yield node.lineno


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(DEVICE)))
def test_nothing_is_changed_past_the_disk(file: Path) -> None:
    assert not [*past_the_disk(file.read_text(encoding="utf-8"))]


@pytest.mark.parametrize(
    "line",
    [
        "path.mkdir()",
        "os.rename(a, b)",
        "open(path, 'wb')",
        "path.open(mode='a')",
        "os.open(path, os.O_RDWR | os.O_CLOEXEC)",
        "shutil.rmtree(path)",
        "path.write_bytes(b'')",
        "os.replace(a, b)",
        "tempfile.mkstemp()",
        "os.fsync(d)",
    ],
)
def test_the_rule_finds_what_it_looks_for(line: str) -> None:
    assert [*past_the_disk(line)] == [1]


@pytest.mark.parametrize(
    "line", ["disk.mkdir(path)", "self._disk.open(path)", "open(path, 'rb')", "'a'.replace('b', 'c')"]
)
def test_the_rule_lets_the_rest_be(line: str) -> None:
    assert not [*past_the_disk(line)]


def test_the_disk_itself_would_be_found() -> None:
    assert len([*past_the_disk(THE_DISK.read_text(encoding="utf-8"))]) > 5
