"""Which provider really ran each node: models on the target, with ONNX Runtime's own profile."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from armlet.config import resolve
from armlet.errors import ArmletError, Kind
from armlet.events import Sink, silent
from armlet.onnx.samples import Sample
from armlet.paths import Paths
from armlet.process import Runner
from armlet.qemu.rootfs import make
from armlet.qemu.run import Target, demand_model, run_python
from armlet.qemu.runtime import find_runtime
from armlet.qemu.trial import ON_TARGET, Place, input_rows
from armlet.scratch import scratch, sweep


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A node as it ran; ``provider`` is ONNX Runtime's name, ``us`` microseconds under emulation."""

    name: str
    op: str
    provider: str
    us: int
    output_bytes: int
    output_shapes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """``refused`` says why ONNX Runtime did not load or run the model, or how it ended the program."""

    nodes: tuple[Ran, ...] = ()
    refused: str = ""


def place_of(paths: Paths, sku: str, emit: Sink = silent, runner: Runner | None = None) -> Place:
    """The SKU's runtime on its core.

    Raises:
        ArmletError: (INPUT) nothing is built; (HOST) no emulator, or no root file system.
    """
    resolved = resolve(paths, sku)
    runtime = find_runtime(paths, sku)
    sweep()
    demand_model(resolved.cpu, runner)
    suite = resolved.toolchain.base.suite
    rootfs = make(paths, suite=suite, architecture=resolved.toolchain.debian_arch, emit=emit, runner=runner)
    return Place(
        target=Target(rootfs=rootfs, cpu=resolved.cpu),
        library=runtime.library,
        device=paths.root / "device",
        providers=runtime.manifest.providers,
    )


def observe(
    place: Place, models: Mapping[Path, Sample], *, emit: Sink = silent, runner: Runner | None = None
) -> dict[Path, Observed]:
    """Runs each model once on its sample; one that ends the program ends only its own.

    Raises:
        ArmletError: (TARGET) the target's program does not run at all.
    """
    found: dict[Path, Observed] = {}
    with scratch("observe") as folder:
        rows = [_job(folder, place, model, sample) for model, sample in models.items()]
        left = list(models)
        while left:
            started = len(models) - len(left)
            lines, ended = _run(folder, place, rows[started:], emit, runner)
            for model, line in zip(left, lines, strict=False):
                found[model] = _observed(line)
            left = left[len(lines) :]
            if left:
                found[left[0]] = Observed(refused=ended or "the program ended without a word")
                left = left[1:]
    return found


def _run(
    folder: Path, place: Place, rows: Sequence[dict[str, Any]], emit: Sink, runner: Runner | None
) -> tuple[list[dict[str, Any]], str]:
    """The jobs that came to an end, and how the program ended if that was not at its own."""
    jobs, out = folder / "jobs.json", folder / "out.jsonl"
    jobs.write_text(json.dumps(rows), encoding="utf-8")
    out.write_bytes(b"")
    ended = ""
    arguments = (str(ON_TARGET / "many.py"), str(jobs), str(out))
    try:
        done = run_python(place.target, arguments, path=(place.device,), scratch=folder, emit=emit, runner=runner)
        ended = f"the program ended with {done.code}" if done.code else ""
        said = done.tail
    except ArmletError as error:
        if error.kind is not Kind.TARGET:
            raise
        ended, said = error.what.partition("\n")[0], ()
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    if not lines and not ended:
        told = "".join(f"\n  {line}" for line in said[-8:])
        raise ArmletError(
            f"the target's program did nothing{told}", hint="./inv qemu.smoke tells more", kind=Kind.TARGET
        )
    return lines, ended


def _job(folder: Path, place: Place, model: Path, sample: Sample) -> dict[str, Any]:
    return {
        "library": str(place.library),
        "model": str(model),
        "providers": place.providers,
        "runs": 0,
        "samples": [{"name": sample.name, "inputs": input_rows(folder, model.stem, sample)}],
    }


def _observed(line: dict[str, Any]) -> Observed:
    if "error" in line:
        return Observed(refused=line["error"])
    return Observed(
        nodes=tuple(
            Ran(
                name=node["name"],
                op=node["op_type"],
                provider=node["provider"],
                us=node["us"],
                output_bytes=node["output_bytes"],
                output_shapes=tuple(tuple(shape) for shape in node["output_shapes"]),
            )
            for node in line["nodes"]
        )
    )
