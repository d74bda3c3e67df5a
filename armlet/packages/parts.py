"""How a runtime is cut into packages: what is where on a device, and what each part asks of the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from armlet import debian_texts
from armlet.emit import cmake_package, pkgconfig
from armlet.manifest import FILE
from armlet.nfpm import Entry, PackageFormat
from armlet.packages import texts
from armlet.packages.built import Built

Part = Literal["runtime", "dev", "dbg"]
PARTS: tuple[Part, ...] = get_args(Part)
VIRTUAL = "armlet-runtime"
"""What each SKU's runtime provides, and only one can at a time; the service asks for it."""

_ENDS: Mapping[PackageFormat, Mapping[Part, str]] = {
    "deb": {"runtime": "", "dev": "-dev", "dbg": "-dbg"},
    "ipk": {"runtime": "", "dev": "-dev", "dbg": "-dbg"},
    "rpm": {"runtime": "", "dev": "-devel", "dbg": "-debuginfo"},
    "apk": {"runtime": "", "dev": "-dev", "dbg": "-dbg"},
}
SECTIONS: Mapping[Part, str] = {"runtime": "libs", "dev": "libdevel", "dbg": "debug"}
_TELL: Mapping[Part, str] = {
    "runtime": "ONNX Runtime {0}, cut down to one product's models",
    "dev": "ONNX Runtime {0}, headers and build files",
    "dbg": "ONNX Runtime {0}, debug data",
}
_RUNTIME_JSON = f"/usr/share/armlet/{FILE}"
"""Where the service looks for it by default."""

_IN_FULL = "Every component's own text, as it came: a device need not have /usr/share/common-licenses."
_TERMS = {
    "copyright-file-contains-full-apache-2-license": _IN_FULL,
    "copyright-file-contains-full-gpl-license": _IN_FULL,
}
# lintian's tags -> why they do not hold here.
_OVERRIDES: Mapping[Part, Mapping[str, str]] = {
    "runtime": {
        **_TERMS,
        "package-name-doesnt-match-sonames": "One of several builds of this library; each is named after its SKU.",
        "no-shlibs": "What is built on it depends on armlet-runtime, or on the SKU whose models it needs.",
    },
    "dev": _TERMS,
    "dbg": _TERMS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """Of one package."""

    kind: PackageFormat
    sku: str
    part: Part

    @property
    def name(self) -> str:
        return f"{runtime_package(self.sku)}{_ENDS[self.kind][self.part]}"

    @property
    def virtual(self) -> str:
        return f"{VIRTUAL}{_ENDS[self.kind][self.part]}"


def runtime_package(sku: str) -> str:
    """The runtime's package of a SKU; Debian has no underscores in names."""
    return f"{VIRTUAL}-{sku.replace('_', '-')}"


def tell(part: Part, runtime: Built) -> tuple[str, str]:
    """One line, and more of them."""
    made = runtime.manifest
    more = (
        f"Built for {made.target.cpu} ({made.target.isa}), flavor {made.flavor}, with the",
        f"execution providers {', '.join(made.providers)}.",
        f"Which operators it has is in {_RUNTIME_JSON}.",
        f"Build {made.build_id[:16]} of the SKU {made.sku}.",
    )
    return _TELL[part].format(made.ort_version), "\n".join(more)


def entries(
    part: Part, runtime: Built, libraries: str, *, debug: Mapping[str, Path], scratch: Path
) -> dict[str, Entry]:
    """Absolute path on the device -> what is there; ``scratch`` takes files that are made.

    Args:
        libraries: the distribution's folder of libraries.
        debug: files with debug data, by build id.
    """
    if part == "runtime":
        return {**_libraries(runtime, libraries), _RUNTIME_JSON: Entry(source=runtime.tree / FILE)}
    if part == "dev":
        return {
            **_headers(runtime),
            **_build_files(runtime, libraries, scratch),
            **_links(runtime, libraries, dev=True),
        }
    return {
        f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug": Entry(source=path)
        for build_id, path in sorted(debug.items())
    }


def _libraries(runtime: Built, libraries: str) -> dict[str, Entry]:
    files = {f"{libraries}/{Path(path).name}": Entry(source=runtime.tree / path) for path in sorted(runtime.elves)}
    return {**files, **_links(runtime, libraries, dev=False)}


def _links(runtime: Built, libraries: str, *, dev: bool) -> dict[str, Entry]:
    """Those for programs that run, or those that a linker follows."""
    links = [path for path in sorted((runtime.tree / "lib").iterdir()) if path.is_symlink()]
    return {
        f"{libraries}/{path.name}": Entry(source=None, link=str(path.readlink()))
        for path in links
        if (path.suffix == ".so") is dev
    }


def _headers(runtime: Built) -> dict[str, Entry]:
    found = sorted(path for path in (runtime.tree / "include").rglob("*") if path.is_file())
    return {f"/usr/{path.relative_to(runtime.tree).as_posix()}": Entry(source=path) for path in found}


def _build_files(runtime: Built, libraries: str, scratch: Path) -> dict[str, Entry]:
    main, facts = runtime.main
    below = libraries.removeprefix("/usr/")
    foreign = [f"{below}/{Path(path).name}" for path in sorted(runtime.elves) if path != main]
    version = runtime.manifest.ort_version
    made = {
        pkgconfig.PATH: pkgconfig.pkgconfig(version=version, foreign=bool(foreign), libraries=libraries),
        cmake_package.CONFIG: cmake_package.config(
            library=f"{below}/{Path(main).name}", soname=facts.soname or "", foreign=foreign, installed=True
        ),
        cmake_package.VERSION: cmake_package.version_file(version=version, pointer_bytes=facts.bits // 8),
    }
    found = {}
    for path, text in made.items():
        file = scratch / Path(path).name
        file.write_text(text, encoding="utf-8")
        found[f"{libraries}/{path.removeprefix('lib/')}"] = Entry(source=file)
    return found


def documents(naming: Naming, runtime: Built, version: str, maintainer: str, scratch: Path) -> dict[str, Entry]:
    """Terms and changes, in every package; of a deb, what lintian is told.

    NOTICE and bills are with the runtime alone: the others cannot be there without it.
    """
    made = runtime.manifest
    folder = f"/usr/share/doc/{naming.name}"
    lines = [f"ONNX Runtime {made.ort_version} for the SKU {made.sku}, build {made.build_id[:16]}."]
    copyright_file, changes = scratch / "copyright", scratch / "changelog.gz"
    copyright_file.write_text(texts.copyright_of(runtime.tree, made), encoding="utf-8")
    changes.write_bytes(debian_texts.changelog(naming.name, version, maintainer, lines))
    found = {
        f"{folder}/copyright": Entry(source=copyright_file),
        f"{folder}/changelog.gz": Entry(source=changes),
    }
    if naming.part == "runtime":
        found[f"{folder}/NOTICE"] = Entry(source=runtime.tree / texts.NOTICE)
        found |= {f"{folder}/{path.name}": Entry(source=path) for path in runtime.bills}
    if naming.kind == "deb" and (reasons := _OVERRIDES[naming.part]):
        told = scratch / "overrides"
        told.write_text(debian_texts.overrides(naming.name, reasons), encoding="utf-8")
        found[f"/usr/share/lintian/overrides/{naming.name}"] = Entry(source=told)
    return found
