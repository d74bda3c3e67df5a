"""The bill of a SKU's runtime, from the lock, the build and its outputs."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from armlet import digest
from armlet.config import Resolved
from armlet.reproducible import EPOCH
from armlet.sbom.bill import Bill, File, Part, Patch, joined, why
from armlet.sbom.linked import GCC, GLIBC, SDK
from armlet.spec.source_set import UPSTREAM_PATCH, Component
from armlet.spec.toolchain import Toolchain

_EXCEPTION = "GPL-3.0-or-later WITH GCC-exception-3.1"
_LGPL = "LGPL-2.1-or-later"
_NOT_COMPILED_IN = "The toolchain's own, linked in by its compiler."


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What only a build knows."""

    build_id: str
    compiler: str
    image: str
    """Digest of the toolchain image."""


def bill(
    resolved: Resolved,
    *,
    made: Made,
    inside: Mapping[str, Collection[str]],
    packages: Mapping[str, str],
    texts: Callable[[str], Iterable[Path]],
    upstream: Callable[[str], bytes],
    files: Iterable[File] = (),
) -> Bill:
    """All that is in a runtime, and all that it was made with.

    Args:
        made: what only the build knows.
        inside: file that ships -> names of the components that have code in it; the library's own is first.
        packages: Debian package -> version, of the toolchain image.
        texts: the licence files of a component that ships.
        upstream: the content of a patch that ONNX Runtime's own tree has.
        files: what ships.
    """
    parts = [
        *(_component(one, resolved, inside, texts, upstream) for one in resolved.components),
        *_own(resolved.toolchain, inside, packages, texts),
        *_sdks(inside),
        *_tools(resolved.toolchain, packages),
    ]
    sku = resolved.sku
    return Bill(
        name=f"armlet-runtime-{sku.name}",
        version=resolved.source_set.version,
        kind="library",
        licence=joined(part.licence for part in parts if part.role in ("linked", "shipped")),
        description=sku.description,
        facts={
            "sku": sku.name,
            "build_id": made.build_id,
            "flavor": sku.runtime.flavor,
            "providers": ", ".join(sku.runtime.providers),
            "target": resolved.toolchain.triple,
            "isa": resolved.cpu.march,
            "cpu": resolved.cpu.name,
            "compiler": made.compiler,
            "toolchain": resolved.toolchain.name,
            "toolchain_image": made.image,
            "source_set": resolved.source_set.name,
            "source_set_sha256": digest.of_value(resolved.source_set.model_dump(mode="json", by_alias=True)),
        },
        parts=tuple(parts),
        files=tuple(sorted(files, key=lambda file: file.path)),
        created=EPOCH,
    )


def _component(
    one: Component,
    resolved: Resolved,
    inside: Mapping[str, Collection[str]],
    texts: Callable[[str], Iterable[Path]],
    upstream: Callable[[str], bytes],
) -> Part:
    places = _places(one.name, inside)
    folder = posixpath.dirname(next(iter(inside), ""))
    delivered = bool(places or one.ships)
    return Part(
        name=one.name,
        version=one.version,
        role="shipped" if one.ships else "linked" if places else "build",
        licence=one.licence,
        sha256=one.sha256,
        archive=one.filename,
        urls=one.urls,
        purl=one.named(one.purl) if one.purl else None,
        cpe=one.named(one.cpe) if one.cpe else None,
        patches=tuple(_patches(one, resolved, upstream)),
        inside=places or tuple(f"{folder}/{posixpath.basename(path)}" for path in one.ships),
        texts=tuple(texts(one.name)) if delivered else (),
        says="" if delivered else "Its headers were at hand; the library has no code of it.",
    )


def _patches(one: Component, resolved: Resolved, upstream: Callable[[str], bytes]) -> Iterator[Patch]:
    for name in one.patches:
        own = not name.startswith(UPSTREAM_PATCH)
        content = resolved.patches[name] if own else upstream(name.removeprefix(UPSTREAM_PATCH))
        reason = why(content) if own else "ONNX Runtime's own tree has it for this component."
        yield Patch(name=name, sha256=digest.of_bytes(content), why=reason)


def _places(name: str, inside: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    return tuple(sorted(path for path, names in inside.items() if name in names))


def _own(
    toolchain: Toolchain,
    inside: Mapping[str, Collection[str]],
    packages: Mapping[str, str],
    texts: Callable[[str], Iterable[Path]],
) -> Iterator[Part]:
    """What the toolchain itself puts into a library."""
    arch = toolchain.debian_arch
    for name, licence, package, product in (
        (GCC, _EXCEPTION, rf"libstdc\+\+-[0-9]+-dev-{arch}-cross", "gcc"),
        (GLIBC, _LGPL, rf"libc6-dev-{arch}-cross", "glibc"),
    ):
        if places := _places(name, inside):
            found = next((one for one in sorted(packages) if re.fullmatch(package, one)), None)
            version = packages[found] if found else "unknown"
            upstream = version.rpartition(":")[2].partition("-")[0]
            yield Part(
                name=name,
                version=version,
                role="linked",
                licence=licence,
                purl=_debian(found, version, toolchain) if found else None,
                cpe=f"cpe:2.3:a:gnu:{product}:{upstream}:*:*:*:*:*:*:*" if found else None,
                supplier="Debian",
                inside=places,
                texts=tuple(texts(name)),
                says=_NOT_COMPILED_IN,
            )


def _sdks(inside: Mapping[str, Collection[str]]) -> Iterator[Part]:
    for name in sorted({name for names in inside.values() for name in names if name.startswith(SDK)}):
        says = "A vendor's files from the user's machine: its licence is the user's matter."
        yield Part(name=name, version="unknown", role="linked", inside=_places(name, inside), says=says)


def _tools(toolchain: Toolchain, packages: Mapping[str, str]) -> Iterator[Part]:
    """What the image was asked to have: the compiler, the build's programs; their own needs are in its digest."""
    for name in sorted(set(toolchain.packages) & set(packages)):
        version = packages[name]
        yield Part(
            name=name,
            version=version,
            role="build",
            tool=True,
            purl=_debian(name, version, toolchain),
            supplier="Debian",
        )
    for wheel in toolchain.wheels:
        yield Part(
            name=wheel.project,
            version=wheel.version,
            role="build",
            tool=True,
            sha256=wheel.sha256,
            archive=wheel.filename,
            purl=f"pkg:pypi/{wheel.project}@{wheel.version}",
        )


def _debian(package: str, version: str, toolchain: Toolchain) -> str:
    return f"pkg:deb/debian/{quote(package, safe='')}@{quote(version, safe='')}?distro={toolchain.base.suite}"
