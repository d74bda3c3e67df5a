"""Gates on what the artefact asks of the rootfs and what it offers to programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from armlet.elf import ElfFacts
from armlet.gates.base import Artefact, Gate, Problem, Verdict
from armlet.spec.base import version_key

# Versions that name an ability of the loader instead of a release: the release that brought it.
_BY_ABILITY = {"GLIBC_ABI_DT_RELR": "2.36", "GLIBC_ABI_GNU2_TLS": "2.42"}
_LISTED = 8


def asked(elf: ElfFacts, prefix: str) -> Iterator[tuple[str | None, str, tuple[str, ...]]]:
    """(release or None where it names none, version as it stands, symbols) for every version of that prefix.

    ``prefix`` is ``GLIBC_`` or ``GLIBCXX_``.
    """
    for names in elf.versions.values():
        for name, symbols in names.items():
            if name.startswith(prefix):
                rest = name.removeprefix(prefix)
                is_number = all(part.isdigit() for part in rest.split("."))
                yield (rest if is_number else _BY_ABILITY.get(name)), name, symbols


def highest(elves: Iterable[ElfFacts], prefix: str) -> str | None:
    """Newest release that any of the files asks for; None where they ask for none."""
    releases = {release for elf in elves for release, _, _ in asked(elf, prefix) if release is not None}
    return max(releases, key=version_key, default=None)


def _newer(artefact: Artefact, prefix: str, floor: str | None) -> Iterator[tuple[str, str, str]]:
    """(path, version, symbols as text) of everything that asks for more than ``floor``."""
    for path, elf in artefact.elf_files():
        for release, name, symbols in asked(elf, prefix):
            if floor is None or release is None or version_key(release) > version_key(floor):
                yield path, name, _listed(symbol + "@" + name for symbol in symbols) or name


def _listed(names: Iterable[str]) -> str:
    ordered = sorted(names)
    more = f" and {len(ordered) - _LISTED} more" if len(ordered) > _LISTED else ""
    return ", ".join(ordered[:_LISTED]) + more


def _glibc(artefact: Artefact) -> Verdict:
    floor = artefact.expected.glibc
    problems = [
        Problem(
            what=f"{path}: asks for {symbols}; the SKU's rootfs has glibc {floor}",
            hint="build with a toolchain of an older glibc, or raise floors.glibc if the rootfs really has a newer one",
        )
        for path, _, symbols in _newer(artefact, "GLIBC_", floor)
    ]
    found = highest((elf for _, elf in artefact.elf_files()), "GLIBC_")
    if found is None:
        problems.append(
            Problem(
                what=f"{artefact.expected.library}: asks for no glibc version at all",
                hint="it was linked against another C library or against none: check the toolchain's sysroot",
            )
        )
    return Verdict(measured=f"{found or 'none'} (at most {floor})", problems=tuple(problems))


def _glibcxx(artefact: Artefact) -> Verdict:
    floor = artefact.expected.glibcxx
    have = f"the SKU's rootfs has GLIBCXX_{floor}" if floor else "libstdc++ should be linked into it"
    mends = (
        "raise floors.glibcxx if the rootfs really has a newer libstdc++, or leave out the provider that shares it"
        if floor
        else "link with -static-libstdc++ -static-libgcc"
    )
    problems = [
        Problem(what=f"{path}: asks for {symbols}; {have}", hint=mends)
        for path, _, symbols in _newer(artefact, "GLIBCXX_", floor)
    ]
    found = highest((elf for _, elf in artefact.elf_files()), "GLIBCXX_")
    return Verdict(measured=f"{found or 'none'} (at most {floor or 'none'})", problems=tuple(problems))


def _needed(artefact: Artefact) -> Verdict:
    own = {elf.soname for _, elf in artefact.elf_files() if elf.soname}
    allowed = artefact.expected.needed | own
    problems = [
        Problem(
            what=f"{path}: needs {name}, which the rootfs is not asked to have",
            hint=f"link it statically or drop it; allowed: {', '.join(sorted(artefact.expected.needed))}",
        )
        for path, elf in artefact.elf_files()
        for name in elf.needed
        if name not in allowed
    ]
    return Verdict(measured=" ".join(artefact.library_elf.needed) or "none", problems=tuple(problems))


def _exports(artefact: Artefact) -> Verdict:
    expected = artefact.expected.exports
    found = {symbol.name: symbol for symbol in artefact.library_elf.exports}
    path = artefact.expected.library
    problems = []
    if extra := found.keys() - expected:
        problems.append(
            Problem(
                what=f"{path}: exports {_listed(str(found[name]) for name in extra)}, which is not the C API",
                hint="link with the version script and -fvisibility=hidden -Wl,--exclude-libs,ALL",
            )
        )
    if missing := expected - found.keys():
        problems.append(
            Problem(
                what=f"{path}: does not export {_listed(missing)}",
                hint="check the SKU's providers against the version script that was linked with",
            )
        )
    return Verdict(measured=f"{len(found)} symbols", problems=tuple(problems))


def _undefined(artefact: Artefact) -> Verdict:
    own = {symbol.name for _, elf in artefact.elf_files() for symbol in elf.exports}
    asked = {path: set(elf.undefined) - own for path, elf in artefact.elf_files()}
    problems = [
        Problem(
            what=f"{path}: asks for {_listed(missing)}, which nothing on the target has",
            hint="a source that it needs was left out: see acceleration.keep and .skip in the source set",
        )
        for path, names in asked.items()
        if (missing := {name for name in names if not name.startswith(artefact.expected.from_host)})
    ]
    left = sum(len(names) for names in asked.values())
    return Verdict(measured=f"{left} left to the program", problems=tuple(problems))


def _soname(artefact: Artefact) -> Verdict:
    expected, found = artefact.expected.soname, artefact.library_elf.soname
    if not expected:
        return Verdict(measured=found or "none, as a module")
    problems = []
    if found != expected:
        problems.append(
            Problem(
                what=f"{artefact.expected.library}: its soname is {found or 'missing'}, programs look for {expected}",
                hint="link with -Wl,-soname, or keep CMake's VERSION and SOVERSION of the onnxruntime target",
            )
        )
    folder, _, file = artefact.expected.library.rpartition("/")
    for name in (expected, expected.rsplit(".", 1)[0]):
        if not _leads_to(artefact, folder, name, file):
            problems.append(
                Problem(what=f"{folder}/{name}: is no link to {file}", hint="make the links with the package step")
            )
    problems += [problem for path in sorted(artefact.expected.foreign) for problem in _foreign_problems(artefact, path)]
    return Verdict(measured=found or "missing", problems=tuple(problems))


def _foreign_problems(artefact: Artefact, path: str) -> Iterator[Problem]:
    folder, _, file = path.rpartition("/")
    facts = artefact.files.get(path)
    hint = "check ships: of its component in the source set"
    if facts is None or facts.elf is None or facts.elf.soname is None:
        yield Problem(what=f"{path}: is no shared library that can be found by a soname", hint=hint)
    elif facts.elf.soname not in artefact.library_elf.needed:
        yield Problem(
            what=f"{path}: travels in the package, and {artefact.expected.library} does not need it", hint=hint
        )
    elif not _leads_to(artefact, folder, facts.elf.soname, file):
        what = f"{folder}/{facts.elf.soname}: is no link to {file}"
        yield Problem(what=what, hint="make the links with the package step")


def _leads_to(artefact: Artefact, folder: str, name: str, file: str) -> bool:
    """Follows links that stay in their folder; a chain longer than the number of files goes round in circles."""
    for _ in range(len(artefact.files)):
        facts = artefact.files.get(f"{folder}/{name}")
        if name == file or facts is None or facts.link is None:
            break
        name = facts.link
    return name == file


GATES: tuple[Gate, ...] = (
    Gate(
        name="needed",
        reason="Every library that is loaded must be one that a rootfs of this kind has.",
        check=_needed,
    ),
    Gate(
        name="glibc",
        reason="A symbol newer than the rootfs's glibc stops the library from loading, on the device.",
        check=_glibc,
    ),
    Gate(
        name="glibcxx",
        reason="The same for libstdc++, whose release differs between rootfs builders: it is linked in if it can be.",
        check=_glibcxx,
    ),
    Gate(
        name="exports",
        reason="Anything but the C API that is exported can clash with a program's own libraries, or be misused.",
        check=_exports,
    ),
    Gate(
        name="undefined",
        reason="A function that nobody has stops the program when it loads the library, or later when it is called.",
        check=_undefined,
    ),
    Gate(
        name="soname",
        reason="Programs find the library by its soname; the links must lead to the file.",
        check=_soname,
    ),
)
