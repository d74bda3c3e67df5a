"""A build: the plan, run with store, engine and sink."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from armlet import digest, plan
from armlet.config import Resolved, resolve
from armlet.engine import Engine, Surroundings
from armlet.errors import ArmletError, Kind
from armlet.events import PlanReady, Sink, StepDone, StepStarted
from armlet.gates import GateResult, demand_intact, evaluate, recorded
from armlet.host import available_memory
from armlet.jobs import jobs as jobs_for
from armlet.paths import Paths
from armlet.remote.artefacts import Artefacts
from armlet.remote.settings import Settings
from armlet.steps import compile as compile_step
from armlet.steps import image, operators, package, sources
from armlet.steps.base import Step, Work
from armlet.store import Store, holds_copy, remove_older, remove_tree, replace_tree

STEPS: tuple[Step, ...] = (sources.STEP, image.STEP, operators.STEP, compile_step.STEP, package.STEP)

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
    surroundings: Surroundings = field(default_factory=Surroundings)
    sharing: Settings | None = None
    """What is shared with other machines; None: what the environment says."""


def build(paths: Paths, sku: str, emit: Sink, options: Options | None = None) -> BuildReport:
    """Builds a SKU, or finds that it is built, and puts the result at ``dist/<sku>/``.

    Raises:
        ArmletError: the recipes are wrong, the host lacks something, a step or a gate failed.
    """
    planned, outputs, reports = make(paths, resolve(paths, sku), emit, options or Options())
    build_id = planned[-1].id
    output = outputs[planned[-1].name]
    dist = publish(paths, sku, output, emit)
    return BuildReport(
        sku=sku,
        build_id=build_id,
        dist=dist,
        steps=reports,
        artefacts=tuple(dist / path.name for path in sorted(output.iterdir()) if path.is_file()),
        gates=recorded(dist / "gates.json"),
    )


def make(
    paths: Paths, resolved: Resolved, emit: Sink, options: Options, *, until: str = STEPS[-1].name
) -> tuple[tuple[plan.Planned, ...], Mapping[str, Path], tuple[StepReport, ...]]:
    """Runs what is not in the store yet, up to a step; returns the whole plan, the outputs by step, and what was done.

    Raises:
        ArmletError: the host lacks something, a step or a gate failed.
    """
    planned = plan.make(resolved, STEPS)
    emit(PlanReady(sku=resolved.sku.name, steps=tuple((step.name, step.id) for step in planned)))
    store = Store(paths.artifacts)
    store.sweep()
    # Half-done steps that nobody came back to.
    remove_older(paths.work.glob("*"), _KEPT_SECONDS)
    sharing = Settings.here() if options.sharing is None else options.sharing
    remote = Artefacts.here(sharing, emit)
    run = _Run(resolved=resolved, paths=paths, store=store, sharing=sharing, remote=remote, emit=emit, options=options)
    names = [step.name for step in planned]
    reports = run.all(planned[: names.index(until) + 1])
    return planned, run.outputs, reports


def publish(paths: Paths, sku: str, output: Path, emit: Sink) -> Path:
    """Puts a build's output at ``dist/<sku>/``, and returns that.

    Raises:
        ArmletError: the disk is full or not writable.
    """
    dist = paths.dist(sku)
    with Store(paths.artifacts).lock(f"dist-{digest.of_value(str(dist))}", emit):
        if not holds_copy(dist, output):
            replace_tree(output, dist)
    return dist


def planned_id(paths: Paths, sku: str) -> str:
    """What ``build_id`` a build of the recipes as they are now would have.

    Raises:
        ArmletError: (INPUT) the SKU is not there or not sound.
    """
    return plan.make(resolve(paths, sku), STEPS)[-1].id


def source_tree(paths: Paths, sku: str) -> Path:
    """ONNX Runtime's patched sources, as a build of the recipes as they are now has them.

    Raises:
        ArmletError: (INPUT) the SKU is not there or not sound, or no build of it has unpacked them yet.
    """
    step = next(one for one in plan.make(resolve(paths, sku), STEPS) if one.name == sources.STEP.name)
    found = Store(paths.artifacts).find(step.id)
    if found is None:
        what = f"the sources of {sku} are not unpacked"
        raise ArmletError(what, hint=f"ARMLET_STORE= ./inv build --sku {sku} begins with that", kind=Kind.INPUT)
    return found / sources.ROOT


def gates(paths: Paths, sku: str) -> tuple[GateResult, ...]:
    """Checks again what ``dist/<sku>/`` holds.

    Raises:
        ArmletError: nothing was built, or it is no longer what the build left.
    """
    resolved = resolve(paths, sku)
    demand_intact(paths.dist(sku))
    return evaluate(paths.dist(sku), resolved, private=paths.private)


@dataclass(kw_only=True)
class _Run:
    """One pass over a plan; holds what its steps share."""

    resolved: Resolved
    paths: Paths
    store: Store
    sharing: Settings
    remote: Artefacts | None
    emit: Sink
    options: Options
    engine: Engine | None = None
    outputs: dict[str, Path] = field(default_factory=dict)

    def all(self, planned: Sequence[plan.Planned]) -> tuple[StepReport, ...]:
        steps = list(zip(planned, STEPS, strict=False))
        needed = self._needed(steps)
        return tuple(self._one(entry, step) for entry, step in steps if entry.name in needed)

    def _needed(self, steps: Sequence[tuple[plan.Planned, Step]]) -> frozenset[str]:
        """The steps whose outputs must be here: what a step was made of need not, where others made it."""
        if self.remote is None:
            return frozenset(entry.name for entry, _ in steps)
        needed = {steps[-1][0].name}
        for entry, step in reversed(steps):
            if entry.name not in needed or self.store.find(entry.id) is not None:
                continue
            if not (step.shared and self.remote.bring(entry.name, entry.id, self.store)):
                needed.update(entry.needs)
        return frozenset(needed)

    def _one(self, entry: plan.Planned, step: Step) -> StepReport:
        started = time.monotonic()
        output = self.store.find(entry.id)
        cached = output is not None
        if output is None:
            self.emit(StepStarted(step=entry.name, id=entry.id))
            output = self._made(entry, step)
        self.outputs[entry.name] = output
        if step.shared and self.remote is not None:
            self.remote.offer(entry.name, entry.id, output)
        seconds = time.monotonic() - started
        self.emit(StepDone(step=entry.name, id=entry.id, cached=cached, seconds=seconds, output=output))
        return StepReport(name=entry.name, id=entry.id, cached=cached, seconds=seconds)

    def _made(self, entry: plan.Planned, step: Step) -> Path:
        # An engine is asked for only when something must run: an unchanged build needs none.
        self.engine = self.engine or _connect(self.options.surroundings)
        with self.store.lock(entry.id, self.emit):
            # Another build may have made it while this one waited.
            if (found := self.store.find(entry.id)) is not None:
                return found
            scratch = self.paths.work / entry.id
            with self.store.create(entry.id) as out:
                scratch.mkdir(parents=True, exist_ok=True)
                step.run(
                    Work(
                        id=entry.id,
                        resolved=self.resolved,
                        paths=self.paths,
                        engine=self.engine,
                        inputs={name: self.outputs[name] for name in entry.needs},
                        out=out,
                        scratch=scratch,
                        emit=self.emit,
                        jobs=self.options.jobs or jobs_for(len(os.sched_getaffinity(0)), available_memory()),
                        view=self.options.surroundings.view,
                        shell_on_fail=self.options.shell_on_fail,
                        sharing=self.sharing,
                    )
                )
            remove_tree(scratch)
        return self.store[entry.id]


def _connect(surroundings: Surroundings) -> Engine:
    engine = Engine.connect(surroundings)
    engine.sweep()
    return engine
