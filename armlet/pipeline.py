"""A build: the plan, run with store, engine and sink."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from armlet import digest, plan
from armlet.config import Resolved, resolve
from armlet.engine import Engine
from armlet.events import PlanReady, Sink, StepDone, StepStarted
from armlet.gates import GateResult, evaluate, recorded
from armlet.jobs import jobs as jobs_for
from armlet.paths import Paths
from armlet.steps import compile as compile_step
from armlet.steps import image, operators, package, sources
from armlet.steps.base import Step, Work
from armlet.store import Store, remove_tree, replace_tree

STEPS: tuple[Step, ...] = (sources.STEP, image.STEP, operators.STEP, compile_step.STEP, package.STEP)

# Names the build that dist/<sku>/ holds, so that an unchanged one is not copied again.
_STAMP = ".build-id"

_KEPT_SECONDS = 7 * 24 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    name: str
    id: str
    cached: bool
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildReport:
    sku: str
    build_id: str
    dist: Path
    steps: tuple[StepReport, ...]
    artefacts: tuple[Path, ...]
    gates: tuple[GateResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    jobs: int | None = None
    """Compilers at once; None: from cores and memory."""
    shell_on_fail: bool = False


def build(paths: Paths, sku: str, emit: Sink, options: Options | None = None) -> BuildReport:
    """Builds a SKU, or finds that it is built, and puts the result at ``dist/<sku>/``.

    Raises:
        ArmletError: the recipes are wrong, the host lacks something, a step or a gate failed.
    """
    resolved = resolve(paths, sku)
    planned = plan.make(resolved, STEPS)
    emit(PlanReady(sku=sku, steps=tuple((step.name, step.id) for step in planned)))
    store = Store(paths.artifacts)
    store.sweep()
    _sweep_work(paths.work)
    reports = _run_all(planned, resolved, paths, store, emit, options or Options())
    build_id = planned[-1].id
    dist = paths.dist(sku)
    output = store.find(build_id)
    assert output is not None
    with store.lock(f"dist-{digest.of_value(str(dist))}", emit):
        _deliver(output, build_id, dist)
    return BuildReport(
        sku=sku,
        build_id=build_id,
        dist=dist,
        steps=reports,
        artefacts=tuple(dist / path.name for path in sorted(output.iterdir()) if path.is_file()),
        gates=recorded(dist / "gates.json"),
    )


def gates(paths: Paths, sku: str) -> tuple[GateResult, ...]:
    """Checks again what ``dist/<sku>/`` holds."""
    private = (paths.root, paths.cache, Path.home())
    return evaluate(paths.dist(sku), resolve(paths, sku), private=private)


def _run_all(
    planned: Sequence[plan.Planned], resolved: Resolved, paths: Paths, store: Store, emit: Sink, options: Options
) -> tuple[StepReport, ...]:
    steps = {step.name: step for step in STEPS}
    outputs: dict[str, Path] = {}
    reports: list[StepReport] = []
    engine: Engine | None = None
    for step in planned:
        started = time.monotonic()
        found = store.find(step.id)
        if found is None:
            emit(StepStarted(step=step.name, id=step.id))
            # An engine is asked for only when something must run: an unchanged build needs none.
            engine = engine or _connect()
            scratch = paths.work / step.id
            work = partial(
                Work,
                id=step.id,
                resolved=resolved,
                paths=paths,
                engine=engine,
                inputs={name: outputs[name] for name in step.needs},
                scratch=scratch,
                emit=emit,
                jobs=options.jobs or jobs_for(os.cpu_count() or 1, _available_bytes()),
                shell_on_fail=options.shell_on_fail,
            )
            outputs[step.name] = _run_one(steps[step.name], work, scratch, store, step.id, emit)
        else:
            outputs[step.name] = found
        report = StepReport(name=step.name, id=step.id, cached=found is not None, seconds=time.monotonic() - started)
        reports.append(report)
        emit(
            StepDone(
                step=step.name, id=step.id, cached=report.cached, seconds=report.seconds, output=outputs[step.name]
            )
        )
    return tuple(reports)


def _run_one(step: Step, work: Callable[..., Work], scratch: Path, store: Store, step_id: str, emit: Sink) -> Path:
    with store.lock(step_id, emit):
        # Another build may have made it while this one waited.
        if (found := store.find(step_id)) is None:
            scratch.mkdir(parents=True, exist_ok=True)
            with store.create(step_id) as out:
                step.run(work(out=out))
            remove_tree(scratch)
            found = store.find(step_id)
    assert found is not None, f"step {step.name} ran and left no output"
    return found


def _connect() -> Engine:
    engine = Engine.connect()
    engine.sweep()
    return engine


def _deliver(output: Path, build_id: str, dist: Path) -> None:
    stamp = dist / _STAMP
    if stamp.is_file() and stamp.read_text() == build_id:
        return
    replace_tree(output, dist)
    stamp.write_text(build_id)


def _sweep_work(folder: Path) -> None:
    """Removes half-done steps that nobody came back to."""
    if folder.is_dir():
        for scratch in folder.iterdir():
            if time.time() - scratch.stat().st_mtime > _KEPT_SECONDS:
                remove_tree(scratch)


def _available_bytes() -> int:
    fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    return int(fields["MemAvailable"].split()[0]) * 1024
