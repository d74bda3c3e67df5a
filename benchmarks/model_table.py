"""Real models on real runtimes: imported, placed, converted, run in QEMU, packed; one row a model and SKU.

    .venv/bin/python -m benchmarks.model_table demo-a53 legacy-a7 reduced-a53 [--model image-classifier] [--out DIR]

The SKUs are built before. Models are those of ``recipes/models`` and ``examples/models``; the first run makes the
frameworks' environments. Exit code 1: something does not agree.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy

from armlet.cli import ROOT
from armlet.errors import ArmletError
from armlet.onnx.fleet import judge
from armlet.onnx.frameworks import Framework, interpreter
from armlet.onnx.importing import Options, import_model
from armlet.onnx.model_sources import source_of
from armlet.onnx.models import obtain
from armlet.onnx.samples import samples_for
from armlet.paths import Paths
from armlet.payload.keys import load_signer, new_key
from armlet.payload.pack import pack
from armlet.payload.verify import verify
from armlet.payload.wish import Delivery, Wish
from armlet.process import Command, HostRunner
from armlet.qemu.conversion import convert_for
from armlet.qemu.inspected import inspect
from armlet.recipes import MODELS
from armlet.sinks.tables import table

Shapes = Mapping[str, tuple[int, ...]]
PATHS = Paths.of(ROOT)
RUNNER = HostRunner()
TOLERANCES: Mapping[str, float] = {"text-detection": 1e-3, "text-recognition": 1e-3}
"""Where x86 itself is further than 1e-4 off, between the optimised model and the one as it is written."""
SAMPLES = 20
"""Of every model: enough for a reference of drift."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    name: str
    path: Path
    samples: Path
    shapes: Shapes
    parity: float
    compared: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """``predicted``, ``verified``: nodes on the SKU's first provider. ``difference`` from this machine, on samples."""

    model: str
    sku: str
    parity: float
    nodes: int = 0
    predicted: int = 0
    disagreements: int = 0
    shipped: int = 0
    payload: int = 0
    difference: float = 0.0
    right: str = ""
    trouble: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One of ``examples/models``: what trains it writes samples, and perhaps the source itself."""

    framework: Framework
    program: str
    source: str
    shapes: Shapes
    samples: str = "."


EXAMPLES: Mapping[str, Example] = {
    "image-classifier": Example(
        framework="torch",
        program="image_classifier.py",
        source="image_classifier.py:make",
        shapes={"image": (1, 1, 8, 8)},
    ),
    "vibration-tcn": Example(
        framework="torch",
        program="vibration_tcn.py",
        source="vibration_tcn.py:make",
        shapes={"vibration": (1, 1, 2048)},
    ),
    "lstm-autoencoder": Example(
        framework="torch",
        program="lstm_autoencoder.py",
        source="lstm_autoencoder.py:make",
        shapes={"window": (1, 64, 4)},
    ),
    "sklearn-pipeline": Example(
        framework="sklearn",
        program="sklearn_pipeline.py",
        source="{out}/plain.onnx",
        shapes={"input": (1, 30)},
        samples="samples",
    ),
}
"""Name -> the example."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("skus", nargs="+")
    parser.add_argument("--model", action="append", help="only this one")
    parser.add_argument("--out", type=Path, help="keep the models here (default: a temporary folder)")
    chosen = parser.parse_args()
    with TemporaryDirectory(prefix="armlet-models-") as folder:
        rows = list(measured(chosen.skus, chosen.model, chosen.out or Path(folder)))
    print(told(rows))
    print(json.dumps([asdict(row) for row in rows]), file=sys.stderr)
    sys.exit(any(row.trouble or row.disagreements for row in rows))


def measured(skus: list[str], only: list[str] | None, folder: Path) -> Iterator[Row]:
    for name, make in sorted(sources().items()):
        if only and name not in only:
            continue
        try:
            model = make(folder / name)
        except ArmletError as error:
            yield Row(model=name, sku="", parity=float("nan"), trouble=str(error).splitlines()[0])
            continue
        for sku in skus:
            print(f"{name} on {sku}", file=sys.stderr, flush=True)
            yield row(model, sku, folder / name)


def sources() -> dict[str, Callable[[Path], Imported]]:
    """Name of a model -> what imports it into a folder."""
    return {
        **{name: partial(of_recipe, name) for name in MODELS.names(PATHS)},
        **{name: partial(of_example, name) for name in EXAMPLES},
    }


def of_recipe(name: str, folder: Path) -> Imported:
    model = MODELS.load(PATHS, name)
    file = obtain(model, PATHS)
    samples = folder / "samples"
    samples.mkdir(parents=True, exist_ok=True)
    for number, one in enumerate(samples_for(name, file, model.inputs)):
        # The class in front of a reader of samples; the text that a recognition yields is no class.
        expected = {} if one.expected is None else {"expected": one.expected}
        numpy.savez(samples / f"{number:02}.npz", **one.inputs, **expected)  # type: ignore[arg-type]
    return imported(name, str(file), ROOT, samples, folder, model.inputs)


def of_example(name: str, folder: Path) -> Imported:
    example, out = EXAMPLES[name], folder / "trained"
    python = interpreter(example.framework, PATHS, RUNNER)
    programs = ROOT / "examples" / "models"
    argv = (str(python), str(programs / example.program), "--out", str(out), "--count", str(SAMPLES))
    done = RUNNER.run(Command(argv=argv))
    if done.code:
        sys.exit(f"{example.program} ended with {done.code}: {done.tail[-1:]}")
    source = example.source.format(out=out)
    return imported(name, source, programs, out / example.samples, folder, example.shapes)


def imported(name: str, source: str, here: Path, samples: Path, folder: Path, shapes: Shapes) -> Imported:
    options = Options(samples=samples, tolerance=TOLERANCES.get(name, 1e-4))
    made = import_model(source_of(source, here), folder / f"{name}.onnx", options, PATHS, RUNNER)
    parity = made.record.parity
    assert parity is not None
    return Imported(
        name=name,
        path=made.path,
        samples=samples,
        shapes=shapes,
        parity=parity.worst,
        compared=parity.samples,
        size=made.size,
    )


def row(model: Imported, sku: str, folder: Path) -> Row:
    try:
        placed = inspect(PATHS, model.path, sku, shapes=model.shapes, verify=True)
        made = convert_for(
            PATHS, model.path, sku, out=_out(folder, model, sku), shapes=model.shapes, samples=model.samples
        )
        verdict = judge(PATHS, made.converted.path, skus=[sku])[0]
        packed = _packed(model, made.converted.path, folder / sku)
    except ArmletError as error:
        return Row(model=model.name, sku=sku, parity=model.parity, trouble=str(error).splitlines()[0])
    trial, run = made.trial, placed.verified
    assert trial is not None
    assert run is not None
    known = [one for one in trial.answers if one.expected is not None]
    return Row(
        model=model.name,
        sku=sku,
        parity=model.parity,
        nodes=len(placed.nodes),
        predicted=sum(one.provider == placed.providers[0] for one in placed.nodes),
        disagreements=len(run.disagreements),
        shipped=made.converted.size,
        payload=packed,
        difference=trial.worst_difference,
        right=f"{sum(one.chosen == one.expected for one in known)} of {len(known)}" if known else "",
        trouble=run.refused or ("" if verdict.fits else f"does not fit: {verdict.problems[0].what}"),
    )


def _out(folder: Path, model: Imported, sku: str) -> Path:
    flavor = json.loads((PATHS.dist(sku) / "runtime.json").read_text())["flavor"]
    return folder / sku / f"{model.name}.{'ort' if flavor == 'minimal' else 'onnx'}"


def _packed(model: Imported, shipped: Path, folder: Path) -> int:
    """Bytes of the signed payload, which is verified as a device would."""
    key = new_key("table", folder / "keys")
    wish = Wish(
        name=model.name,
        version="1.0",
        generation=1,
        description=f"{model.name}, for the table",
        licence="Apache-2.0",
        samples=model.samples,
        source=model.path,
    )
    made = pack(shipped, wish, signer=load_signer(key.private, str), delivery=Delivery(out=folder))
    verify(made.files["payload"], key=key.public)
    return made.files["payload"].stat().st_size


def told(rows: list[Row]) -> str:
    head = ("model", "SKU", "parity", "nodes", "predicted", "disagree", "ships", "payload", "off host", "right", "")
    return table(
        head,
        (
            (
                one.model,
                one.sku,
                f"{one.parity:.1e}",
                str(one.nodes),
                str(one.predicted),
                str(one.disagreements),
                f"{one.shipped:,}",
                f"{one.payload:,}",
                f"{one.difference:.1e}",
                one.right,
                one.trouble,
            )
            for one in rows
        ),
    )


if __name__ == "__main__":
    main()
