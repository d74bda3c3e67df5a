"""The bill of what a build made: gathered from its map, its line tables and its sources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from armlet import lines
from armlet.config import Resolved
from armlet.emit import cmake
from armlet.errors import ArmletError, Kind
from armlet.gates import MODULE, expected_of
from armlet.sbom import cyclonedx, spdx
from armlet.sbom.bill import CYCLONEDX, SPDX, Bill, file
from armlet.sbom.linked import GCC, GLIBC, components
from armlet.sbom.runtime import Made, bill
from armlet.steps.runtime_tree import LICENCES, licence_files


def gather(
    resolved: Resolved,
    *,
    compiled: Path,
    sources: Path,
    tree: Path,
    made: Made,
    packages: Mapping[str, str],
    wheel: str | None,
) -> Bill:
    """The bill, without its files.

    Args:
        compiled: the output of the compile.
        sources: one folder per component.
        tree: what ships, licences included.
        packages: Debian package -> version, of the toolchain image.
        wheel: name of the Python wheel, where there is one.

    Raises:
        ArmletError: (BUILD) a file of the compile is missing or damaged, or code of nobody knows what was linked in.
    """
    library = expected_of(resolved).library
    inside = {library: _inside(resolved, compiled / Path(library).name, compiled / cmake.LIBRARY_MAP)}
    if wheel is not None:
        inside[wheel] = _inside(resolved, compiled / MODULE, compiled / cmake.MODULE_MAP)

    def texts(name: str) -> Iterable[Path]:
        if name in (GCC, GLIBC):
            return sorted((tree / LICENCES / name).iterdir())
        return licence_files(sources / name, name)

    def upstream(path: str) -> bytes:
        return (sources / "onnxruntime" / path).read_bytes()

    return bill(resolved, made=made, inside=inside, packages=packages, texts=texts, upstream=upstream)


def write(found: Bill, *, tree: Path, out: Path, wheel: str | None) -> None:
    """Writes both bills into ``out``, with the files of ``tree`` and the wheel beside it."""
    files = [
        file(path.relative_to(tree).as_posix(), path)
        for path in sorted(tree.rglob("*"))
        if path.is_file() and not path.is_symlink()
    ]
    if wheel is not None:
        files.append(file(wheel, out / wheel))
    whole = replace(found, files=tuple(files))
    (out / CYCLONEDX).write_text(cyclonedx.text(whole), encoding="utf-8")
    (out / SPDX).write_text(spdx.text(whole), encoding="utf-8")


def _inside(resolved: Resolved, binary: Path, link_map: Path) -> frozenset[str]:
    try:
        text = link_map.read_text(errors="replace")
        if not (named := lines.sources(binary.read_bytes())):
            raise ValueError("it has no line tables")
        return components(text, named, resolved.components)
    except (OSError, ValueError) as error:
        what = f"nobody can tell what is in {binary.name}: {error}"
        hint = "its map and its debug data must come from the compile step: remove its output, and build again"
        raise ArmletError(what, hint=hint, kind=Kind.BUILD, where=str(link_map)) from error
