"""A device in emulation: a SKU's runtime, its model packed for it, and the command that starts the service there."""

from __future__ import annotations

import importlib
import json
import os
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy

from armlet import manifest, pipeline
from armlet.config import resolve
from armlet.events import silent
from armlet.onnx.models import obtain
from armlet.onnx.samples import Sample, samples_for
from armlet.paths import Paths
from armlet.payload.wish import Wish
from armlet.qemu.conversion import convert_for
from armlet.qemu.place import place_of
from armlet.qemu.run import EMULATORS, Target
from armlet.qemu.runtime import Runtime, find_runtime
from armlet.spec.cpu import Cpu
from tests.conftest import ROOT
from tests.fakes.served_models import wish
from tests.served import Device

MODEL = "text-direction"
PATHS = Paths.of(ROOT)
# A child of an emulated program is run by the kernel, which cannot run the target's Python; the wrapper it can.
_BEGIN = "import sys; sys.executable = {python!r}; from armlet_runtime.serve.__main__ import main; sys.exit(main())"


@dataclass
class Emulated:
    """``command`` starts the service, ``python`` the target's Python."""

    device: Device
    library: Path
    payload: Path
    """Its folder."""
    model: Path
    """What is packed in it, converted."""
    said: Wish
    samples: tuple[Sample, ...]
    python: tuple[str, ...]
    command: tuple[str, ...]
    environment: dict[str, str]


def emulated(sku: str, root: Path, text: str = "", packages: Sequence[str] = ()) -> Emulated:
    """Builds the SKU where it is not built yet, and packs its model.

    ``text`` goes behind the section ``[service]`` of its file; ``packages`` are Python's, without machine code, which
    the target's Python is to find although its root file system lacks them.
    """
    target, runtime = built(sku)
    model, said, samples = converted(sku, root)
    device = Device.make(
        root, library=runtime.library, runtime=json.loads(manifest.render(runtime.manifest)), text=text
    )
    payload = device.add(model, said)
    python, environment = target_python(target, ROOT / "device", *([_lent(packages, root)] if packages else []))
    return Emulated(device, runtime.library, payload, model, said, samples, python, service(python, root), environment)


def _lent(packages: Sequence[str], root: Path) -> Path:
    """A folder with nothing but these packages of this Python: others of it have machine code of another kind."""
    folder = root / "packages"
    folder.mkdir()
    for name in packages:
        (place,) = importlib.import_module(name).__path__
        (folder / name).symlink_to(place)
    return folder


def built(sku: str) -> tuple[Target, Runtime]:
    """The SKU's core with a root file system, and its runtime."""
    pipeline.build(PATHS, sku, silent)
    runtime = find_runtime(PATHS, sku)
    return place_of(PATHS, resolve(PATHS, sku), runtime, silent).target, runtime


def converted(sku: str, root: Path) -> tuple[Path, Wish, tuple[Sample, ...]]:
    """The SKU's model as its runtime takes it, what it is to be packed as, and what it is tried on."""
    (model,) = [one for one in resolve(PATHS, sku).sku.runtime.operators.models if one.name == MODEL]
    source = Path(shutil.copy(obtain(model, PATHS), root / f"{MODEL}.onnx"))
    samples = samples_for(MODEL, source, model.inputs)
    (root / "samples").mkdir()
    for sample in samples:
        numpy.savez(root / "samples" / f"{sample.name}.npz", **dict(sample.inputs))
    fitted = convert_for(PATHS, source, sku, shapes=model.inputs, load_test=False)
    return fitted.converted.path, wish(MODEL, root / "samples", golden=2), samples


def emulator(cpu: Cpu) -> str:
    """The program that is to be that core."""
    return next(found for name in EMULATORS[cpu.arch] if (found := shutil.which(name)))


def target_python(target: Target, *path: Path) -> tuple[tuple[str, ...], dict[str, str]]:
    """The target's Python as a command, and its environment; ``path`` are folders with modules."""
    rootfs = target.rootfs
    python = (emulator(target.cpu), "-cpu", target.cpu.qemu, "-L", str(rootfs), str(rootfs / "usr/bin/python3"))
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONHOME": str(rootfs / "usr"),
        "PYTHONPATH": os.pathsep.join(map(str, path)),
        "PYTHONNOUSERSITE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return python, environment


def service(python: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """The command of the service; writes into ``folder`` what starts its workers."""
    wrapper = folder / "python"
    wrapper.write_text(f'#!/bin/sh\nexec {shlex.join(python)} "$@"\n')
    wrapper.chmod(0o755)
    return (*python, "-c", _BEGIN.format(python=str(wrapper)))


def children(pid: int) -> list[int]:
    """Processes that a process started."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]
