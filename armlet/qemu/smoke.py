"""A SKU's models on its runtime, on its core, in emulation."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from armlet.config import resolve
from armlet.errors import ArmletError, Kind
from armlet.events import Note, Sink, silent
from armlet.files import write_whole
from armlet.onnx.convert import Converted
from armlet.onnx.fit import Taker, fit
from armlet.onnx.int8_probes import INT8_PROBES, exact_outputs
from armlet.onnx.probes import CLIP_OPERATORS, clip_without_minimum
from armlet.onnx.reading import Limits, Shapes
from armlet.onnx.reference import reference_outputs
from armlet.onnx.samples import Sample, samples_for
from armlet.onnx.tolerances import INT8
from armlet.onnx.versions import Version, versions
from armlet.paths import Paths
from armlet.process import Runner
from armlet.providers import PROVIDERS
from armlet.qemu.checks import Check, check_trial, check_wrong_conversion
from armlet.qemu.place import place_of
from armlet.qemu.report import STALE, SmokeReport
from armlet.qemu.runtime import find_runtime, unpack
from armlet.qemu.trial import LATENCY_RUNS, Place, Trial, Wanted, attempt
from armlet.registrations import ONNX_DOMAIN
from armlet.scratch import scratch
from armlet.spec.runtime import RuntimeManifest
from armlet.spec.sku import Provider

REPORT = "smoke.json"
MODELS = "models"
"""Folder beside the report: each of the SKU's models as it ran."""
_FUSED = "com.microsoft:FusedConv"

Tried = tuple[Trial, tuple[Check, ...]]


def smoke(
    paths: Paths, sku: str, emit: Sink = silent, *, planned: str | None = None, runner: Runner | None = None
) -> SmokeReport:
    """Runs a SKU's models on its built runtime; writes ``smoke.json`` and the models as they ran to ``dist/<sku>/``.

    Each model is compared with x86, with NumPy on the target and without, and through upstream's Python wheel where the
    SKU has one. A minimal runtime takes it converted for the SKU's providers; the first one is then converted for the
    CPU provider alone, which must be noticed.

    ``planned`` is the id that a build of the recipes would have now: one of other recipes is run, and told.

    Raises:
        ArmletError: (INPUT) the SKU or a model is wrong or nothing is built; (HOST) no emulator, one that does not know
            the core, no root file system, or no room in the temporary folder; (TARGET) a check failed, or the target's
            program crashed.
    """
    resolved = resolve(paths, sku)
    runtime = find_runtime(paths, sku)
    current = None if planned is None else runtime.manifest.build_id == planned
    if current is False:
        emit(Note(text=f"dist/{sku} {STALE}: ./inv build --sku {sku}"))
    place = place_of(paths, resolved, runtime, emit, runner)
    tried: list[Tried] = []
    with scratch("models") as folder:
        wheel = unpack(runtime.wheel, folder / "wheel") if runtime.wheel else None
        bench = _Bench(place=place, manifest=runtime.manifest, wheel=wheel, folder=folder, emit=emit, runner=runner)
        models = [
            found
            for model in resolved.sku.runtime.operators.models
            for found in versions(model, paths, folder / "int8", limits=bench.limits, emit=emit)
        ]
        for model in models:
            converted = bench.convert(model)
            # Before it runs: where the target's program crashes, this is what to run by hand.
            kept = paths.dist(sku) / MODELS
            if converted.data is not None:
                write_whole(kept / converted.data.name, converted.data.read_bytes())
            write_whole(kept / f"{model.name}{converted.path.suffix}", converted.path.read_bytes())
            tried += bench.model(model, converted)
        if models and runtime.manifest.flavor == "minimal" and runtime.manifest.providers[0] != "cpu":
            tried += bench.wrong_conversion(models[0])
        tried += bench.probes()
    report = SmokeReport(
        sku=sku,
        current=current,
        cpu=resolved.cpu.name,
        rootfs=f"Debian {resolved.toolchain.base.suite} {resolved.toolchain.debian_arch}",
        library=runtime.library.name,
        library_size=runtime.library.stat().st_size,
        beside={path.name: path.stat().st_size for path in runtime.beside},
        trials=tuple(trial for trial, _ in tried),
        checks=tuple(check for _, checks in tried for check in checks),
    )
    target = paths.dist(sku) / REPORT
    write_whole(target, json.dumps(report.to_json(), indent=2, sort_keys=True, ensure_ascii=False).encode() + b"\n")
    _judge(report, target)
    return report


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bench:
    """Where models are tried; each method yields trials with what was asked of them."""

    place: Place
    manifest: RuntimeManifest
    wheel: Path | None
    """Folder with the unpacked wheel, where there is one."""
    folder: Path
    emit: Sink
    runner: Runner | None

    @property
    def limits(self) -> Limits:
        return Limits(opsets=self.manifest.opsets, onnx_ir_max=self.manifest.onnx_ir_max)

    def convert(self, model: Version) -> Converted:
        """The model as the runtime takes it, for the SKU's providers."""
        return self._convert(model.path, model.shapes, self.manifest.providers)

    def model(self, model: Version, converted: Converted) -> Iterator[Tried]:
        samples = model.samples()
        wanted = Wanted(outputs=reference_outputs(model.path, samples))
        if model.quantised:
            wanted = Wanted(
                outputs=reference_outputs(model.path, samples, as_written=True),
                tolerance=INT8,
                floats=reference_outputs(model.of, samples),
            )
        for with_numpy in (True, False):
            runs = LATENCY_RUNS if with_numpy else 0
            trial = self._run(model.name, converted, samples, wanted, with_numpy=with_numpy, runs=runs)
            yield trial, check_trial(trial, self.manifest.providers)
        if self.wheel is not None:
            trial = self._run(model.name, converted, samples, wanted, wheel=self.wheel, runs=LATENCY_RUNS)
            yield trial, check_trial(trial, self.manifest.providers)

    def wrong_conversion(self, model: Version) -> Iterator[Tried]:
        """The model as if the CPU provider alone would run it: upstream's default, style Fixed at level all.

        Wrong for a provider without kernels for fused convolutions. Nothing where that changes no convolution.
        """
        converted = self._convert(model.path, model.shapes, ("cpu",))
        if _FUSED not in converted.operators:
            return
        samples = model.samples()[:1]
        wanted = Wanted(outputs=reference_outputs(model.path, samples))
        takes_fused = PROVIDERS[self.manifest.providers[0]].takes_fused
        about = "converted for the CPU provider" if takes_fused else "converted wrongly"
        trial = self._run(f"{model.name}, {about}", converted, samples, wanted, runs=0)
        yield trial, (check_wrong_conversion(trial, self.manifest.providers),)

    def probes(self) -> Iterator[Tried]:
        """Small models made to show one behaviour each, where the runtime has their operators."""
        if self._has(CLIP_OPERATORS):
            name, file = "clip-without-minimum", clip_without_minimum(self.folder / "clip.onnx")
            probe = Version(name=name, path=file, of=file, shapes={}, samples_of=name)
            yield from self.model(probe, self.convert(probe))
        for int8 in INT8_PROBES:
            if not self._has(int8.operators):
                continue
            file = int8.write(self.folder / f"{int8.name}.onnx")
            samples = samples_for(int8.name, file, {})
            wanted = Wanted(outputs=exact_outputs(file, samples), tolerance=int8.tolerance)
            trial = self._run(int8.name, self._convert(file, {}, self.manifest.providers), samples, wanted, runs=0)
            yield trial, check_trial(trial, self.manifest.providers, kernels_alone=True)

    def _has(self, operators: frozenset[str]) -> bool:
        known = self.manifest.operators
        return known is None or set(known.get(ONNX_DOMAIN, {})) >= operators

    def _run(
        self,
        name: str,
        converted: Converted,
        samples: Sequence[Sample],
        wanted: Wanted,
        *,
        with_numpy: bool = True,
        wheel: Path | None = None,
        runs: int,
    ) -> Trial:
        how = "through the wheel" if wheel else "with NumPy" if with_numpy else "without NumPy"
        self.emit(Note(text=f"running {name} on {self.place.target.cpu.name} {how}"))
        how_far = "left to the runtime" if converted.level is None else f"level {converted.level.name}"
        return attempt(
            self.place,
            converted.path,
            name=name,
            conversion=f"for {', '.join(converted.providers)}: {how_far}",
            samples=samples,
            wanted=wanted,
            with_numpy=with_numpy,
            wheel=wheel,
            runs=runs,
            emit=self.emit,
            runner=self.runner,
        )

    def _convert(self, model: Path, shapes: Shapes, providers: Sequence[Provider]) -> Converted:
        taker = Taker.built(self.manifest)
        out = self.folder / f"{model.stem}-{'-'.join(providers)}{taker.suffix}"
        return fit(model, out, taker, providers=providers, shapes=shapes, emit=self.emit)


def _judge(report: SmokeReport, target: Path) -> None:
    if not report.failed:
        return
    first = report.failed[0]
    more = f" (and {len(report.failed) - 1} more)" if len(report.failed) > 1 else ""
    raise ArmletError(
        f"smoke of {report.sku}: {first.name}: {first.found}{more}", hint=first.hint, kind=Kind.TARGET, log=target
    )
