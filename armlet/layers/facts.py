"""What a layer is made of: runtimes that are built, payloads that fit them, keys, and the service."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from armlet_runtime import payload as device
from armlet_runtime import ustar
from armlet_runtime.contract import Problem, check, fits
from armlet_runtime.payload_manifest import MANIFEST, SIGNATURE, created_at
from armlet_runtime.signature import trusted_keys

from armlet.errors import ArmletError, Kind
from armlet.layers.names import demand_apart, package_safe
from armlet.nfpm import Entry
from armlet.packages.built import Built, built
from armlet.packages.parts import runtime_package
from armlet.paths import Paths
from armlet.payload.packages import package_name, package_version, place
from armlet.payload.refused import told
from armlet.payload.verify import manifest_of, verify
from armlet.service.contents import DEVICE, Layout, contents
from armlet.spec.payload import PayloadManifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """A SKU's runtime as it was built; ``package`` is its name in every distribution."""

    sku: str
    package: str
    built: Built

    @property
    def tarballs(self) -> tuple[Path, ...]:
        """The folder that ships, and its debug data."""
        return self.built.tarballs


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A payload, whole and checked."""

    manifest: PayloadManifest
    package: str
    """Without a version: a newer generation takes the older's place."""
    folder: Path
    """Its files, ``payload.json`` and the signature."""
    skus: tuple[str, ...]
    """Those of the layer that it fits, at least one."""
    signed: bool

    @property
    def version(self) -> str:
        return self.manifest.version

    @property
    def epoch(self) -> str:
        """The generation: it orders packages before the author's version does."""
        return package_version(self.manifest).partition(":")[0]

    @property
    def place(self) -> str:
        """The folder on the device."""
        return place(self.manifest)

    @property
    def file(self) -> str:
        """The name of its archive."""
        return f"{self.package}-g{self.manifest.generation}.tar"

    def archive(self) -> bytes:
        """A plain tar of the payload, the same bytes for the same payload; the files are at its top."""
        names = [MANIFEST, *([SIGNATURE] if self.signed else []), *(file.path for file in self.manifest.files)]
        mtime, blocks = created_at(self.manifest.created), []
        for name in names:
            data = (self.folder / name).read_bytes()
            blocks += [ustar.header(name, len(data), mtime), data, bytes(ustar.padding(len(data)))]
        return b"".join([*blocks, ustar.END])


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Of one layer; all in the order of their names, but the runtimes, whose order is the caller's."""

    runtimes: tuple[Runtime, ...]
    models: tuple[Model, ...]
    service: Mapping[str, Entry]
    """Absolute path on the device -> what is there (armlet/service/contents.py)."""
    keys: tuple[Path, ...]
    """Public keys whose payloads the device takes."""

    def models_of(self, sku: str) -> tuple[Model, ...]:
        return tuple(model for model in self.models if sku in model.skus)


def gather(
    paths: Paths,
    *,
    skus: Sequence[str],
    payloads: Sequence[Path] = (),
    keys: Sequence[Path] = (),
    layout: Layout = DEVICE,
    scratch: Path,
) -> Facts:
    """Reads and checks everything before anything is written.

    Args:
        payloads: archives or folders.
        keys: public keys, or folders of them; every payload must be signed by one of them, if there are any.
        scratch: takes what is unpacked or made; it must outlive the facts.

    Raises:
        ArmletError: (INPUT) nothing is asked for, a SKU is not built, two names are the same to a builder, or a
            payload is not there; (GATE) a payload is damaged, not signed by a key, or fits none of the runtimes.
    """
    if not skus:
        raise ArmletError("no SKU is named", hint="--sku, as often as there are runtimes", kind=Kind.INPUT)
    runtimes = [
        Runtime(sku=sku, package=package_safe(runtime_package(sku), "sku"), built=built(paths, sku))
        for sku in dict.fromkeys(skus)
    ]
    demand_apart("the SKUs", {runtime.sku: runtime.package for runtime in runtimes})
    models = [_model(path, runtimes, keys, scratch / f"payload-{at}") for at, path in enumerate(payloads)]
    _demand_once(models)
    demand_apart("the models", {model.manifest.model: model.package for model in models})
    made = scratch / "service"
    made.mkdir()
    return Facts(
        runtimes=tuple(runtimes),
        models=tuple(sorted(models, key=lambda model: model.package)),
        service=contents(paths.root, layout, made),
        keys=_files_of(keys),
    )


def _model(path: Path, runtimes: Sequence[Runtime], keys: Sequence[Path], folder: Path) -> Model:
    trusted = None
    if keys:
        with told(""):
            trusted = [key for each in keys for key in trusted_keys(each)]
    with told(path):
        try:
            if path.is_dir():
                device.verify(path, trusted, limit=device.LIMIT_BYTES)
                folder = path
            else:
                verify(path, key=None, unsigned=True, to=folder)
                device.verify(folder, trusted, limit=device.LIMIT_BYTES)
        except OSError as error:
            what = f"{path} cannot be read: {error.strerror}"
            raise ArmletError(what, hint="check the path and its permissions", kind=Kind.INPUT) from error
    manifest = manifest_of(folder)
    name = package_safe(package_name(manifest.model))
    signed = (folder / SIGNATURE).is_file()
    fitting = _fitting(path, folder, runtimes)
    package_version(manifest)  # Refuses a generation that no package can have.
    return Model(manifest=manifest, package=name, folder=folder, skus=fitting, signed=signed)


def _fitting(path: Path, folder: Path, runtimes: Sequence[Runtime]) -> tuple[str, ...]:
    asked = json.loads((folder / MANIFEST).read_bytes())
    found = {one.sku: check(one.built.manifest.model_dump(mode="json", by_alias=True), asked) for one in runtimes}
    if fitting := tuple(sku for sku, problems in found.items() if fits(problems)):
        return fitting
    raise ArmletError(
        "\n".join([f"{path.name} fits none of the layer's runtimes", *map(_first, found.items())]),
        hint=f"the whole story: ./inv model.check {path} --sku {runtimes[0].sku}",
        kind=Kind.GATE,
        where=str(path),
    )


def _first(found: tuple[str, list[Problem]]) -> str:
    sku, problems = found
    first = next(one for one in problems if one.severity == "problem")
    return f"{sku}: {first.what} ({first.remedy})"


def _demand_once(models: Sequence[Model]) -> None:
    names = [model.manifest.model for model in models]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ArmletError(
            f"two payloads are of the model {twice[0]}",
            hint="a layer has one version of each model: name the newer one alone",
            kind=Kind.INPUT,
        )


def _files_of(keys: Sequence[Path]) -> tuple[Path, ...]:
    return tuple(sorted(file for key in keys for file in (key.glob("*.pub") if key.is_dir() else [key])))
