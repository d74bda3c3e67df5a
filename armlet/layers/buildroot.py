"""A tree for Buildroot (BR2_EXTERNAL): runtimes as they were built, the device's Python code, the service, models."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import armlet_runtime
import jinja2

from armlet import digest
from armlet.errors import ArmletError, Kind
from armlet.layers import kconfig
from armlet.layers.facts import Facts, Model, Runtime, gather
from armlet.layers.names import make_safe
from armlet.layers.tree import File, Written, write
from armlet.nfpm import Entry
from armlet.packages.texts import LICENCES
from armlet.paths import Paths
from armlet.scratch import scratch
from armlet.service.contents import Layout
from armlet.spec.base import spdx_expression
from armlet.steps.archive import write_tarball

FOLDER = "br2-onnx"
"""Static files and templates, as they lie in the tree; ``@sku@``, ``@version@`` and ``@model@`` stand for one each."""
_SOURCES = "sources"
_MODULES = "/modules"
_LAYOUT = Layout(modules=_MODULES, init="/etc/init.d")
"""Where Buildroot's folder of modules is, depends on its Python: the package for it knows."""
_TEMPLATE = ".j2"
_WIDTH = 62
"""Columns of a help text: check-package allows 72 with a tab before them."""
_SHORT = 12
"""Hexadecimal digits that tell one content from another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """An archive that a package is made of."""

    name: str
    file: File
    sha256: str

    @classmethod
    def of(cls, name: str, content: bytes | Path) -> Source:
        sha256 = digest.of_bytes(content) if isinstance(content, bytes) else digest.of_file(content)
        return cls(name=name, file=File(content=content), sha256=sha256)


def emit(
    paths: Paths, out: Path, *, skus: Sequence[str], payloads: Sequence[Path] = (), keys: Sequence[Path] = ()
) -> Written:
    """Writes the tree, or writes it over an older one (armlet/layers/tree.py).

    Raises:
        ArmletError: as ``gather`` and ``write``; (GATE) a payload's licence is no SPDX expression.
    """
    with scratch("layer") as folder:
        facts = gather(paths, skus=skus, payloads=payloads, keys=keys, layout=_LAYOUT, scratch=folder)
        return write(out, "buildroot", tree(facts, paths.root, folder))


def tree(facts: Facts, root: Path, folder: Path) -> dict[str, File]:
    """Path in the tree -> the file; ``folder`` takes what is made on the way.

    Args:
        root: the project.
    """
    runtimes = [_runtime(one) for one in facts.runtimes]
    models = [_model(one) for one in facts.models]
    python, serve = _service(facts.service, root / "LICENSE", folder)
    for one in runtimes:
        one["models"] = [model for model in models if one["sku"] in model["skus"]]
    shared = {
        "runtimes": runtimes,
        "models": models,
        "fits": _any(f"FITS_{one['symbol']}" for one in runtimes),
    }
    own = {"python-armlet-runtime": python, "armlet-serve": serve}
    each: Mapping[str, Sequence[dict[str, Any]]] = {"sku": runtimes, "version": runtimes, "model": models}
    files = {}
    for path, template in _templates(root / FOLDER):
        package = Path(path).parts[1] if path.startswith("package/") else ""
        if (mark := next((mark for mark in each if f"@{mark}@" in path), None)) is None:
            files[path] = _file(template, {**shared, **own.get(package, {})})
            continue
        for values in each[mark]:
            named = values["package"] if mark == "model" else values[mark]
            files[path.replace(f"@{mark}@", named)] = _file(template, {**shared, **values})
    sources = [one["made"] for one in (*runtimes, *models, python, serve)]
    files |= {f"{_SOURCES}/{one.name}": one.file for one in sources}
    files |= {f"package/{one['package']}/COPYRIGHT": File.text(one["copyright"]) for one in models}
    files |= {f"package/armlet-serve/keys/{key.name}": File(content=key.read_bytes()) for key in facts.keys}
    return files


def _runtime(runtime: Runtime) -> dict[str, Any]:
    made, built = runtime.built.manifest, runtime.built
    source = Source.of(runtime.tarballs[0].name, runtime.tarballs[0])
    folder = built.tree / LICENCES
    texts = {
        path.relative_to(built.tree).as_posix(): digest.of_file(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    machine = kconfig.machine(made)
    return {
        "made": source,
        "sku": runtime.sku,
        "symbol": make_safe(runtime.sku),
        "version": f"{made.ort_version}-{runtime.sku}-{source.sha256[:_SHORT]}",
        "source": source.name,
        "ort_version": made.ort_version,
        "flavor": made.flavor,
        "isa": made.target.isa,
        "cpu": made.target.cpu,
        "glibc": made.requires.glibc,
        "providers": ", ".join(made.providers),
        "conditions": kconfig.conditions(made),
        "needs": kconfig.in_words(made),
        "asks": kconfig.asks(list(built.elves.values())),
        "licence": _licence(built.licence),
        "licences": [*texts],
        "hashes": [(source.name, source.sha256), *texts.items()],
        "qemu": machine,
        "machine": "\n".join(machine.lines),
        "kernel": "\n".join(machine.kernel),
    }


def _model(model: Model) -> dict[str, Any]:
    made = model.manifest
    if (spdx := spdx_expression(made.licence)) is None:
        raise ArmletError(
            f'{made.model}: the licence "{made.licence}" is no SPDX expression',
            hint="pack the model again, with a licence such as Apache-2.0 or LicenseRef-Acme",
            kind=Kind.GATE,
            where=str(model.folder),
        )
    source = Source.of(model.file, model.archive())
    terms = (
        f"Model: {made.model} {made.version}, generation {made.generation}\n"
        f"Made from: sha256 {made.source_model}\n"
        f"Licence: {spdx}\n"
    )
    return {
        "made": source,
        "package": model.package,
        "symbol": make_safe(model.package),
        "version": f"{made.version}-g{made.generation}",
        "source": source.name,
        "model": made.model,
        "author_version": made.version,
        "generation": made.generation,
        "licence": _licence(spdx),
        "copyright": terms,
        "hashes": [(source.name, source.sha256), ("COPYRIGHT", digest.of_bytes(terms.encode()))],
        "skus": model.skus,
        "fits": _any(map(make_safe, model.skus)),
        "description": textwrap.wrap(made.description, _WIDTH),
    }


def _service(entries: Mapping[str, Entry], licence: Path, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The device's Python code, and what else belongs to the service."""
    places = {place: entry for place, entry in entries.items() if entry.source is not None}
    modules = {place.removeprefix(f"{_MODULES}/"): one for place, one in places.items() if place.startswith(_MODULES)}
    others = {place.lstrip("/"): one for place, one in places.items() if not place.startswith(_MODULES)}
    # Buildroot removes documentation from its images, and has no procd.
    unwanted = ("usr/share/", "etc/init.d/armlet-serve")
    others = {place: one for place, one in others.items() if not place.startswith(unwanted)}
    terms = {"LICENSE": Entry(source=licence)}
    version = armlet_runtime.__version__
    return (
        _packed(f"armlet-runtime-{version}", version, {**modules, **terms}, folder),
        _packed(f"armlet-serve-{version}", version, {**others, **terms}, folder),
    )


def _packed(name: str, version: str, entries: Mapping[str, Entry], folder: Path) -> dict[str, Any]:
    top = folder / name
    for place, entry in entries.items():
        assert entry.source is not None, place
        path = top / place
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(entry.source, path)
        path.chmod(entry.mode)
    archive = folder / f"{name}.tar.xz"
    write_tarball(top, archive)
    source = Source.of(archive.name, archive)
    return {
        "made": source,
        "version": f"{version}-{source.sha256[:_SHORT]}",
        "source": source.name,
        "hashes": [(source.name, source.sha256), ("LICENSE", digest.of_file(top / "LICENSE"))],
    }


def _any(symbols: Iterable[str]) -> str:
    """A condition of Kconfig, a line for each."""
    return " || \\\n\t\t".join(f"BR2_PACKAGE_ONNXRUNTIME_ARMLET_{symbol}" for symbol in symbols)


def _licence(spdx: str) -> str:
    """As Buildroot's manual wants it: commas for "and", the word "or", no operators."""
    return ", ".join(term.strip("()").replace(" OR ", " or ") for term in spdx.split(" AND "))


def _templates(folder: Path) -> Iterator[tuple[str, Path]]:
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            yield file.relative_to(folder).as_posix().removesuffix(_TEMPLATE), file


def _file(template: Path, values: Mapping[str, Any]) -> File:
    mode = 0o755 if template.suffix == ".sh" else 0o644
    text = template.read_text(encoding="utf-8")
    if template.suffix != _TEMPLATE:
        return File.text(text, mode)
    return File.text(_ENVIRONMENT.from_string(text).render(values), mode)


_ENVIRONMENT = jinja2.Environment(
    undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, autoescape=False
)
