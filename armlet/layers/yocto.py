"""The Yocto layer: its files from the facts, as text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from armlet.layers.facts import Facts, Model, Runtime
from armlet.layers.licences import licence, plain
from armlet.layers.python_packages import packages
from armlet.layers.tree import File
from armlet.packages.texts import LICENCES
from armlet.service.contents import Layout
from armlet.service.package import VERSION

LAYER = "meta-onnx"
LAYOUT = Layout(modules="/modules", init="/etc/init.d/armlet-serve")
"""Where the modules go is the recipe's matter."""
_ARMLET = "recipes-armlet"
_RUNTIME = f"{_ARMLET}/onnxruntime-armlet"
_MODELS = f"{_ARMLET}/armlet-models"
_PYTHON = f"{_ARMLET}/python3-armlet-runtime"
_SERVICE = f"{_ARMLET}/armlet-serve"
_KEYS = f"{_ARMLET}/armlet-keys"
_VARIABLES = {
    "/usr/lib/systemd/system": "${systemd_system_unitdir}",
    "/usr/share/doc": "${docdir}",
    "/usr/share/man": "${mandir}",
    "/usr/bin": "${bindir}",
    "/etc": "${sysconfdir}",
}
_HOSTS: Mapping[str, str] = {"aarch64": "aarch64-.*-linux", "armhf": "arm-.*-linux-gnueabi"}
_OVERRIDES: Mapping[str, str] = {"aarch64": "aarch64", "armhf": "arm"}
"""What BitBake's OVERRIDES has for an architecture."""
QEMU: Mapping[str, str] = {"aarch64": "qemuarm64", "armhf": "qemuarm"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """Of who asks for the layer."""

    machines: Mapping[str, str] = field(default_factory=dict)
    """Machine -> SKU; others get the first SKU of their architecture."""
    base: str = ""
    """Where the tarballs are fetched from; empty: the layer has them."""


def files(root: Path, facts: Facts, choices: Choices) -> dict[str, File]:
    """Path in the layer -> the file.

    Args:
        root: the project.
    """
    source = root / LAYER
    found = {
        path.relative_to(source).as_posix(): File(content=path)
        for path in sorted(source.rglob("*"))
        if path.is_file() and path.suffix != ".j2"
    }
    known = [_described(runtime, facts) for runtime in facts.runtimes]
    found["README.md"] = _text(source / "README.md.j2", runtimes=known)
    found["conf/armlet-skus.inc"] = _text(
        source / "conf/armlet-skus.inc.j2", defaults=_defaults(facts, choices), runtimes=known, keys=facts.keys
    )
    for runtime in facts.runtimes:
        found |= _runtime(source, runtime, choices)
    for model in facts.models:
        found |= _model(source, model)
    found |= _service(root, source, facts)
    found |= _kas(source, facts)
    return dict(sorted(found.items()))


def _described(runtime: Runtime, facts: Facts) -> dict[str, Any]:
    made = runtime.built.manifest
    return {
        "sku": runtime.sku,
        "package": runtime.package,
        "cpu": made.target.cpu,
        "isa": made.target.isa,
        "glibc": made.requires.glibc,
        "models": [model.package for model in facts.models_of(runtime.sku)],
    }


def _defaults(facts: Facts, choices: Choices) -> list[tuple[str, str]]:
    """(override, SKU): the first of an architecture for whatever has it, then machines by name."""
    first: dict[str, str] = {}
    for runtime in facts.runtimes:
        first.setdefault(_OVERRIDES[runtime.built.manifest.target.arch], runtime.sku)
    return [*first.items(), *sorted(choices.machines.items())]


def _runtime(source: Path, runtime: Runtime, choices: Choices) -> dict[str, File]:
    made, tree = runtime.built.manifest, runtime.built.tree
    texts = sorted(path for path in (tree / LICENCES).rglob("*") if path.is_file())
    told = licence(runtime.built.licence, f"{LICENCES}/eigen/COPYING.MINPACK")
    recipe = _text(
        source / f"{_RUNTIME}/runtime.bb.j2",
        sku=runtime.sku,
        version=made.ort_version,
        flavor=made.flavor,
        cpu=made.target.cpu,
        isa=made.target.isa,
        arch=made.target.arch,
        glibc=made.requires.glibc,
        providers=made.providers,
        build_id=made.build_id,
        licence=told.expression,
        texts=told.texts,
        checksums=[(path.relative_to(tree).as_posix(), _md5(path.read_bytes())) for path in texts],
        tree=tree.name,
        base=f"{choices.base.rstrip('/')}/" if choices.base else "file://",
        sums=[hashlib.sha256(path.read_bytes()).hexdigest() for path in runtime.tarballs] if choices.base else [],
        debug=[f"{Path(path).name}.debug={elf.build_id}" for path, elf in sorted(runtime.built.elves.items())],
        needs_cxx=made.requires.glibcxx is not None,
        host=_HOSTS[made.target.arch],
    )
    found = {f"{_RUNTIME}/{runtime.package}_{made.ort_version}.bb": recipe}
    if not choices.base:
        found |= {f"{_RUNTIME}/{runtime.package}/{path.name}": File(content=path) for path in runtime.tarballs}
    return found


def _model(source: Path, model: Model) -> dict[str, File]:
    told = licence(model.manifest.licence, "payload.json")
    file = f"{model.package}.payload"
    recipe = _text(
        source / f"{_MODELS}/model.bb.j2",
        model=model.manifest.model,
        version=model.version,
        description=plain(model.manifest.description),
        licence=told.expression,
        texts=told.texts,
        md5=_md5((model.folder / "payload.json").read_bytes()),
        epoch=model.epoch,
        file=file,
        skus=model.skus,
    )
    place = f"{_MODELS}/{model.package}"
    return {f"{place}.bb": recipe, f"{place}/{file}": File(content=model.archive())}


def _service(root: Path, source: Path, facts: Facts) -> dict[str, File]:
    terms = (root / "LICENSE").read_bytes()
    told = {"version": VERSION, "licence_md5": _md5(terms)}
    modules, places = {}, []
    found: dict[str, File] = {}
    for place, entry in sorted(facts.service.items()):
        if entry.source is None:
            continue
        if place.startswith(f"{LAYOUT.modules}/"):
            modules[place.removeprefix(f"{LAYOUT.modules}/")] = entry.source
            continue
        name = _distinct(place, found)
        found[name] = File(content=entry.source, mode=entry.mode)
        places.append((Path(name).name, _variable(place), f"{entry.mode:04o}"))
    return {
        **found,
        f"{_SERVICE}/armlet-serve/LICENSE": File(content=terms),
        f"{_SERVICE}/armlet-serve_{VERSION}.bb": _text(
            source / f"{_SERVICE}/armlet-serve.bb.j2", places=places, **told
        ),
        **{f"{_PYTHON}/python3-armlet-runtime/{path}": File(content=file) for path, file in modules.items()},
        f"{_PYTHON}/python3-armlet-runtime/LICENSE": File(content=terms),
        f"{_PYTHON}/python3-armlet-runtime_{VERSION}.bb": _text(
            source / f"{_PYTHON}/python3-armlet-runtime.bb.j2", modules=packages(modules.values()), **told
        ),
        **dict(_keys(source, facts.keys)),
    }


def _keys(source: Path, keys: Sequence[Path]) -> Iterator[tuple[str, File]]:
    if not keys:
        return
    named = [(key.name, _md5(key.read_bytes())) for key in keys]
    yield f"{_KEYS}/armlet-keys_1.0.bb", _text(source / f"{_KEYS}/armlet-keys.bb.j2", keys=named)
    for key in keys:
        yield f"{_KEYS}/armlet-keys/{key.name}", File(content=key)


def _kas(source: Path, facts: Facts) -> dict[str, File]:
    found = {}
    for runtime in reversed(facts.runtimes):
        machine = QEMU[runtime.built.manifest.target.arch]
        found[f"kas/{machine}.yml"] = _text(source / "kas/machine.yml.j2", machine=machine, sku=runtime.sku)
    return found


def _distinct(place: str, found: Mapping[str, File]) -> str:
    """A file's path in the layer; two that go to different folders must not have one name."""
    name = f"{_SERVICE}/armlet-serve/{Path(place).name}"
    return name if name not in found else f"{_SERVICE}/armlet-serve/{place.strip('/').replace('/', '-')}"


def _variable(place: str) -> str:
    for folder, variable in _VARIABLES.items():
        if place.startswith(f"{folder}/"):
            return f"{variable}{place.removeprefix(folder)}"
    return place


def _md5(data: bytes) -> str:
    """As LIC_FILES_CHKSUM has it: what says that a text changed, not what vouches for it."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def _text(template: Path, **values: Any) -> File:
    import jinja2

    rendered = jinja2.Template(
        template.read_text(encoding="utf-8"), undefined=jinja2.StrictUndefined, keep_trailing_newline=True
    ).render(**values)
    return File.text(rendered)
