"""What a build left, as the facts that packages are made of."""

from __future__ import annotations

import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from armlet import config, digest, elf, manifest
from armlet.elf import ElfFacts
from armlet.errors import ArmletError, Kind
from armlet.gates import demand_intact
from armlet.paths import Paths
from armlet.sbom import reading
from armlet.sbom.bill import CYCLONEDX, SPDX
from armlet.spec.runtime import RuntimeManifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """``tree`` is the folder that ships, ``tarballs`` are it and its debug data packed."""

    manifest: RuntimeManifest
    tree: Path
    tarballs: tuple[Path, ...]
    elves: Mapping[str, ElfFacts]
    """Path below ``tree`` -> facts of each library."""
    licence: str
    """Of all that is in it, as its bill of materials measured it: an SPDX expression."""
    bills: tuple[Path, ...]
    """The bills of materials."""

    @property
    def main(self) -> tuple[str, ElfFacts]:
        """The library that headers and build files are for."""
        return next(item for item in sorted(self.elves.items()) if "/libonnxruntime.so" in item[0])


def built(paths: Paths, sku: str) -> Built:
    """Raises:
    ArmletError: (INPUT) there is no such SKU, or it is not built; (GATE) it is not what the build left.
    """
    config.resolve(paths, sku)
    dist = paths.dist(sku)
    if not (dist / manifest.FILE).is_file():
        hint = f"./inv build --sku {sku}"
        raise ArmletError(f"nothing is built for {sku}", hint=hint, kind=Kind.INPUT, where=str(dist))
    demand_intact(dist)
    made = manifest.read_manifest(dist / manifest.FILE)
    tree = dist / f"armlet-runtime-{sku}-{made.ort_version}-{made.target.triple}"
    tarballs = tuple(dist / f"{tree.name}{end}.tar.xz" for end in ("", "-dbg"))
    manifest.demand_of(made, sku, dist)
    for file in made.files:
        _demand_same(tree / file.path, file.sha256, sku)
    _demand_same(tree / manifest.FILE, digest.of_file(dist / manifest.FILE), sku)
    _demand_as_packed(tree, tarballs[0], sku)
    libraries = [file.path for file in made.files if file.build_id is not None]
    elves = {path: elf.read((tree / path).read_bytes(), name=path) for path in libraries}
    bills = tuple(dist / name for name in (CYCLONEDX, SPDX))
    return Built(
        manifest=made,
        tree=tree,
        tarballs=tarballs,
        elves=elves,
        licence=each_once(reading.licence(bills[0])),
        bills=bills,
    )


def unpack_debug(runtime: Built, folder: Path) -> dict[str, Path]:
    """Build id -> file with the debug data of the library that has it, unpacked into ``folder``.

    Raises:
        ArmletError: (GATE) a file is no ELF file.
        OSError: the disk is full or not writable.
    """
    with tarfile.open(runtime.tarballs[1]) as archive:
        archive.extractall(folder, filter="data")
    wanted = {facts.build_id for facts in runtime.elves.values()}
    found = {}
    for path in sorted(folder.rglob("*.debug")):
        build_id = elf.read(path.read_bytes(), name=path.name).build_id
        # The Python package's debug data is in the same archive.
        if build_id is not None and build_id in wanted:
            found[build_id] = path
    return found


def each_once(expression: str) -> str:
    """An SPDX expression without repetitions; what has alternatives stays as it is."""
    if " OR " in expression or "(" in expression:
        return expression
    return " AND ".join(sorted({*expression.split(" AND ")}))


def _demand_same(path: Path, sha256: str, sku: str) -> None:
    if path.is_symlink() or not path.is_file() or digest.of_file(path) != sha256:
        raise _changed(path, sku)


def _demand_as_packed(tree: Path, tarball: Path, sku: str) -> None:
    """Folders and links are in no list of hashes, and what was added to the folder is in none either."""
    with tarfile.open(tarball) as archive:
        wanted = {info.name: info.linkname if info.issym() else None for info in archive if not info.isdir()}
    found = {
        path.relative_to(tree.parent).as_posix(): str(path.readlink()) if path.is_symlink() else None
        for path in tree.rglob("*")
        if path.is_symlink() or not path.is_dir()
    }
    if differing := sorted(dict(wanted.items() ^ found.items())):
        raise _changed(tree.parent / differing[0], sku)


def _changed(path: Path, sku: str) -> ArmletError:
    return ArmletError(
        f"not as the build left it: {path.name}",
        where=str(path),
        hint=f"build it again, which mends it: ./inv build --sku {sku}",
        kind=Kind.GATE,
    )
