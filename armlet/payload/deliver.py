"""The files that a payload becomes."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from armlet_runtime import payload as device
from armlet_runtime import ustar
from armlet_runtime.payload_manifest import MANIFEST

from armlet import digest
from armlet.errors import ArmletError, Kind
from armlet.events import Sink
from armlet.nfpm import PackageFormat
from armlet.payload import packages
from armlet.payload.archive import Content, unpack, write_archive
from armlet.payload.keys import Signer
from armlet.payload.wish import PACKAGES, Delivery, Format
from armlet.process import Runner
from armlet.spec.payload import PayloadManifest


@dataclass(frozen=True)
class Packing:
    """The archive is always made; whatever else is asked for is made of what a device reads in it."""

    manifest: PayloadManifest
    content: Content
    signer: Signer | None
    delivery: Delivery
    limit: int
    folder: Path
    """For what is only on the way to what is asked for."""
    runner: Runner | None
    emit: Sink

    @property
    def text(self) -> bytes:
        """``payload.json``: what is signed. Sorted keys, no spaces, a newline at the end."""
        return digest.canonical_json(self.manifest.model_dump(mode="json", by_alias=True)) + b"\n"

    def files(self) -> dict[Format, Path]:
        """Makes what is asked for, all of it or nothing, and says where it is.

        Raises:
            ArmletError: as ``write_archive`` and ``write_package``; (INPUT) this generation is there with other
                content.
        """
        for there in self._of_this_generation():
            if there.is_dir():
                self._demand_same(there / MANIFEST)
            else:
                self._demand_same(there, skip=ustar.BLOCK)
        if {*PACKAGES} & {*self.delivery.formats}:
            packages.demand_possible(self.manifest, self.delivery.licence_file, self.delivery.maintainer)
        with _new_or_none(self.delivery.out, self._targets()):
            return self._made()

    @property
    def _stem(self) -> str:
        model = self.manifest
        return f"{model.model}-{model.version}-g{model.generation}"

    def _of_this_generation(self) -> list[Path]:
        """Archives and folders that are there, of whatever version."""
        model = self.manifest
        # A version has no dash, so that no other model's name is taken for this one's with a version.
        named = rf"{re.escape(model.model)}-[^-]+-g{model.generation}({re.escape(device.SUFFIX)})?"
        return [path for path in sorted(self.delivery.out.glob("*")) if re.fullmatch(named, path.name)]

    def _targets(self) -> tuple[Path, ...]:
        names = (f"{self._stem}{device.SUFFIX}", self._stem, *(self._package_file(kind) for kind in PACKAGES))
        return tuple(self.delivery.out / name for name in names)

    def _made(self) -> dict[Format, Path]:
        wanted, model, stem = self.delivery.formats, self.manifest, self._stem
        key = self.signer.public if self.signer else None
        archive = self._place("payload") / f"{stem}{device.SUFFIX}"
        signature = self.signer.sign(self.text) if self.signer else None
        write_archive(archive, self.text, signature, self.content, created=model.created, key=key, limit=self.limit)
        found: dict[Format, Path] = {"payload": archive}
        if {*wanted} - {"payload"}:
            found["folder"] = self._place("folder") / stem
            unpack(archive, found["folder"], key=key, limit=self.limit)
        for kind in PACKAGES:
            if kind in wanted:
                found[kind] = self._package(kind, found["folder"])
        return {kind: path for kind, path in found.items() if kind in wanted}

    def _demand_same(self, there: Path, *, skip: int = 0) -> None:
        """Raises:
        ArmletError: (INPUT) a generation of this number is there, and says something else. A device that has seen
            either would never take the other.
        """
        try:
            with there.open("rb") as stream:
                stream.seek(skip)
                same = stream.read(len(self.text)) == self.text
        except OSError:
            return
        if not same:
            model = self.manifest
            raise ArmletError(
                f"generation {model.generation} of {model.model} is there already, with other content",
                hint="a new payload is a new --generation; remove the old one where nobody has it yet (where only the "
                "time differs: --created)",
                kind=Kind.INPUT,
                where=str(there),
            )

    def _place(self, kind: Format) -> Path:
        return self.delivery.out if kind in self.delivery.formats else self.folder

    def _package(self, kind: PackageFormat, payload: Path) -> Path:
        target = self.delivery.out / self._package_file(kind)
        packages.write_package(
            target,
            kind,
            manifest=self.manifest,
            payload=payload,
            licence=self.delivery.licence_file,
            maintainer=self.delivery.maintainer,
            beside=self.delivery.beside,
            runner=self.runner,
            emit=self.emit,
        )
        return target

    def _package_file(self, kind: PackageFormat) -> str:
        """Unlike a distribution's, with the generation: two of one version lie side by side."""
        model = self.manifest
        name = packages.package_name(model.model, model.version if self.delivery.beside else "")
        return f"{name}_{model.version}-g{model.generation}_all.{kind}"


@contextmanager
def _new_or_none(folder: Path, targets: Sequence[Path]) -> Iterator[None]:
    """Removes those of the targets that were not there before, and the folder, where the block fails: a signed archive
    of a run that failed must not go anywhere."""
    new = [path for path in targets if not os.path.lexists(path)]
    is_new = not folder.exists()
    try:
        yield
    except BaseException:
        for path in new:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        if is_new and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
        raise
