"""One model converted for a SKU and tried on its runtime: what fails is not kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from armlet import digest
from armlet.config import Resolved, resolve
from armlet.errors import ArmletError, Kind
from armlet.events import Note, Sink, silent
from armlet.files import write_whole
from armlet.onnx.convert import Converted
from armlet.onnx.fit import Taker, fit
from armlet.onnx.reading import Shapes, input_shapes, nodes, read, with_one
from armlet.onnx.record import begun, demand_replaceable, record_path, write_record
from armlet.onnx.reference import reference_outputs
from armlet.onnx.requires import demand_tensors
from armlet.onnx.sample_files import samples_of
from armlet.onnx.samples import Sample, samples_for
from armlet.onnx.saving import drop, old_data
from armlet.onnx.tolerances import FLOATS, INT8, is_int8
from armlet.paths import Paths
from armlet.process import Runner
from armlet.qemu.checks import fallback
from armlet.qemu.place import place_of
from armlet.qemu.report import STALE
from armlet.qemu.runtime import Runtime, find_runtime
from armlet.qemu.trial import Trial, Wanted, attempt
from armlet.scratch import scratch
from armlet.spec.model_record import Conversion, ModelRecord
from armlet.spec.sku import DOMAINS_LEFT_OUT


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A model that was converted for a SKU, and how it did on the SKU's runtime."""

    sku: str
    converted: Converted
    record: Path
    trial: Trial | None
    """None: it was not tried."""


def convert_for(
    paths: Paths,
    model: Path,
    sku: str,
    *,
    out: Path | None = None,
    shapes: Shapes | None = None,
    samples: Path | None = None,
    tolerance: float | None = None,
    load_test: bool = True,
    planned: str | None = None,
    emit: Sink = silent,
    runner: Runner | None = None,
) -> Fitted:
    """Writes the model as the SKU's runtime takes it, and the record beside it, once that runtime has run it.

    Args:
        out: the file; None: ``<model>-<sku>`` with the format's ending, beside the model.
        shapes: inputs whose shapes are fixed for good.
        samples: a folder of ``.npz`` files to try it on; None: random numbers with a fixed seed.
        tolerance: how far the runtime may be off this machine, absolute below 1 and relative above; None: as far as
            the model might at its import, at least 1e-4, and 0.05 where it is quantised.
        load_test: without it, the SKU need not be built.
        planned: the id that a build of the recipes would have now: a runtime of other recipes is told.

    Raises:
        ArmletError: (INPUT) the SKU, the model, its shapes, samples or record are wrong, or nothing is built; (HOST)
            no emulator, or no room; (TARGET) the runtime refuses the model, or computes something else. Nothing is
            written then, and what was at ``out`` stays.
    """
    resolved = resolve(paths, sku)
    runtime = _runtime(paths, sku, load_test=load_test)
    if runtime is not None and planned not in (None, runtime.manifest.build_id):
        emit(Note(text=f"dist/{sku} {STALE}: ./inv build --sku {sku}"))
    taker = Taker.built(runtime.manifest) if runtime else Taker.planned(resolved)
    target = _target(model, out, taker)
    demand_replaceable(target)
    demand_tensors(model)
    with scratch("convert") as folder:
        made = fit(model, folder / target.name, taker, shapes=shapes, emit=emit)
        record = begun(model)
        trial = None
        if load_test and runtime is not None:
            tried = _samples(model, shapes or {}, samples, emit)
            wanted = _wanted(model, tried, record, tolerance)
            trial = _tried(paths, resolved, runtime, made, model, tried, wanted, emit, runner)
            _judge(trial, made, taker, model, target.name)
            made = _with_fallback(made, trial, taker, emit)
        kept = _kept(made, target, model)
    done = Conversion(
        sku=sku,
        ort_version=taker.ort_version,
        providers=taker.providers,
        level=None if made.level is None else made.level.name,
        inputs={name: tuple(shape) for name, shape in (shapes or {}).items()},
        loaded=trial is not None,
        input_sha256=record.sha256,
    )
    return Fitted(sku=sku, converted=kept, record=write_record(target, _recorded(record, kept, done)), trial=trial)


def _runtime(paths: Paths, sku: str, *, load_test: bool) -> Runtime | None:
    """The SKU's runtime; None where there is none, and none is needed."""
    try:
        return find_runtime(paths, sku)
    except ArmletError as error:
        if not load_test:
            return None
        hint = f"{error.hint}; or convert it untried: --no-load-test"
        what = f"{error.what}, so no model can be tried on it"
        raise ArmletError(what, hint=hint, kind=error.kind, where=error.where) from error


def _target(model: Path, out: Path | None, taker: Taker) -> Path:
    target = out or model.with_name(f"{model.stem}-{taker.sku}{taker.suffix}")
    if target.suffix != taker.suffix:
        raise ArmletError(
            f"{taker.sku} is of the flavor {taker.flavor}, and its models are named *{taker.suffix}",
            hint=f"write --out {target.with_suffix(taker.suffix)}",
            kind=Kind.INPUT,
            where=str(target),
        )
    if target.is_dir() or target.resolve() == model.resolve():
        what = "is a folder" if target.is_dir() else "is the model itself"
        raise ArmletError(what, hint="give another file: --out", kind=Kind.INPUT, where=str(target))
    return target


def _samples(model: Path, shapes: Shapes, folder: Path | None, emit: Sink) -> tuple[Sample, ...]:
    if folder is not None:
        return samples_of(folder, model, shapes)
    known = input_shapes(read(model, shapes=shapes))
    return samples_for(model.stem, model, _for_random_numbers(known, model, emit) | dict(shapes))


def _for_random_numbers(known: Mapping[str, Sequence[int | None]], model: Path, emit: Sink) -> dict[str, Sequence[int]]:
    chosen: dict[str, Sequence[int]] = {}
    for name, shape in known.items():
        one = with_one(shape)
        if None in one:
            shown = ",".join("?" if size is None else str(size) for size in one)
            raise ArmletError(
                f'its input "{name}" has free dimensions ({shown}), so no random numbers can be made for it',
                hint=f"fix its shape for good: --shape {name}={shown}, or give samples: --samples FOLDER",
                kind=Kind.INPUT,
                where=str(model),
            )
        chosen[name] = [size for size in one if size is not None]
    free = [name for name, shape in known.items() if None in shape]
    if free:
        emit(Note(text=f"{model.name}: tried with a batch of 1 (input {', '.join(free)})"))
    return chosen


def _tried(
    paths: Paths,
    resolved: Resolved,
    runtime: Runtime,
    made: Converted,
    model: Path,
    samples: Sequence[Sample],
    wanted: Wanted,
    emit: Sink,
    runner: Runner | None,
) -> Trial:
    place = place_of(paths, resolved, runtime, emit, runner)
    emit(Note(text=f"running {model.name} on {resolved.cpu.name}"))
    how_far = "left to the runtime" if made.level is None else f"level {made.level.name}"
    return attempt(
        place,
        made.path,
        name=model.name,
        conversion=f"for {', '.join(made.providers)}: {how_far}",
        samples=samples,
        wanted=wanted,
        runs=0,
        emit=emit,
        runner=runner,
    )


def _wanted(model: Path, samples: Sequence[Sample], record: ModelRecord, tolerance: float | None) -> Wanted:
    int8 = is_int8(node.op_type for node in nodes(read(model).graph))
    if tolerance is None:
        # A model that is off by so much between two ways to run it on one machine is no nearer on another.
        stated = record.parity.tolerance if record.parity else FLOATS
        tolerance = max(stated, INT8 if int8 else FLOATS)
    return Wanted(outputs=reference_outputs(model, samples, as_written=int8), tolerance=tolerance)


def _judge(trial: Trial, made: Converted, taker: Taker, model: Path, name: str) -> None:
    """Raises:
    ArmletError: (TARGET) the runtime refused the model, or its outputs are not this machine's.
    """
    if trial.refused:
        raise ArmletError(
            f"the runtime of {taker.sku} refuses {name}: {trial.refused}",
            hint=_mended(made, taker, model),
            kind=Kind.TARGET,
            where=str(model),
        )
    if trial.worst_difference > trial.tolerance:
        worst = max(trial.answers, key=lambda answer: answer.difference)
        raise ArmletError(
            f"the runtime of {taker.sku} differs from this machine's ONNX Runtime by {worst.difference:.2g} on "
            f"{worst.sample}, and {trial.tolerance:g} is allowed",
            hint="where the model is that sensitive, allow more: --tolerance; else a kernel computes something else "
            "than x86's: ./inv qemu.smoke tells whether it does so with the SKU's own models",
            kind=Kind.TARGET,
            where=str(model),
        )


def _mended(made: Converted, taker: Taker, model: Path) -> str:
    domains = {name.rpartition(":")[0] for name in made.operators}
    if left_out := sorted(domains & DOMAINS_LEFT_OUT.get(taker.flavor, frozenset())):
        return (
            f"runtimes of the flavor {taker.flavor} have no operators of {', '.join(left_out)}: build {taker.sku} with "
            "another flavor, or leave these operators out of the model"
        )
    return (
        f"keep what it asks for: ./inv sku.operators --sku {taker.sku} --from-models {model} --write, "
        f"then: ./inv build --sku {taker.sku}"
    )


def _with_fallback(made: Converted, trial: Trial, taker: Taker, emit: Sink) -> Converted:
    """With what the trial showed of convolutions that the preferred provider was left out of."""
    told = fallback(trial, taker.providers)
    if told is None:
        return made
    emit(Note(text=f"{trial.model}: {told}"))
    return replace(made, concerns=(*made.concerns, told))


def _kept(made: Converted, target: Path, source: Path) -> Converted:
    """Puts what passed in its place."""
    old = old_data(target, source)
    beside = None
    if made.data is not None:
        beside = target.with_name(made.data.name)
        write_whole(beside, made.data.read_bytes())
    # Until the new record is written there is none, rather than one of another model.
    record_path(target).unlink(missing_ok=True)
    write_whole(target, made.path.read_bytes())
    drop(old, () if beside is None else (beside.name,))
    return replace(made, path=target, data=beside)


def _recorded(known: ModelRecord, kept: Converted, conversion: Conversion) -> ModelRecord:
    """The model's record, carried on."""
    return known.model_copy(
        update={
            "model": kept.path.name,
            "sha256": kept.sha256,
            "external": {} if kept.data is None else {kept.data.name: digest.of_file(kept.data)},
            "conversion": conversion,
            "warnings": tuple(dict.fromkeys((*known.warnings, *kept.concerns))),
        }
    )
