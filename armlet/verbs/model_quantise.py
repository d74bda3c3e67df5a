"""``inv model.quantise``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from invoke.tasks import task

from armlet import cli
from armlet.cli import edge
from armlet.errors import ArmletError, Kind


@task(
    name="quantise",
    positional=["model"],
    auto_shortflags=False,
    help={
        "model": "an ONNX model of floats",
        "samples": "folder of .npz files (an array per input) to find the ranges of the activations with",
        "out": "the ONNX file to write (default: <model>-int8.onnx beside it)",
        "activation": "int8 or uint8",
        "weight": "int8 or uint8",
        "per-channel": "a scale for every output channel's weights; --no-per-channel: one for all",
        "json": "print the result as JSON",
    },
)
@edge
def quantise(
    _context: Any,
    model: str,
    samples: str = "",
    out: str = "",
    activation: str = "int8",
    weight: str = "int8",
    per_channel: bool = True,
    json: bool = False,
) -> None:
    """Makes a model's int8 version from samples of yours."""
    from armlet.onnx import quantising
    from armlet.spec.sku import INT8_SUFFIX, Quantise

    if not samples:
        raise ArmletError("no samples are given", hint="name their folder: --samples DIR", kind=Kind.INPUT)
    for flag, value in (("--activation", activation), ("--weight", weight)):
        if value not in ("int8", "uint8"):
            raise ArmletError(f'{flag}: "{value}" is unknown', hint="known: int8, uint8", kind=Kind.INPUT)
    if per_channel and weight != "int8":
        raise ArmletError("a scale per channel is for int8 weights", hint="add --no-per-channel", kind=Kind.INPUT)
    how = Quantise(activation=activation, weight=weight, per_channel=per_channel)  # type: ignore[arg-type]
    path = Path.cwd() / model
    target = Path.cwd() / out if out else path.with_name(f"{path.stem}{INT8_SUFFIX}.onnx")
    with cli.run("model-quantise") as (_, emit):
        made = quantising.quantise_file(path, target, Path.cwd() / samples, how, emit)
    cli.show_json(made) if json else cli.show(str(made.path))
