"""``inv model.quantise``."""

from __future__ import annotations

from dataclasses import asdict, fields
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from invoke.tasks import task

from armlet import cli
from armlet.cli import edge
from armlet.errors import ArmletError, Kind

if TYPE_CHECKING:
    from armlet.onnx.quantising import QuantisedFile


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
    cli.show_json(as_json(made)) if json else cli.show(told(made))


def as_json(done: QuantisedFile) -> dict[str, Any]:
    near = done.near_float_db
    return {
        **{field.name: getattr(done.made, field.name) for field in fields(done.made)},
        "path": str(done.made.path),
        "record": str(done.record),
        "size_before": done.size_before,
        "samples": done.samples,
        "near_float_db": near if isfinite(near) else None,
        "right": None if done.right is None else asdict(done.right),
    }


def told(done: QuantisedFile) -> str:
    from armlet.sinks.bars import amount
    from armlet.sinks.tables import table

    made, right = done.made, done.right
    per = "a scale per channel" if made.per_channel else "one scale for all channels"
    near = f"{done.near_float_db:.1f} dB" if isfinite(done.near_float_db) else "no difference"
    rows = [
        ("record", str(done.record)),
        ("size", f"{amount(done.size_before, 'bytes')} before, {amount(made.size, 'bytes')} now"),
        ("types", f"{made.activation} activations, {made.weight} weights, {per}"),
        ("nodes with weights", f"{made.weighted - len(made.in_float)} of {made.weighted} in int8"),
        ("outputs above error", f"{near}, on the {done.samples} samples"),
    ]
    if right is not None:
        rows.append(("right answers", f"floats {right.floats}, int8 {right.int8}, of {right.known}"))
    return table(("what", str(made.path)), rows)
