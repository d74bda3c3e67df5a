"""A fake disk that notes what is done to it, and a fake medium that says what a power loss could leave of that.

The medium promises less than any file system does: what was synced is there; a write that was not is absent, whole, or
torn (cut short, or of full length and zeros); of the changes of names since a folder was last synced any may be there
and any may be lost, in whatever order they were made. A rename is one change: it belongs to the folder of the new name.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from armlet_runtime.store.disk import Disk

Tree = tuple[tuple[str, bytes | None], ...]
"""(path, content; None: a folder), sorted."""
Torn = Literal["absent", "present", "cut", "zeros"]
ALL_SUBSETS = 6
"""Of as many changes of names every subset is looked at; of more a part."""
MOST_VARIANTS = 64
"""Of the contents that the files may have together, for one set of names."""


class Op(NamedTuple):
    name: str
    arguments: tuple[Any, ...]
    """Paths are relative."""


class RecordingDisk(Disk):
    """A real disk that keeps a list of what it did. ``before`` is called ahead of each, and may raise."""

    def __init__(self, base: Path, before: Callable[[int, str], None] | None = None) -> None:
        self.base = base
        self.ops: list[Op] = []
        self.calls = 0
        self._before = before

    def _begin(self, name: str) -> None:
        self.calls += 1
        if self._before:
            self._before(self.calls, name)

    def _path(self, path: Path) -> str:
        return str(path.relative_to(self.base))

    def mkdir(self, path: Path) -> None:
        self._begin("mkdir")
        super().mkdir(path)
        self.ops.append(Op("mkdir", (self._path(path),)))

    def create(self, path: Path) -> int:
        self._begin("create")
        descriptor = super().create(path)
        self.ops.append(Op("create", (self._path(path), descriptor)))
        return descriptor

    def open(self, path: Path) -> int:
        self._begin("open")
        descriptor = super().open(path)
        self.ops.append(Op("open", (self._path(path), descriptor)))
        return descriptor

    def write(self, descriptor: int, data: bytes, offset: int) -> int:
        self._begin("write")
        done = super().write(descriptor, data, offset)
        self.ops.append(Op("write", (descriptor, data[:done], offset)))
        return done

    def allocate(self, descriptor: int, size: int) -> None:
        self._begin("allocate")
        super().allocate(descriptor, size)
        self.ops.append(Op("allocate", (descriptor, size)))

    def sync(self, descriptor: int) -> None:
        # The medium of a test is memory: there is nothing to wait for.
        self._begin("sync")
        self.ops.append(Op("sync", (descriptor,)))

    def close(self, descriptor: int) -> None:
        # Also where the kernel complains, the descriptor is gone; nothing can fail before.
        super().close(descriptor)
        self.ops.append(Op("close", (descriptor,)))

    def rename(self, path: Path, target: Path) -> None:
        self._begin("rename")
        super().rename(path, target)
        self.ops.append(Op("rename", (self._path(path), self._path(target))))

    def unlink(self, path: Path) -> None:
        self._begin("unlink")
        super().unlink(path)
        self.ops.append(Op("unlink", (self._path(path),)))

    def rmdir(self, path: Path) -> None:
        self._begin("rmdir")
        super().rmdir(path)
        self.ops.append(Op("rmdir", (self._path(path),)))

    def sync_folder(self, path: Path) -> None:
        self._begin("sync_folder")
        self.ops.append(Op("sync_folder", (self._path(path),)))


@dataclass
class _File:
    content: bytes = b""
    """What was synced."""
    pending: list[tuple[int, bytes]] = field(default_factory=list)
    """(offset, data); an allocation is a write of nothing but zeros that changes no byte."""


class _Change(NamedTuple):
    """A name gets another inode, or none; ``source`` loses it where it still has it."""

    folder: int
    name: str
    inode: int | None
    gone: int | None
    """What an unlink takes away: a name that has another inode by then is left alone."""
    source: tuple[int, str] | None = None


Names = dict[int, dict[str, int]]
_ROOT = 0


class FakeMedium:
    """Follows a list of ops; ``states`` at any time."""

    def __init__(self, tree: Tree = ()) -> None:
        self._numbers = itertools.count(_ROOT + 1)
        self._files: dict[int, _File] = {}
        self._now: Names = {_ROOT: {}}
        self._descriptors: dict[int, int] = {}
        for path, content in tree:
            self._add(path, content)
        self._synced: Names = {number: dict(names) for number, names in self._now.items()}
        self._pending: list[_Change] = []

    def do(self, op: Op) -> None:
        getattr(self, f"_{op.name}")(*op.arguments)

    def now(self) -> Tree:
        """What a reader sees while the power is there."""
        contents = {number: _content(file.content, file.pending) for number, file in self._files.items()}
        return _tree(self._now, contents)

    def states(self, seed: int) -> Iterator[Tree]:
        """What there may be after a power loss; the same one may come more than once."""
        chance = random.Random(seed)
        for chosen in _subsets(len(self._pending), chance):
            names: Names = {number: dict(inner) for number, inner in self._synced.items()}
            for index in chosen:
                _apply(names, self._pending[index])
            reached = [number for number in _reached(names) if number in self._files]
            choices = [_contents(self._files[number], chance) for number in reached]
            for contents in _product(choices, chance):
                yield _tree(names, dict(zip(reached, contents, strict=True)))

    def _find(self, path: str) -> tuple[int, str]:
        """(folder, name)."""
        *above, name = path.split("/")
        folder = _ROOT
        for part in above:
            folder = self._now[folder][part]
        return folder, name

    def _add(self, path: str, content: bytes | None) -> None:
        folder, name = self._find(path)
        number = self._now[folder][name] = next(self._numbers)
        if content is None:
            self._now[number] = {}
        else:
            self._files[number] = _File(content)

    def _change(self, change: _Change) -> None:
        _apply(self._now, change)
        self._pending.append(change)

    def _mkdir(self, path: str) -> None:
        folder, name = self._find(path)
        number = next(self._numbers)
        self._now[number], self._synced[number] = {}, {}
        self._change(_Change(folder, name, number, None))

    def _create(self, path: str, descriptor: int) -> None:
        folder, name = self._find(path)
        number = next(self._numbers)
        self._files[number] = _File()
        self._descriptors[descriptor] = number
        self._change(_Change(folder, name, number, None))

    def _open(self, path: str, descriptor: int) -> None:
        folder, name = self._find(path)
        self._descriptors[descriptor] = self._now[folder][name]

    def _write(self, descriptor: int, data: bytes, offset: int) -> None:
        self._files[self._descriptors[descriptor]].pending.append((offset, data))

    def _allocate(self, descriptor: int, size: int) -> None:
        file = self._files[self._descriptors[descriptor]]
        length = len(_content(file.content, file.pending))
        file.pending.append((length, bytes(max(0, size - length))))

    def _sync(self, descriptor: int) -> None:
        file = self._files[self._descriptors[descriptor]]
        file.content, file.pending = _content(file.content, file.pending), []

    def _close(self, descriptor: int) -> None:
        del self._descriptors[descriptor]

    def _rename(self, path: str, target: str) -> None:
        source, (folder, name) = self._find(path), self._find(target)
        self._change(_Change(folder, name, self._now[source[0]][source[1]], None, source))

    def _unlink(self, path: str) -> None:
        folder, name = self._find(path)
        self._change(_Change(folder, name, None, self._now[folder][name]))

    _rmdir = _unlink

    def _sync_folder(self, path: str) -> None:
        above, name = self._find(path) if path != "." else (-1, "")
        folder = self._now[above][name] if name else _ROOT
        settled = [change for change in self._pending if change.folder == folder]
        for change in settled:
            _apply(self._synced, change)
        # A rename that is sure takes the old name with it, also where that was never synced.
        left = {(*change.source, change.inode) for change in settled if change.source}
        self._pending = [
            change
            for change in self._pending
            if change.folder != folder and (change.folder, change.name, change.inode) not in left
        ]


def _apply(names: Names, change: _Change) -> None:
    if change.inode is None:
        if names[change.folder].get(change.name) == change.gone:
            del names[change.folder][change.name]
        return
    if change.source:
        folder, name = change.source
        if names[folder].get(name) == change.inode:
            del names[folder][name]
    names[change.folder][change.name] = change.inode


def _subsets(count: int, chance: random.Random) -> Iterator[Sequence[int]]:
    if count <= ALL_SUBSETS:
        for size in range(count + 1):
            yield from itertools.combinations(range(count), size)
        return
    for end in range(count + 1):
        yield range(end)
    for left_out in range(count):
        yield [index for index in range(count) if index != left_out]
    for _ in range(2**ALL_SUBSETS):
        yield [index for index in range(count) if chance.random() < 0.5]


def _reached(names: Names) -> Iterator[int]:
    waiting = [_ROOT]
    while waiting:
        number = waiting.pop()
        yield number
        waiting += names.get(number, {}).values()


def _content(content: bytes, writes: Sequence[tuple[int, bytes]]) -> bytes:
    made = bytearray(content)
    for offset, data in writes:
        made += bytes(max(0, offset + len(data) - len(made)))
        made[offset : offset + len(data)] = data
    return bytes(made)


def _contents(file: _File, chance: random.Random) -> list[bytes]:
    """What a file may hold."""
    if not file.pending:
        return [file.content]
    fates: list[Torn] = ["absent", "present", "cut", "zeros"]
    count = len(file.pending)
    chosen: list[tuple[Torn, ...]] = []
    if len(fates) ** count <= MOST_VARIANTS:
        chosen += itertools.product(fates, repeat=count)
    else:
        everywhere: tuple[Torn, Torn] = ("present", "absent")
        for index, others in itertools.product(range(count), everywhere):
            chosen += [(*[others] * index, fate, *[others] * (count - index - 1)) for fate in fates]
        chosen += [tuple(chance.choice(fates) for _ in range(count)) for _ in range(MOST_VARIANTS)]
    return [*dict.fromkeys(_content(file.content, _fated(file.pending, fates_of)) for fates_of in chosen)]


def _fated(writes: Sequence[tuple[int, bytes]], fates: Sequence[Torn]) -> list[tuple[int, bytes]]:
    made = []
    for (offset, data), fate in zip(writes, fates, strict=True):
        if fate != "absent":
            kept = data[: len(data) // 2] if fate == "cut" else bytes(len(data)) if fate == "zeros" else data
            made.append((offset, kept))
    return made


def _product(choices: Sequence[Sequence[bytes]], chance: random.Random) -> Iterator[Sequence[bytes]]:
    total = 1
    for one in choices:
        total *= len(one)
    if total <= MOST_VARIANTS:
        yield from itertools.product(*choices)
        return
    # Each of a file's contents at least once, beside the first and the last of all others.
    for index, one in enumerate(choices):
        for content in one:
            yield [content if index == place else other[0] for place, other in enumerate(choices)]
            yield [content if index == place else other[-1] for place, other in enumerate(choices)]
    for _ in range(MOST_VARIANTS):
        yield [chance.choice(one) for one in choices]


def _tree(names: Names, contents: Mapping[int, bytes]) -> Tree:
    found: list[tuple[str, bytes | None]] = []
    waiting = [(_ROOT, "")]
    while waiting:
        folder, above = waiting.pop()
        for name, number in names[folder].items():
            path = f"{above}{name}"
            found.append((path, contents.get(number)))
            if number not in contents:
                waiting.append((number, f"{path}/"))
    return tuple(sorted(found))


def written_out(tree: Tree, base: Path) -> None:
    """Makes a tree real, in an empty folder."""
    for path, content in tree:
        if content is None:
            (base / path).mkdir()
        else:
            descriptor = os.open(base / path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            os.write(descriptor, content)
            os.close(descriptor)


def read_in(base: Path) -> Tree:
    """The other way round."""
    found = sorted(base.rglob("*"))
    return tuple((str(path.relative_to(base)), None if path.is_dir() else path.read_bytes()) for path in found)
