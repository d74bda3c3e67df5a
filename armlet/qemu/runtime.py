"""What the last build of a SKU left in ``dist``: the library and the wheel that its manifest describes, no others."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path

from armlet import digest, elf, manifest
from armlet.errors import ArmletError, Kind, is_host_error
from armlet.paths import Paths
from armlet.spec.runtime import RuntimeManifest, ShippedWheel

_LIBRARY = "libonnxruntime.so.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """A built runtime: its manifest and where its library is."""

    manifest: RuntimeManifest
    library: Path
    wheel: Path | None

    @property
    def beside(self) -> list[Path]:
        """Libraries that travel with the main one."""
        return sorted(
            path
            for path in self.library.parent.glob("*.so.*")
            if path != self.library and path.is_file() and not path.is_symlink()
        )


def find_runtime(paths: Paths, sku: str) -> Runtime:
    """What the last build of a SKU yielded.

    Raises:
        ArmletError: (INPUT) there is none, or its library or wheel is not the one that its manifest describes.
    """
    folder = paths.dist(sku)
    if not (folder / manifest.FILE).exists():
        hint = f"./inv build --sku {sku}"
        raise ArmletError(f"nothing is built for {sku}", hint=hint, kind=Kind.INPUT, where=str(folder))
    made = manifest.read_manifest(folder / manifest.FILE)
    found = {path.resolve() for path in folder.glob(f"armlet-runtime-*/lib/{_LIBRARY}*") if path.is_file()}
    known = {file.sha256 for file in made.files}
    for path in sorted(found):
        if digest.of_file(path) in known:
            return Runtime(manifest=made, library=path, wheel=_wheel(folder, sku, made.wheel))
    what = "the library is missing"
    if found:
        told = ", ".join(f"{path.name} {_machine(path)}" for path in sorted(found))
        what = f"the library is not the one that runtime.json describes: {told}"
    raise _not_as_built(what, folder, sku)


def unpack(wheel: Path, folder: Path) -> Path:
    """The folder with what is in the wheel.

    Raises:
        ArmletError: (INPUT) it is no whole wheel.
        OSError: the disk is full or not writable.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
    # Besides its own error the module lets through what the decompressors raise on garbled data.
    except Exception as error:
        if isinstance(error, OSError) and is_host_error(error):
            raise
        raise _not_as_built(f"the wheel cannot be unpacked: {error}", wheel.parent, wheel.parent.name) from error
    return folder


def _wheel(folder: Path, sku: str, described: ShippedWheel | None) -> Path | None:
    if described is None:
        return None
    path = folder / described.filename
    if not path.exists():
        raise _not_as_built(f"the wheel is missing: {path.name}", folder, sku)
    if not path.is_file() or digest.of_file(path) != described.sha256:
        raise _not_as_built(f"the wheel is not the one that runtime.json describes: {path.name}", folder, sku)
    return path


def _not_as_built(what: str, folder: Path, sku: str) -> ArmletError:
    return ArmletError(what, hint=f"remove {folder}, then: ./inv build --sku {sku}", kind=Kind.INPUT, where=str(folder))


def _machine(path: Path) -> str:
    data = path.read_bytes()
    if not elf.is_elf(data):
        return "is no ELF file"
    return f"is for {elf.read(data, name=path.name).machine.removeprefix('EM_')}"
