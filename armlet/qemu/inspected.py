"""``model.inspect``: a model placed on a SKU's built runtime, and run there where that is asked for."""

from __future__ import annotations

from pathlib import Path

from armlet.config import resolve
from armlet.coverage.compare import Comparison
from armlet.errors import ArmletError, Kind
from armlet.events import Note, Sink, silent
from armlet.manifest import FILE as MANIFEST
from armlet.onnx.inspecting import Inspection, inspection
from armlet.onnx.placing import Described, Placed, Planned, placed, tables_for
from armlet.onnx.reading import Shapes
from armlet.onnx.requires import demand_tensors
from armlet.onnx.samples import Sample, random_sample
from armlet.paths import Paths
from armlet.process import Runner
from armlet.qemu.observe import Observed, observe
from armlet.qemu.place import place_of
from armlet.qemu.runtime import find_runtime
from armlet.qemu.trial import Place
from armlet.qemu.verify import compared
from armlet.scratch import scratch


def inspect(
    paths: Paths,
    model: Path,
    sku: str,
    *,
    shapes: Shapes | None = None,
    verify: bool = False,
    emit: Sink = silent,
    runner: Runner | None = None,
) -> Inspection:
    """What is known of a model on a SKU.

    Raises:
        ArmletError: (INPUT) the SKU is wrong, or to be run and not built, the model cannot be read or converted, or a
            free dimension keeps it from being run; (HOST) no emulator; (TARGET) the target's program does not run at
            all.
    """
    resolved = resolve(paths, sku)
    built = verify or (paths.dist(sku) / MANIFEST).exists()
    runtime = find_runtime(paths, sku) if built else None
    manifest: Described = runtime.manifest if runtime else Planned.of(resolved)
    if verify:
        demand_tensors(model)
    found = placed(model, manifest, paths.root, shapes=shapes)
    observed: Observed | None = None
    result: Comparison | None = None
    if verify and runtime:
        sample = random_sample(found.graph.fed(), where=model)
        emit(Note(text=f"running {model.name} on {sku}"))
        observed = _run(place_of(paths, resolved, runtime, emit, runner), found, sample, emit, runner)
        result = compared(found, observed, flavor=manifest.flavor)
    return inspection(
        found,
        model=model.name,
        sku=sku,
        ort_version=manifest.ort_version,
        flavor=manifest.flavor,
        built=built,
        providers=manifest.providers,
        tables=tables_for(manifest, paths.root),
        compared=result,
        refused=observed.refused if observed else "",
    )


def demand(found: Inspection) -> None:
    """Does nothing where what ran is what was predicted, or nothing was run.

    Raises:
        ArmletError: (TARGET) they differ.
    """
    run = found.verified
    if run is None or run.agrees:
        return
    first = run.disagreements[0]
    differ = len(run.disagreements)
    raise ArmletError(
        f"what ran is not what was predicted, in {differ} place{'s' * (differ > 1)}: {first['node']} was predicted: "
        f"{first['predicted']}, and found: {first['found']}",
        hint="the table of what the provider takes, or armlet/coverage, is wrong: docs/inspecting.md",
        kind=Kind.TARGET,
    )


def _run(place: Place, found: Placed, sample: Sample, emit: Sink, runner: Runner | None) -> Observed:
    with scratch("inspect") as folder:
        file = folder / f"model{found.extension}"
        file.write_bytes(found.model)
        return observe(place, {file: sample}, emit=emit, runner=runner)[file]
