"""What leaving sources out and compiling in batches saves: CPU seconds of a compile, ours against upstream's way.

    .venv/bin/python -m benchmarks.compile_cost demo-a53 [--sample 20]

Both ways use the same sources, image, operators, flags and machine, one after the other and without the compiler cache.
Upstream's way compiles every source that its CMake configuration lists, one by one. Of each target, a random sample of
``--sample`` sources is compiled (all of them where there are no more) and weighted by the number of sources: its whole
takes too long to run every time.
"""

from __future__ import annotations

import argparse
import json
import random
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from armlet import plan
from armlet.cli import ROOT
from armlet.config import resolve
from armlet.emit import cmake
from armlet.engine import Engine
from armlet.events import silent
from armlet.paths import Paths
from armlet.pipeline import STEPS
from armlet.sinks.tables import table
from armlet.steps import commands as cmake_commands
from armlet.steps import compile as compile_step
from armlet.steps.base import Work
from armlet.store import Store

SEED = 1
# Part of the configuration, and never built for the library.
_NOT_BUILT = ("libprotobuf", "cpuinfo_internals", "onnxruntime_mlas_q4dq")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One target's cost the way upstream compiles it."""

    target: str
    sources: int
    sampled: int
    seconds: float
    """CPU seconds, weighted up to all its sources."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("sku")
    parser.add_argument("--sample", type=int, default=20)
    chosen = parser.parse_args()
    scratch = Paths.of(ROOT).work / "benchmark"
    work = prepared(chosen.sku, scratch)
    try:
        costs = upstream(work, scratch / "upstream", chosen.sample)
        ours = accelerated(work, scratch / "ours")
    finally:
        shutil.rmtree(scratch)
    total = sum(cost.seconds for cost in costs)
    rows = [
        (cost.target, f"{cost.sources}", f"{cost.sampled}", f"{cost.seconds:.0f}") for cost in costs if cost.seconds
    ]
    print(table(("target, upstream's way", "sources", "compiled", "CPU s"), rows))
    print(f"\nupstream's way {total:.0f} CPU s, ours {ours:.0f} CPU s (link included): {total / ours:.1f} times")


def prepared(sku: str, scratch: Path) -> Work:
    """The compile step's surroundings; what it needs must be in the store (``./inv build`` puts it there)."""
    paths = Paths.of(ROOT)
    resolved = resolve(paths, sku)
    steps = {step.name: step for step in plan.make(resolved, STEPS)}
    found = {name: Store(paths.artifacts).find(steps[name].id) for name in steps["compile"].needs}
    inputs = {name: output for name, output in found.items() if output is not None}
    if len(inputs) < len(found):
        sys.exit(f"build it first: ./inv build --sku {sku}")
    return Work(
        id="0" * 64,
        resolved=resolved,
        paths=paths,
        engine=Engine.connect(),
        inputs=inputs,
        out=scratch / "out",
        scratch=scratch,
        emit=silent,
        jobs=2,
    )


def accelerated(work: Work, build: Path) -> float:
    """CPU seconds of the whole compile as a build does it."""
    with compile_step.container(work, build, CCACHE_DISABLE="1") as do:
        compile_step.compile_all(work, build, do)
    return float(json.loads((build / "cost.json").read_text())["cpu_seconds"])


def upstream(work: Work, build: Path, sample: int) -> list[Cost]:
    """Per target, the cost of compiling every source on its own."""
    chooser = random.Random(SEED)
    costs = []
    with compile_step.container(work, build, CCACHE_DISABLE="1") as do:
        targets = compile_step.configure_plainly(work, build, do)
        do("ninja", "onnx_proto", "onnxruntime_generate_def")
        # Upstream compiles the half-precision kernels for every core; with the word they do not compile.
        known = {
            (cmake_commands.target_of(entry), entry["file"]): entry["command"].replace(cmake.NO_HALF_PRECISION, "")
            for entry in cmake_commands.compile_commands(build)
        }
        for target, sources in sorted(targets.items()):
            if target in _NOT_BUILT:
                continue
            picked = chooser.sample(sources, min(sample, len(sources)))
            seconds = 0.0
            for source in picked:
                do(*compile_step.MEASURED, f"{cmake.BUILD}/one.json", *shlex.split(known[target, source]))
                seconds += float(json.loads((build / "one.json").read_text())["cpu_seconds"])
            weighted = seconds * len(sources) / len(picked)
            print(f"{target}: {weighted:.0f} CPU s", file=sys.stderr)
            costs.append(Cost(target=target, sources=len(sources), sampled=len(picked), seconds=weighted))
    return costs


if __name__ == "__main__":
    main()
