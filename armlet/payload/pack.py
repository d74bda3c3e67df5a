"""From a model that fits a runtime to a payload that devices take."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from armlet_runtime.contract import WARNING, check, fits
from armlet_runtime.payload_manifest import demand_harmless
from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from armlet import digest
from armlet.errors import ArmletError, Kind
from armlet.events import Note, Sink, silent
from armlet.onnx.libraries import library
from armlet.onnx.record import read_record
from armlet.onnx.reference import reference_outputs
from armlet.onnx.requires import Requirements, requires
from armlet.onnx.sample_files import load_samples
from armlet.onnx.samples import Sample
from armlet.onnx.tolerances import is_int8
from armlet.payload import golden
from armlet.payload.archive import Content
from armlet.payload.deliver import Packing
from armlet.payload.drift import LEAST_SAMPLES, drift_reference
from armlet.payload.keys import Signer
from armlet.payload.origin import external_files, find_source, time_of
from armlet.payload.refused import told
from armlet.payload.wish import Delivery, Made, Wish
from armlet.process import Runner
from armlet.scratch import scratch
from armlet.spec.model_record import ModelRecord, Preprocessing
from armlet.spec.patterns import MEANINGS
from armlet.spec.payload import PayloadFile, PayloadManifest, ProviderChoice
from armlet.spec.runtime import RuntimeManifest


def pack(
    model: Path,
    wish: Wish,
    *,
    signer: Signer | None,
    delivery: Delivery,
    runtime: RuntimeManifest | None = None,
    runner: Runner | None = None,
    emit: Sink = silent,
) -> Made:
    """Packs a model; equal arguments and files give equal bytes.

    Args:
        model: a converted ``.ort`` or ``.onnx`` file, its record beside it where there is one.
        signer: None: the payload is not signed, and devices do not take it.
        runtime: one that it must fit.

    Raises:
        ArmletError: (INPUT) something that was handed over is wrong; (GATE) the payload must not ship: it fails its own
            golden vectors, does not fit the runtime, or no device would take it; (HOST) the disk is full.
    """
    _demand_licence(wish.licence)
    for path in filter(None, (model, wish.source)):
        if path.exists() and not path.is_file():
            raise ArmletError("is no file", hint="name a model's file", kind=Kind.INPUT, where=str(path))
    record = read_record(model) if model.is_file() else None
    needs = requires(model)
    samples = load_samples(wish.samples)
    golden.demand_samples_fit(samples, needs.inputs)
    source = wish.source or find_source(model, record)
    quantised = _is_quantised(needs, record)
    tolerance = _tolerance(wish, golden.INT8 if quantised else golden.FLOATS)
    chosen = golden.choose(samples, wish.golden)
    wanted = reference_outputs(source, chosen, as_written=quantised, hint=_SOURCE)
    vectors = golden.vectors(chosen, wanted, inputs=needs.inputs, outputs=needs.outputs, tolerance=tolerance)
    share = golden.demand_met(model, chosen, wanted, tolerance=tolerance, quantised=quantised)
    name, outside = f"model.{needs.format}", external_files(model)
    with told(model):
        demand_harmless([name, *outside, *vectors.content])
    content: Content = {name: model, **{one: model.parent / one for one in outside}, **vectors.content}
    manifest = _manifest(
        wish,
        needs,
        record,
        files=tuple(_listed(content)),
        golden=vectors.entries,
        drift_reference=_drift(samples, emit),
        providers=_providers(wish, record, runtime),
        source_model=record.source.sha256 if record else digest.of_file(source),
        created=time_of(wish.created, record),
    )
    if record and record.conversion and not record.conversion.loaded:
        emit(Note(text=f"{model.name} was converted without being tried on a runtime (--no-load-test)"))
    if runtime is not None:
        _demand_fit(manifest, runtime, model, emit)
    with scratch("pack") as folder:
        made = Packing(manifest, content, signer, delivery, wish.limit, folder, runner, emit)
        files = made.files()
    return Made(
        manifest=manifest,
        sha256=digest.of_bytes(made.text),
        key=signer.public.fingerprint if signer else None,
        golden_share=share,
        files=files,
    )


_SOURCE = "it is the model of floats, and must take the samples as they are: is --source the right one?"


def _is_quantised(needs: Requirements, record: ModelRecord | None) -> bool:
    operators = {name for table in needs.operators.values() for name in table}
    return bool(record and record.quantization) or is_int8(operators)


def _tolerance(wish: Wish, usual: golden.Tolerance) -> golden.Tolerance:
    return golden.Tolerance(
        atol=usual.atol if wish.atol is None else wish.atol, rtol=usual.rtol if wish.rtol is None else wish.rtol
    )


def _drift(samples: Sequence[Sample], emit: Sink) -> Any:
    if len(samples) < LEAST_SAMPLES:
        emit(Note(text=f"no drift reference: {len(samples)} samples, and it takes {LEAST_SAMPLES}"))
    return drift_reference(samples)


def _providers(wish: Wish, record: ModelRecord | None, runtime: RuntimeManifest | None) -> tuple[ProviderChoice, ...]:
    converted = record.conversion.providers if record and record.conversion else ()
    names = wish.providers or converted or (runtime.providers if runtime else ()) or ("cpu",)
    return tuple(ProviderChoice(name=name) for name in names)


def _listed(content: Content) -> list[PayloadFile]:
    rows = []
    for path, data in content.items():
        size = len(data) if isinstance(data, bytes) else data.stat().st_size
        found = digest.of_bytes(data) if isinstance(data, bytes) else digest.of_file(data)
        rows.append(PayloadFile(path=path, size=size, sha256=found))
    return rows


def _manifest(wish: Wish, needs: Requirements, record: ModelRecord | None, **facts: Any) -> PayloadManifest:
    here: str = library("onnxruntime").__version__
    try:
        return PayloadManifest(
            model=wish.name,
            version=wish.version,
            generation=wish.generation,
            description=wish.description,
            licence=wish.licence,
            format=needs.format,
            ort_format_version=needs.ort_format_version,
            opset_imports=needs.opset_imports,
            ir_version=needs.ir_version,
            operators=needs.operators,
            element_types=needs.element_types,
            # Nothing older was tried.
            min_runtime=here,
            max_runtime_tested=here,
            inputs=needs.inputs,
            outputs=needs.outputs,
            preprocessing=record.preprocessing if record else Preprocessing(),
            threads=wish.threads,
            quantization=record.quantization if record else None,
            budget=wish.budget,
            **facts,
        )
    except ValidationError as error:
        raise _unsaid(error.errors()[0]) from error


def _demand_licence(text: str) -> None:
    try:
        canonicalize_license_expression(text)
    except InvalidLicenseExpression as error:
        hint = "such as Apache-2.0, or LicenseRef-Acme for one of your own (spdx.org/licenses)"
        raise ArmletError(f'"{text}" is no SPDX expression: {error}', hint=hint, kind=Kind.INPUT) from error


def _unsaid(first: ErrorDetails) -> ArmletError:
    key = ".".join(map(str, first["loc"]))
    meaning = MEANINGS.get(first.get("ctx", {}).get("pattern", ""))
    what = f'{key}: "{first["input"]}" is not {meaning}' if meaning else f"{key}: {first['msg']}"
    return ArmletError(what, hint="./inv --help model.pack says what each flag takes", kind=Kind.INPUT)


def _demand_fit(manifest: PayloadManifest, runtime: RuntimeManifest, model: Path, emit: Sink) -> None:
    found = check(runtime.model_dump(mode="json", by_alias=True), manifest.model_dump(mode="json", by_alias=True))
    for warning in (one for one in found if one.severity == WARNING):
        emit(Note(text=f"{warning.what}; {warning.remedy}"))
    if not fits(found):
        problems = [one for one in found if one.severity != WARNING]
        hint = "\n       ".join(dict.fromkeys(one.remedy for one in problems))
        what = f"does not fit {runtime.sku}: {'; '.join(one.what for one in problems)}"
        raise ArmletError(what, hint=hint, kind=Kind.GATE, where=str(model))
