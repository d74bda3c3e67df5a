"""What a gate looks at and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from armlet.elf import ElfFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """One file or symbolic link of an artefact; ``path`` is relative to the folder that ships."""

    path: str
    size: int
    sha256: str
    elf: ElfFacts | None = None
    """None where the file is no ELF object."""
    link: str | None = None
    """Where a symbolic link points."""
    leaks: tuple[str, ...] = ()
    """Paths of the machine that built it, as they stand in the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What the SKU and its toolchain allow."""

    library: str
    """Path of the main library, e.g. ``lib/libonnxruntime.so.1.21.0``."""
    soname: str
    """Empty: a module, which its host opens by path."""
    arch: str
    needed: frozenset[str]
    """Libraries of the rootfs that may be loaded."""
    exports: frozenset[str]
    glibc: str
    glibcxx: str | None
    """None: libstdc++ is inside, nothing may be asked of the rootfs's."""
    budget: int
    """Bytes the main library may have."""
    from_host: tuple[str, ...] = ()
    """Prefixes of symbols that the program has which opens a module."""
    foreign: frozenset[str] = frozenset()
    """Paths of libraries that travel in the package and were linked by somebody else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Artefact:
    """Everything that is about to ship, parsed."""

    expected: Expected
    files: Mapping[str, FileFacts]
    """Path -> facts of what is installed on the target."""
    debug: Mapping[str, FileFacts] = field(default_factory=dict)
    """Path -> facts of what stays with the developers."""

    @property
    def library(self) -> FileFacts:
        return self.files[self.expected.library]

    @property
    def library_elf(self) -> ElfFacts:
        elf = self.library.elf
        assert elf is not None, "reading refuses an artefact whose main library is no ELF file"
        return elf

    def elf_files(self) -> Iterator[tuple[str, ElfFacts]]:
        """Installed ELF files, by path."""
        for path, facts in sorted(self.files.items()):
            if facts.elf is not None:
                yield path, facts.elf

    def every_file(self) -> Iterator[FileFacts]:
        """Installed and debug files, by path."""
        yield from (facts for _, facts in sorted(self.files.items()))
        yield from (facts for _, facts in sorted(self.debug.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong, in one sentence, and what mends it."""

    what: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a gate found; ``measured`` is for the table, problems or not."""

    measured: str
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A named check with the reason for its being."""

    name: str
    reason: str
    check: Callable[[Artefact], Verdict]


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    name: str
    measured: str
    problems: tuple[Problem, ...]
    of: Literal["runtime", "wheel"] = "runtime"

    @property
    def ok(self) -> bool:
        return not self.problems
