"""One model run on the target, and what came of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from armlet.errors import ArmletError, Kind
from armlet.events import Sink, silent
from armlet.onnx.libraries import library as python_library
from armlet.onnx.quantise import signal_to_error
from armlet.onnx.samples import Sample
from armlet.process import Runner
from armlet.qemu.run import Target, run_python
from armlet.scratch import demand_room, scratch

_REFUSED = 6
"""What the target's script ends with where ONNX Runtime refuses or fails; its report then says why."""
ON_TARGET = Path(__file__).parent / "on_target"
"""Modules that run there, and are no part of the device package."""
TOLERANCE = 1e-4
"""Largest difference from the reference of a model of floats: absolute below 1, relative above."""
INT8_TOLERANCE = 0.05
"""The same of an int8 model, from what its QDQ nodes say. Kernels round each layer's result to one of 256 steps, and
may do so the other way where it lies in the middle. Of ``text-direction`` one step of a score moves the probability of
an undecided sample by 0.025, and there are two scores."""
LATENCY_RUNS = 3
"""Per sample: enough to see the order of magnitude, which is all that an emulator can tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node as it ran; ``provider`` is ONNX Runtime's name."""

    name: str
    op_type: str
    provider: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the target made of one sample.

    ``chosen`` is the index of the first output's largest value, or that output itself where it is one whole number;
    ``reference`` the same of the reference, and ``score`` the value. ``difference`` is the largest one from the
    reference over all outputs, absolute below 1 and relative above, infinite where shapes or NaNs differ.
    """

    sample: str
    expected: int | None
    chosen: int
    reference: int
    score: float
    difference: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Milliseconds, under emulation."""

    runs: int
    min: float
    p50: float
    p95: float
    max: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One model's run. Where ONNX Runtime refused it, ``refused`` says why and the rest is empty."""

    model: str
    conversion: str
    """Who it was converted for, and how far that let the optimiser go."""
    with_numpy: bool
    wheel: bool = False
    """Through upstream's Python package; else through the device package."""
    tolerance: float = TOLERANCE
    """What ``Answer.difference`` may be."""
    near_float_db: float | None = None
    """Decibels by which the outputs stand above their difference from the model of floats; None for a model of floats.
    """
    refused: str = ""
    numpy: str | None = None
    ort_version: str = ""
    python: str = ""
    available_providers: tuple[str, ...] = ()
    nodes: tuple[Node, ...] = ()
    answers: tuple[Answer, ...] = ()
    load_ms: float | None = None
    latency_ms: Latency | None = None
    emulator_peak_rss_kib: int | None = None

    def counts(self) -> dict[str, Counter[str]]:
        """Operator -> provider -> number of nodes."""
        found: dict[str, Counter[str]] = {}
        for node in self.nodes:
            found.setdefault(node.op_type, Counter())[node.provider] += 1
        return dict(sorted(found.items()))

    @property
    def worst_difference(self) -> float:
        return max((answer.difference for answer in self.answers), default=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What trials have in common: the target, the library, and the folder with the device package."""

    target: Target
    library: Path
    device: Path
    providers: tuple[str, ...]
    """As a SKU names them, by preference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a model should yield: per sample the outputs as NumPy arrays."""

    outputs: Sequence[Sequence[Any]]
    tolerance: float = TOLERANCE
    floats: Sequence[Sequence[Any]] | None = None
    """Those of the model of floats, where this one is its int8 version."""


def attempt(
    place: Place,
    model: Path,
    *,
    name: str,
    conversion: str,
    samples: Sequence[Sample],
    wanted: Wanted,
    with_numpy: bool = True,
    wheel: Path | None = None,
    runs: int = LATENCY_RUNS,
    emit: Sink = silent,
    runner: Runner | None = None,
) -> Trial:
    """Runs ``model`` on the target and compares with what is wanted.

    ``wheel`` is the folder of an unpacked wheel, whose package is then used in place of the device package's binding.
    ``runs`` is how often each sample is run again for the latency; 0 measures none.

    Raises:
        ArmletError: (TARGET) the program ended with a signal, or without a report; (HOST) the temporary folder is full.
    """
    with scratch("smoke") as folder:
        job = _write_job(folder, place, model, samples, runs, wheel=wheel is not None)
        out = folder / "report.json"
        done = run_python(
            place.target,
            ("-m", "armlet_runtime.smoke", str(job), "--out", str(out)),
            path=(place.device, *([wheel, ON_TARGET] if wheel else [])),
            site_packages=with_numpy,
            scratch=folder,
            emit=emit,
            runner=runner,
        )
        try:
            report = json.loads(out.read_bytes())
        except (OSError, ValueError) as error:
            raise _without_report(done.code, done.tail) from error
        failure = report.get("error")
        if failure:
            demand_room(folder, failure["message"])
    if failure and done.code == _REFUSED:
        if failure["kind"] == "LibraryError":
            raise ArmletError(
                f"the target does not load the library: {failure['message']}",
                hint="the gates tell what the library needs of the target: ./inv gates",
                kind=Kind.TARGET,
            )
        refused = f"{failure['message']} ({failure['code']})"
        return Trial(model=name, conversion=conversion, with_numpy=with_numpy, wheel=wheel is not None, refused=refused)
    if failure or done.code:
        raise _without_report(done.code, (*done.tail, str(failure or "")))
    if with_numpy and report["numpy"] is None:
        raise ArmletError(
            "the target's Python has no NumPy, and was to be tried with it",
            hint=f"remove {place.target.rootfs}: it is then made anew",
            kind=Kind.TARGET,
        )
    return replace(_trial(report, name, conversion, samples, wanted), wheel=wheel is not None)


def _write_job(folder: Path, place: Place, model: Path, samples: Sequence[Sample], runs: int, *, wheel: bool) -> Path:
    rows = []
    for number, sample in enumerate(samples):
        rows.append({"name": sample.name, "inputs": input_rows(folder, str(number), sample)})
    job = {
        "library": str(place.library),
        **({"api": "upstream"} if wheel else {}),
        "model": str(model),
        "providers": place.providers,
        "runs": runs,
        "samples": rows,
    }
    path = folder / "job.json"
    path.write_text(json.dumps(job), encoding="utf-8")
    return path


def input_rows(folder: Path, prefix: str, sample: Sample) -> list[dict[str, Any]]:
    """A sample's inputs as the target's job names them, their elements in files that start with ``prefix``."""
    rows: list[dict[str, Any]] = []
    for name, array in sample.inputs.items():
        file = f"{prefix}-{len(rows)}.bin"
        (folder / file).write_bytes(array.tobytes())
        rows.append({"name": name, "dtype": str(array.dtype), "shape": list(array.shape), "file": file})
    return rows


def _trial(
    report: dict[str, Any],
    name: str,
    conversion: str,
    samples: Sequence[Sample],
    wanted: Wanted,
) -> Trial:
    latency = report["latency_ms"]
    outputs = tuple(_arrays(result["outputs"]) for result in report["results"])
    return Trial(
        model=name,
        conversion=conversion,
        with_numpy=report["numpy"] is not None,
        tolerance=wanted.tolerance,
        near_float_db=signal_to_error(wanted.floats, outputs) if wanted.floats is not None else None,
        numpy=report["numpy"],
        ort_version=report["ort_version"],
        python=report["python"],
        available_providers=tuple(report["available_providers"]),
        nodes=tuple(
            Node(name=node["name"], op_type=node["op_type"], provider=node["provider"]) for node in report["nodes"]
        ),
        answers=tuple(
            _answer(sample, got, expected)
            for sample, got, expected in zip(samples, outputs, wanted.outputs, strict=True)
        ),
        load_ms=report["load_ms"],
        latency_ms=Latency(**latency) if latency else None,
        emulator_peak_rss_kib=report["peak_rss_kib"],
    )


def _arrays(outputs: list[dict[str, Any]]) -> tuple[Any, ...]:
    numpy = python_library("numpy")
    return tuple(numpy.asarray(one["values"], dtype=one["dtype"]).reshape(one["shape"]) for one in outputs)


def _answer(sample: Sample, values: Sequence[Any], reference: Sequence[Any]) -> Answer:
    first, chosen = values[0].ravel(), _chosen(values)
    score = float(first[0 if _is_label(first) else chosen]) if first.size else float("nan")
    return Answer(
        sample=sample.name,
        expected=sample.expected,
        chosen=chosen,
        reference=_chosen(reference),
        score=score,
        difference=max(_difference(got, wanted) for got, wanted in zip(values, reference, strict=True)),
    )


def _chosen(values: Sequence[Any]) -> int:
    first = values[0].ravel()
    if _is_label(first):
        return int(first[0])
    return int(first.argmax()) if first.size else -1


def _is_label(first: Any) -> bool:
    """Whether an output is the class itself, as of scikit-learn's models."""
    return bool(first.size == 1 and first.dtype.kind in "iu")


def _difference(got: Any, wanted: Any) -> float:
    numpy = python_library("numpy")
    if got.shape == wanted.shape and wanted.dtype.kind in "OUS":
        return 0.0 if (got == wanted).all() else float("inf")
    if got.shape != wanted.shape or (numpy.isnan(got) != numpy.isnan(wanted)).any():
        return float("inf")
    exact = wanted.astype(numpy.float64)
    with numpy.errstate(invalid="ignore"):  # Equal infinities are equal, although their difference is none.
        apart = numpy.abs(got.astype(numpy.float64) - exact) / numpy.fmax(1, numpy.abs(exact))
    apart = numpy.where(got == wanted, 0.0, apart)
    return float(numpy.nanmax(apart, initial=0.0))


def _without_report(code: int, tail: tuple[str, ...]) -> ArmletError:
    said = "".join(f"\n  {line}" for line in tail[-12:] if line)
    return ArmletError(
        f"the target's script ended with {code} and left no report{said}",
        hint="what it said is above; docs/smoke.md says how to run it by hand",
        kind=Kind.TARGET,
    )
