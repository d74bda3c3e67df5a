"""The folder that ships: library, headers, what build systems look for, licences."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from armlet import elf
from armlet.config import Resolved
from armlet.emit import cmake_package, pkgconfig
from armlet.errors import ArmletError, Kind
from armlet.gates import expected_of
from armlet.gates.shipping import MACHINES

# What upstream installs (``get_c_cxx_api_headers`` in its cmake/onnxruntime.cmake), beside the providers' own.
_HEADERS = (
    "onnxruntime_c_api.h",
    "onnxruntime_cxx_api.h",
    "onnxruntime_cxx_inline.h",
    "onnxruntime_float16.h",
    "onnxruntime_lite_custom_op.h",
    "onnxruntime_run_options_config_keys.h",
    "onnxruntime_session_options_config_keys.h",
)
_INCLUDE = "include/onnxruntime/core"

DOCUMENTS = "share/doc/armlet-runtime"
LICENCES = f"{DOCUMENTS}/licences"
_LICENCE_NAMES = ("LICENSE*", "LICENSES/*", "LICENCE*", "COPYING*", "NOTICE*", "ThirdPartyNotices*")
# A Debian binary package keeps its licence there.
_PACKAGED = "usr/share/doc/*/copyright"


def lay_out(
    resolved: Resolved, *, library: Path, sources: Path, toolchain_licences: Mapping[str, Path], tree: Path
) -> None:
    """Fills the empty folder ``tree``.

    Args:
        library: the stripped library.
        sources: one folder per component, by its name.
        toolchain_licences: the terms of what the toolchain itself links in, by its name.

    Raises:
        ArmletError: (BUILD) a header or a component's licence is not among the sources; (GATE) a library that a
            component ships is damaged.
    """
    expected = expected_of(resolved)
    _copy(library, tree / expected.library)
    folder = tree / expected.library.rpartition("/")[0]
    (folder / expected.soname).symlink_to(Path(expected.library).name)
    (folder / expected.soname.rsplit(".", 1)[0]).symlink_to(expected.soname)
    foreign = [sources / component.name / path for component in resolved.components for path in component.ships]
    for file in foreign:
        _copy(file, folder / file.name)
        soname = elf.read(file.read_bytes(), name=file.name).soname
        if soname and soname != file.name:
            (folder / soname).symlink_to(file.name)
    for header in _headers(sources / "onnxruntime", resolved.sku.runtime.providers):
        _copy(header, tree / "include" / "onnxruntime" / header.name)
    texts = {
        pkgconfig.PATH: pkgconfig.pkgconfig(version=resolved.source_set.version, foreign=bool(foreign)),
        cmake_package.CONFIG: cmake_package.config(
            library=expected.library, soname=expected.soname, foreign=sorted(expected.foreign)
        ),
        cmake_package.VERSION: cmake_package.version_file(
            version=resolved.source_set.version, pointer_bytes=MACHINES[resolved.toolchain.arch].bits // 8
        ),
    }
    for path, text in texts.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text, encoding="utf-8")
    licences = tree / LICENCES
    for component in resolved.components:
        for file in licence_files(sources / component.name, component.name):
            target = licences / component.name / file.name
            _copy(file, target)
    for name, file in toolchain_licences.items():
        _copy(file, licences / name / "copyright")


def _headers(onnxruntime: Path, providers: Iterable[str]) -> Iterator[Path]:
    for name in _HEADERS:
        path = onnxruntime / _INCLUDE / "session" / name
        if not path.is_file():
            raise ArmletError(
                f"the sources lack the public header {name}",
                where=str(path),
                hint="check keep: of the component onnxruntime in the source set",
                kind=Kind.BUILD,
            )
        yield path
    for provider in providers:
        yield from sorted((onnxruntime / _INCLUDE / "providers" / provider).glob("*.h"))


def licence_files(folder: Path, component: str) -> list[Path]:
    """The licence texts of a component: at the top of its folder, or where Debian packages have them.

    Raises:
        ArmletError: (BUILD) there are none: it may not be shipped.
    """
    found = {path for pattern in _LICENCE_NAMES for path in folder.glob(pattern) if path.is_file()}
    files = sorted(found) or sorted(folder.glob(_PACKAGED))
    if not files:
        raise ArmletError(
            f"no licence text of {component} among its sources",
            where=str(folder),
            hint=f"add its licence file to keep: of the component {component} in the source set",
            kind=Kind.BUILD,
        )
    return files


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o644)
