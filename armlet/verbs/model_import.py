"""``inv model.import``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from invoke.tasks import task

from armlet import cli
from armlet.cli import edge

if TYPE_CHECKING:
    from armlet.onnx.importing import Imported


@task(
    name="import",
    positional=["source"],
    iterable=["input"],
    auto_shortflags=False,
    help={
        "source": "*.onnx, module:factory, *.pt, *.pt2, *.keras, *.h5, the folder of a SavedModel, *.pkl, *.joblib",
        "out": "the ONNX file to write (default: named after the source, in this folder)",
        "kind": "what the source is, where its name does not tell",
        "input": "name=1,3,224,224 or name=1,3:uint8, once for each input",
        "samples": "folder of .npz files (an array per input) to compare on beside random numbers",
        "opset": "to write (default: 17; an ONNX model keeps its own)",
        "tolerance": "how far outputs may differ: absolute below 1, relative above",
        "trust": "unpickle the source, which runs whatever code is in it",
        "python": "interpreter that has the framework (default: an environment made from the project's lock)",
        "external-threshold": "megabytes of weights above which they go into a file of their own",
        "sku": "a SKU that is built: warn of what its runtime lacks",
        "normalise": 'preprocessing to put inside: "mean=.. std=.. layout=nhwc input=uint8 resize=HxW"',
        "json": "print the result as JSON",
    },
)
@edge
def import_(
    _context: Any,
    source: str,
    out: str = "",
    kind: str = "",
    input: Any = None,
    samples: str = "",
    opset: str = "",
    tolerance: str = "1e-4",
    trust: bool = False,
    python: str = "",
    external_threshold: str = "40",
    sku: str = "",
    normalise: str = "",
    json: bool = False,
) -> None:
    """Makes an ONNX model of whatever a model is, and proves that it means the same."""
    from armlet import process
    from armlet.onnx import importing, model_sources
    from armlet.onnx.normalise import wish_of

    here = Path.cwd()
    found = model_sources.source_of(source, here, kind)
    options = importing.Options(
        inputs=[model_sources.input_of(text) for text in input or ()],
        samples=Path(samples) if samples else None,
        opset=cli.number("--opset", opset),
        tolerance=cli.decimal("--tolerance", tolerance),
        trust=trust,
        python=python or None,
        external_threshold=cli.decimal("--external-threshold", external_threshold),
        sku=sku or None,
        normalise=wish_of(normalise) if normalise else None,
    )
    # An ONNX model is not written over itself.
    default = f"{found.stem}{'.imported' if found.kind == 'onnx' else ''}.onnx"
    with cli.run("model-import") as (paths, emit):
        done = importing.import_model(found, here / (out or default), options, paths, process.HostRunner(), emit)
    cli.show_json(as_json(done)) if json else cli.show(told(done))


def as_json(done: Imported) -> dict[str, Any]:
    return {
        "path": str(done.path),
        "record_path": str(done.record_path),
        "record": done.record.model_dump(mode="json", by_alias=True),
        "size": done.size,
        "opset": done.opset,
        "inputs": done.inputs,
        "outputs": done.outputs,
        "notes": list(done.notes),
    }


def told(done: Imported) -> str:
    from armlet.sinks.bars import amount
    from armlet.sinks.tables import table

    record, rows = done.record, []
    rows.append(("source", f"{record.source.name} ({record.source.kind})"))
    rows.append(("size", amount(done.size, "bytes") + "".join(f", {name} beside it" for name in record.external)))
    rows.append(("opset", str(done.opset)))
    rows += [("input", f"{name}: {what}") for name, what in done.inputs.items()]
    rows += [("output", f"{name}: {what}") for name, what in done.outputs.items()]
    if (parity := record.parity) is not None:
        rows.append(("parity", f"{parity.worst:.3g} of {parity.tolerance:g} allowed, {parity.samples} samples"))
        if parity.worst:
            index, shown = ", ".join(map(str, parity.index)), _apart(parity.got, parity.wanted)
            at = f"{parity.output}[{index}] on {parity.sample}: {shown[0]} instead of {shown[1]}"
            rows.append(("worst element", at))
    for baked in record.preprocessing.inside:
        size = f", scaled to {baked.resize[0]}x{baked.resize[1]}" if baked.resize else ""
        swapped = ", channels swapped" if baked.channels == "swapped" else ""
        rows.append(("inside", f"{baked.input}: {baked.dtype} {baked.layout}{size}{swapped}, normalised"))
    rows += [("note", text) for text in done.notes]
    rows += [("warning", text) for text in record.warnings]
    return table(("what", str(done.path)), rows)


def _apart(got: float, wanted: float) -> tuple[str, str]:
    """Both with as many digits as it takes to tell them apart, 7 at least."""
    shown = ((f"{got:.{digits}g}", f"{wanted:.{digits}g}") for digits in range(7, 18))
    return next((pair for pair in shown if pair[0] != pair[1]), (repr(got), repr(wanted)))
