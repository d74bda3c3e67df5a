"""From whatever a model is, to an ONNX file that is known to mean the same, with its record beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from armlet import digest
from armlet.errors import ArmletError, Kind
from armlet.events import Note, Sink, silent
from armlet.onnx.baked_parity import demand_same
from armlet.onnx.exporting import Exported, demand_writable, export
from armlet.onnx.frameworks import interpreter
from armlet.onnx.import_warnings import manifest_of, warnings_for, warnings_of
from armlet.onnx.libraries import library
from armlet.onnx.model_sources import FRAMEWORKS, Input, Source
from armlet.onnx.normalise import Wish
from armlet.onnx.onnx_runs import runs_of
from armlet.onnx.parity import Session, Worst, demand_close, unknowns, worst_of
from armlet.onnx.reading import opsets_of, read
from armlet.onnx.record import demand_replaceable, now
from armlet.onnx.sample_files import load_samples
from armlet.onnx.saving import MEGABYTE, save, split
from armlet.onnx.tidying import check, fix_batch, has_free_batch, lower_ir, rename_outputs, tidy, to_opset
from armlet.onnx.tolerances import FLOATS
from armlet.paths import Paths
from armlet.process import Runner
from armlet.registrations import ONNX_DOMAIN
from armlet.scratch import scratch
from armlet.spec.model_record import ModelRecord, Parity, Preprocessing, SourceModel

OPSET = 17


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    inputs: Sequence[Input] = ()
    samples: Path | None = None
    opset: int | None = None
    """None: 17 for what a framework exports, and as it is for an ONNX model."""
    tolerance: float = FLOATS
    trust: bool = False
    python: str | None = None
    external_threshold: float = 40
    """Megabytes (10^6 bytes)."""
    sku: str | None = None
    normalise: Wish | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    path: Path
    record_path: Path
    record: ModelRecord
    size: int
    """Bytes, those in other files included."""
    opset: int
    inputs: dict[str, str]
    """Name -> type and shape, for people."""
    outputs: dict[str, str]
    notes: tuple[str, ...]


def import_model(
    source: Source, out: Path, options: Options, paths: Paths, runner: Runner, emit: Sink = silent
) -> Imported:
    """Writes ``out`` and its record, once everything about it has held.

    Raises:
        ArmletError: (INPUT) the source or an option is wrong, or the model does not mean the same; (HOST) the machine
            lacks something.
    """
    _demand_trust(source, options)
    _demand_place(source, out)
    runtime = manifest_of(options.sku, paths) if options.sku else None
    if options.samples:
        load_samples(options.samples)  # Better refused now than after a long export.
    with scratch("import") as folder:
        where = Path(source.text)
        model, exported = _obtained(source, folder, options, paths, runner, emit)
        notes = [*exported.notes, *lower_ir(model)]
        tidy(model)
        if exported.outputs:
            rename_outputs(model, exported.outputs)
        notes += _opset_note(model, options.opset or OPSET) if source.kind != "onnx" else []
        inferred = check(model, where)
        parity, fixed, unknown = _parity(model, exported, options.tolerance, where)
        emit(Note(text=f"parity: the worst of {parity.samples} samples differs by {parity.worst:.3g}"))
        notes += fixed
        preprocessing = Preprocessing()
        if options.normalise:
            model, baked = demand_same(model, options.normalise, exported.runs, options.tolerance, where)
            inferred = check(model, where)
            preprocessing = Preprocessing(inside=(baked,))
        warnings = [*unknown, *warnings_of(model, inferred)]
        if runtime:
            trial = folder / "trial.onnx"
            trial.write_bytes(model.SerializeToString())
            warnings += warnings_for(trial, runtime)
        shown = [{value.name: _shown(value) for value in values} for values in (_fed(model), model.graph.output)]
        beside = split(model, out, int(options.external_threshold * MEGABYTE))
        data: bytes = model.SerializeToString(deterministic=True)
        record = ModelRecord(
            model=out.name,
            sha256=digest.of_bytes(data),
            external={name: digest.of_bytes(content) for name, content in beside.items()},
            created=now(),
            source=SourceModel(
                kind=source.kind,
                name=source.name,
                sha256=source.sha256(exported.code),
                tools={**exported.tools, **_tools()},
            ),
            parity=parity,
            preprocessing=preprocessing,
            warnings=tuple(warnings),
        )
        written = save(out, data, beside, record, source=source.path if source.kind == "onnx" else None)
    return Imported(
        path=out,
        record_path=written,
        record=record,
        size=len(data) + sum(map(len, beside.values())),
        opset=opsets_of(model).get(ONNX_DOMAIN, 0),
        inputs=shown[0],
        outputs=shown[1],
        notes=tuple(notes),
    )


def _demand_trust(source: Source, options: Options) -> None:
    """The exporter refuses as well; here it needs no environment yet."""
    if source.kind == "sklearn" and not options.trust:
        raise ArmletError(
            "is a pickle, and unpickling runs whatever code is in it",
            hint="say that you trust it: --trust",
            kind=Kind.INPUT,
            where=source.text,
        )


def _demand_place(source: Source, out: Path) -> None:
    if out.suffix != ".onnx":
        raise ArmletError(
            "an ONNX model is named *.onnx", hint=f"write {out.name}.onnx", kind=Kind.INPUT, where=str(out)
        )
    demand_writable(out)
    if source.kind == "onnx" and out.exists() and out.samefile(source.path):
        raise ArmletError(
            "is the source itself, and would be overwritten",
            hint="name another file: --out",
            kind=Kind.INPUT,
            where=str(out),
        )
    demand_replaceable(out)


def _obtained(
    source: Source, folder: Path, options: Options, paths: Paths, runner: Runner, emit: Sink
) -> tuple[Any, Exported]:
    """The model as its maker gives it, and what the maker makes of inputs."""
    if source.kind == "onnx":
        before = read(source.path)
        notes = lower_ir(before)
        runs = runs_of(before, source.path, options.inputs, options.samples)
        model = to_opset(before, options.opset, source.path) if options.opset else before
        exported = Exported(model=source.path, outputs=None, runs=runs, notes=tuple(notes), tools={}, code=())
        return model, exported
    python = interpreter(FRAMEWORKS[source.kind], paths, runner, python=options.python, emit=emit)
    exported = export(
        source,
        folder,
        python=python,
        runner=runner,
        logs=paths.cache / "logs",
        inputs=options.inputs,
        samples=_files(options.samples),
        opset=options.opset or OPSET,
        trust=options.trust,
        emit=emit,
    )
    return read(exported.model), exported


def _files(samples: Path | None) -> list[Path]:
    if samples is None:
        return []
    return sorted(path.resolve() for path in samples.glob("*.npz")) if samples.is_dir() else [samples.resolve()]


def _opset_note(model: Any, asked: int) -> list[str]:
    opset = opsets_of(model).get(ONNX_DOMAIN, 0)
    if opset == asked:
        return []
    why = f"it cannot express this model in {asked}" if opset > asked else "the oldest that is enough for it"
    return [f"the exporter wrote opset {opset}: {why}"]


def _parity(model: Any, exported: Exported, tolerance: float, where: Path) -> tuple[Parity, list[str], list[str]]:
    """How close it is, what had to be given up (a batch that only looked free), and what to warn of."""
    session = Session(model, where)
    size = _batch(exported.runs[0])
    usual = [run for run in exported.runs if _batch(run) == size]
    others = [run for run in exported.runs if _batch(run) != size]
    found = [_compared(session, run, where) for run in usual]
    parity = demand_close(found, tolerance, where, of=_NAME)
    if not has_free_batch(model):
        return parity, [], unknowns(found)
    reason = "it runs on no other"
    try:
        found += [_compared(session, run, where) for run in others]
        parity = demand_close(found, tolerance, where, of=_NAME)
        if others:
            return parity, [], unknowns(found)
    except ArmletError as error:
        if any(not run.name.startswith("random numbers") for run in others):
            raise
        reason = error.what
    fix_batch(model, size)
    check(model, where)
    return (
        parity,
        [f"only a batch of {size} comes out right ({reason}), so it was written down as a number"],
        unknowns(found),
    )


_NAME = "what ONNX Runtime makes of the model"


def _batch(run: Any) -> int:
    return next((int(array.shape[0]) for array in run.inputs.values() if array.ndim), 1)


def _compared(session: Session, run: Any, where: Path) -> Worst:
    return worst_of(run, session.run(run.inputs, run.name), session.outputs, where)


def _fed(model: Any) -> list[Any]:
    constants = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in constants]


def _shown(value: Any) -> str:
    tensor = value.type.tensor_type
    kind = library("onnx").TensorProto.DataType.Name(tensor.elem_type).lower()
    sizes = (dim.dim_param or (str(dim.dim_value) if dim.HasField("dim_value") else "?") for dim in tensor.shape.dim)
    return f"{kind} {' x '.join(sizes)}".strip()


def _tools() -> dict[str, str]:
    return {name: library(name).__version__ for name in ("onnx", "onnxruntime")}
