"""``inv model.convert``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from invoke.tasks import task

from armlet import cli
from armlet.cli import edge
from armlet.verbs import shapes

if TYPE_CHECKING:
    from armlet.qemu.conversion import Fitted


@task(
    name="convert",
    positional=["model"],
    iterable=["shape"],
    auto_shortflags=False,
    help={
        "model": "an ONNX file",
        "sku": "name of a file in recipes/skus, without .yaml",
        "out": "the file to write (default: <model>-<sku> beside the model)",
        "shape": "an input's shape, fixed for good: x=1,3,48,192; once for each input",
        "samples": "a folder of .npz files to try it on (default: random numbers with a fixed seed)",
        "tolerance": "how far results may be off this machine's (default: as stated at the import, at least 1e-4)",
        "load-test": "try it on the SKU's runtime in QEMU; without it (--no-load-test) the SKU need not be built",
        "json": "print the result as JSON",
    },
)
@edge
def convert(
    _context: Any,
    model: str,
    sku: str = "",
    out: str = "",
    shape: Any = None,
    samples: str = "",
    tolerance: str = "",
    load_test: bool = True,
    json: bool = False,
) -> None:
    """Makes a model fit for a SKU's runtime, and tries it there."""
    from armlet import pipeline
    from armlet.qemu import conversion

    shapes.demand(sku, "--sku", "name the SKU that the model is for; ./inv sku.list names them")
    with cli.run("model-convert") as (paths, emit):
        fitted = conversion.convert_for(
            paths,
            Path(model),
            sku,
            out=Path(out) if out else None,
            shapes=shapes.parsed(shape or ()),
            samples=Path(samples) if samples else None,
            tolerance=cli.decimal("--tolerance", tolerance) if tolerance else None,
            load_test=load_test,
            planned=pipeline.planned_id(paths, sku) if load_test else None,
            emit=emit,
        )
    cli.show_json(_plain(fitted)) if json else cli.show(_told(fitted))


def _plain(fitted: Fitted) -> dict[str, Any]:
    made, trial = fitted.converted, fitted.trial
    return {
        "sku": fitted.sku,
        "model": str(made.path),
        "data": None if made.data is None else str(made.data),
        "record": str(fitted.record),
        "sha256": made.sha256,
        "size": made.size,
        "format": "onnx" if made.level is None else "ort",
        "ort_format_version": made.format_version,
        "providers": made.providers,
        "level": None if made.level is None else made.level.name,
        "operators": made.operators,
        "concerns": made.concerns,
        "load_test": None
        if trial is None
        else {
            "samples": len(trial.answers),
            "worst_difference": trial.worst_difference,
            "tolerance": trial.tolerance,
            "nodes": {operator: dict(counts) for operator, counts in trial.counts().items()},
        },
    }


def _told(fitted: Fitted) -> str:
    from armlet.sinks.tables import table

    made, trial = fitted.converted, fitted.trial
    level = "ONNX, optimised by the runtime when it loads" if made.level is None else f"ORT, level {made.level.name}"
    tried = (
        "not tried (--no-load-test)"
        if trial is None
        else f"{len(trial.answers)} samples, largest difference {trial.worst_difference:.2g} of {trial.tolerance:g}"
    )
    rows = [
        ("model", str(made.path)),
        *([("data", str(made.data))] if made.data else []),
        ("record", str(fitted.record)),
        ("size", f"{made.size:,} bytes"),
        ("format", level),
        *([("because", made.level.reason)] if made.level else []),
        ("operators", ", ".join(f"{name} {count}" for name, count in made.operators.items())),
        ("on the target", tried),
    ]
    return table(("what", fitted.sku), rows)
