"""A runtime's packages: runtime, headers, debug data, and the service that runs on it."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from armlet import nfpm, recipes
from armlet import package_versions as versions
from armlet.errors import ArmletError, Kind, host_error
from armlet.events import Note, Sink, silent
from armlet.nfpm import MAINTAINER, PACKAGE_FORMATS, Package, PackageFormat
from armlet.packages import families, parts, texts
from armlet.packages.built import Built, built, unpack_debug
from armlet.packages.families import Ipk
from armlet.packages.folder import deliver
from armlet.packages.parts import PARTS, Naming, Part
from armlet.paths import Paths
from armlet.process import Runner
from armlet.reproducible import EPOCH
from armlet.scratch import scratch
from armlet.service import package as service

Format = Literal["deb", "ipk", "rpm", "apk", "tar", "wheel"]
FORMATS: tuple[Format, ...] = get_args(Format)
# What a distribution has in the same places: Debian's packages, of this version of ONNX Runtime or of any.
_OTHERS: Mapping[tuple[PackageFormat, Part], tuple[str, ...]] = {
    ("deb", "runtime"): ("libonnxruntime{0}",),
    ("deb", "dev"): ("libonnxruntime-dev",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """``revision`` counts builds of one version of ONNX Runtime that are handed out."""

    formats: Sequence[Format] = FORMATS
    revision: int = 1
    maintainer: str = MAINTAINER
    ipk: Ipk = "openwrt"
    ipk_arch: str = ""
    """Empty: OpenWrt's or Yocto's name for the SKU's core."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    what: str
    """``runtime``, ``dev``, ``dbg``, ``service``, ``tar``, ``wheel``."""
    path: Path


def package(
    paths: Paths,
    sku: str,
    out: Path,
    options: Options | None = None,
    *,
    runner: Runner | None = None,
    emit: Sink = silent,
) -> list[Made]:
    """Makes what is asked for in ``out``, with ``SHA256SUMS`` over it: all of it or nothing new.

    Raises:
        ArmletError: (INPUT) nothing is built, two packages would own a file, or a file of that name is there with
            other content; (BUILD) nfpm failed; (HOST) the disk is full or not writable.
    """
    chosen = options or Options()
    nfpm.demand_line("maintainer", chosen.maintainer)
    _demand_own_name(paths, sku)
    runtime = built(paths, sku)
    is_new = not out.exists()
    _demand_writable(out)
    with _gone_if_empty(out, is_new), scratch("packages") as folder:
        staged = folder / "out"
        staged.mkdir()
        debug = unpack_debug(runtime, folder / "debug")
        made, owners = [], dict[str, dict[str, str]]()
        for kind in (one for one in PACKAGE_FORMATS if one in chosen.formats):
            for part in PARTS:
                emit(Note(text=f"packing {Naming(kind=kind, sku=sku, part=part).name} as {kind}"))
                described = _described(Naming(kind=kind, sku=sku, part=part), runtime, chosen, debug, folder)
                own(owners.setdefault(kind, {}), described)
                target = staged / nfpm.file_name(kind, described)
                nfpm.write_package(target, kind, described, runner=runner, emit=emit)
                made.append(Made(what=part, path=target))
        made += _beside(paths, runtime, staged, chosen, runner, emit)
        deliver([one.path for one in made], out, build_id=runtime.manifest.build_id, emit=emit)
    return [Made(what=one.what, path=out / one.path.name) for one in made]


def own(owners: dict[str, str], described: Package) -> None:
    """Takes note of what a package owns.

    Raises:
        ArmletError: (BUILD) another package, that can be installed beside it, owns one of the files.
    """
    for place, entry in described.entries.items():
        if entry.source is None and not entry.link:
            continue
        if (owner := owners.setdefault(place, described.name)) != described.name:
            raise ArmletError(
                f"{place} would be owned by two packages: {owner} and {described.name}",
                hint="give it to one of them, or let them conflict (armlet/packages/parts.py)",
                kind=Kind.BUILD,
            )


def _described(naming: Naming, runtime: Built, options: Options, debug: Mapping[str, Path], folder: Path) -> Package:
    kind, part, target = naming.kind, naming.part, runtime.manifest.target
    ort = runtime.manifest.ort_version
    version, release = versions.upstream_and_release(kind, ort, options.revision)
    whole = versions.whole(kind, versions.demand_ordered(version), release)
    place = families.place(kind, target.arch, target.cpu, options.ipk, options.ipk_arch)
    elves = list(runtime.elves.values())
    made = folder / f"{naming.name}-{kind}"
    made.mkdir()
    summary, details = parts.tell(part, runtime)
    needs = (
        families.depends(kind, elves, options.ipk)
        if part == "runtime"
        else (versions.exactly(kind, parts.runtime_package(naming.sku), whole),)
    )
    others = tuple(name.format(".".join(ort.split(".")[:2])) for name in _OTHERS.get((kind, part), ()))
    # Debug data lies under the library's own hash: it is in nobody's way.
    alone = part != "dbg"
    # apk lets only one package provide a name with a version. What rpm replaces it calls obsolete, for good.
    conflicting = alone and kind != "apk"
    return Package(
        name=naming.name,
        arch=place.arch,
        version=version,
        release=release,
        section=parts.SECTIONS[part],
        description=summary,
        details=details,
        licence=runtime.licence,
        maintainer=options.maintainer,
        created=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(EPOCH)),
        entries={
            **parts.entries(part, runtime, place.libraries, debug=debug, scratch=made),
            **parts.documents(naming, runtime, whole, options.maintainer, made),
        },
        depends=needs,
        provides=(
            *((versions.exactly(kind, naming.virtual, whole),) if alone and kind != "ipk" else ()),
            *((naming.virtual,) if alone and kind == "ipk" else ()),
            *(families.provides(kind, elves, ort) if part == "runtime" else ()),
        ),
        conflicts=(naming.virtual, *others) if conflicting else (),
        replaces=(naming.virtual,) if conflicting and kind != "rpm" else (),
        scripts=texts.runtime_scripts(kind) if part == "runtime" else {},
        triggers=texts.runtime_triggers(kind) if part == "runtime" else {},
    )


def _beside(
    paths: Paths, runtime: Built, staged: Path, options: Options, runner: Runner | None, emit: Sink
) -> Iterable[Made]:
    """What is there already, or is the same for every SKU."""
    wanted: list[service.Format] = [kind for kind in service.FORMATS if kind in options.formats]
    made = service.package(paths, staged, wanted, maintainer=options.maintainer, runner=runner, emit=emit)
    for kind, path in made.items():
        yield Made(what="wheel" if kind == "wheel" else "service", path=path)
    if "tar" in options.formats:
        for tarball in runtime.tarballs:
            shutil.copyfile(tarball, staged / tarball.name)
            yield Made(what="tar", path=staged / tarball.name)


@contextmanager
def _gone_if_empty(out: Path, is_new: bool) -> Iterator[None]:
    """Removes the folder again where the block fails and nobody had it before."""
    try:
        yield
    except BaseException:
        if is_new:
            # Another command may have put something there.
            with suppress(OSError):
                out.rmdir()
        raise


def _demand_writable(out: Path) -> None:
    """Raises:
    ArmletError: (HOST) nothing can be written there; better said before anything is packed.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        # Without a name: two may try at once.
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise host_error(error, out) from error


def _demand_own_name(paths: Paths, sku: str) -> None:
    name = parts.runtime_package(sku)
    for other in recipes.SKUS.names(paths):
        if other != sku and parts.runtime_package(other) == name:
            raise ArmletError(
                f"the packages of {sku} and {other} would have one name, {name}",
                hint="rename one of the SKUs: packages have no underscores",
                kind=Kind.INPUT,
            )
