"""The models of ``examples/``: trained by their frameworks, imported, and as accurate in ONNX Runtime as before.

Those that take a minute of training run when they are asked for:
``python -m pytest -m frameworks tests/integration/test_examples.py``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import pytest

from armlet.onnx.frameworks import Framework, interpreter
from armlet.onnx.importing import Options, import_model
from armlet.onnx.model_sources import source_of
from armlet.onnx.operators import required
from armlet.onnx.reference import reference_outputs
from armlet.onnx.sample_files import samples_of
from armlet.onnx.samples import Sample
from armlet.paths import Paths
from armlet.process import Command, HostRunner
from armlet.registrations import ONNX_DOMAIN
from armlet.spec.model_record import ModelRecord, Parity
from tests.conftest import ROOT

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(1200)]

FOLDER = ROOT / "examples" / "models"
PATHS = Paths.of(ROOT)
RUNNER = HostRunner()
MOST = 1000
"""More samples than any example holds out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A model: what trains it, what is exported, and what is asked of it."""

    name: str
    framework: Framework
    program: str
    source: str
    """What is imported; ``{out}`` is where the program wrote."""
    shapes: dict[str, tuple[int, ...]]
    held_out: int
    least: Mapping[str, float]
    """Figure that the program prints -> the least that it may be."""
    samples: str = "."
    told: str = ""
    """What the program names the model; empty: it has one."""
    means: str = ""
    """A source that says the same in other words: its last outputs are those of ``source``."""
    label_first: bool = False
    """Whether the first output is the class itself, in place of a score for each."""


EXAMPLES = (
    Example(
        name="image_classifier",
        framework="torch",
        program="image_classifier.py",
        source="image_classifier.py:make",
        shapes={"image": (1, 1, 8, 8)},
        held_out=450,
        least={"accuracy": 0.98},
    ),
    Example(
        name="vibration_tcn",
        framework="torch",
        program="vibration_tcn.py",
        source="vibration_tcn.py:make",
        shapes={"vibration": (1, 1, 2048)},
        held_out=600,
        least={"accuracy": 0.97},
    ),
    Example(
        name="lstm_autoencoder",
        framework="torch",
        program="lstm_autoencoder.py",
        source="lstm_autoencoder.py:make",
        shapes={"window": (1, 64, 4)},
        held_out=400,
        least={"accuracy": 0.95, "roc_auc": 0.98},
    ),
    Example(
        name="sklearn_pipeline: plain",
        framework="sklearn",
        program="sklearn_pipeline.py",
        source="{out}/plain.onnx",
        means="{out}/pipeline.pickle",
        shapes={"input": (1, 30)},
        held_out=143,
        least={"accuracy": 0.96},
        samples="samples",
        told="pipeline",
    ),
    Example(
        name="sklearn_pipeline: pipeline",
        framework="sklearn",
        program="sklearn_pipeline.py",
        source="{out}/pipeline.pickle",
        shapes={"input": (1, 30)},
        held_out=143,
        least={"accuracy": 0.96},
        samples="samples",
        told="pipeline",
        label_first=True,
    ),
    Example(
        name="sklearn_pipeline: trees",
        framework="sklearn",
        program="sklearn_pipeline.py",
        source="{out}/trees.pickle",
        shapes={"input": (1, 30)},
        held_out=143,
        least={"accuracy": 0.94},
        samples="samples",
        told="trees",
        label_first=True,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    example: Example
    figures: Mapping[str, float]
    """As the program printed them."""
    model: Path
    """The ONNX model."""
    parity: Parity
    means: Path | None
    """The other source's ONNX model."""
    samples: Sequence[Sample]
    outputs: Sequence[Sequence[Any]]
    """Of each sample, by ONNX Runtime."""


def _asked(example: Example) -> Any:
    marks = [pytest.mark.heavy] if example.framework == "torch" else []
    return pytest.param(example, id=example.name, marks=marks)


@pytest.fixture(scope="module", params=[_asked(example) for example in EXAMPLES])
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    example: Example = request.param
    out = tmp_path_factory.mktemp("example")
    python = interpreter(example.framework, PATHS, RUNNER)
    argv = (str(python), str(FOLDER / example.program), "--out", str(out), "--count", str(MOST))
    done = RUNNER.run(Command(argv=argv))
    assert done.code == 0, done.output
    told = json.loads(done.tail[-1])
    folder = out / example.samples

    def imported(source: str) -> tuple[Path, ModelRecord]:
        found = source_of(source.format(out=out), FOLDER)
        to = tmp_path_factory.mktemp("imported") / "model.onnx"
        options = Options(samples=folder, trust=found.kind == "sklearn")
        return to, import_model(found, to, options, PATHS, RUNNER).record

    model, record = imported(example.source)
    assert record.parity is not None
    samples = samples_of(folder, model, {})[: example.held_out]
    return Trained(
        example=example,
        figures=told[example.told] if example.told else told,
        model=model,
        parity=record.parity,
        means=imported(example.means)[0] if example.means else None,
        samples=samples,
        outputs=reference_outputs(model, samples),
    )


def figures(trained: Trained) -> dict[str, float]:
    """What the program measures, measured by ONNX Runtime on all that was held out."""
    expected = numpy.asarray([sample.expected for sample in trained.samples])
    first = numpy.stack([outputs[0][0] for outputs in trained.outputs])
    found = {"accuracy": ((first if trained.example.label_first else first.argmax(1)) == expected).mean()}
    if "roc_auc" in trained.example.least:
        errors = first[:, 1]
        found["roc_auc"] = (errors[expected == 1][:, None] > errors[expected == 0][None, :]).mean()
    return {name: round(float(figure), 4) for name, figure in found.items()}


def test_it_is_as_accurate_as_promised_and_in_onnx_runtime_as_in_its_framework(trained: Trained) -> None:
    example = trained.example
    assert len(trained.samples) == example.held_out
    assert {name: value for name, value in trained.figures.items() if value < example.least.get(name, 0)} == {}
    assert figures(trained) == {name: trained.figures[name] for name in example.least}


def test_its_framework_and_onnx_runtime_agree_on_every_sample(trained: Trained) -> None:
    assert trained.parity.samples > trained.example.held_out
    assert trained.parity.worst <= trained.parity.tolerance == 1e-4


def test_what_says_the_same_in_other_words_means_the_same(trained: Trained) -> None:
    for wanted, got in zip(
        reference_outputs(trained.means or trained.model, trained.samples), trained.outputs, strict=True
    ):
        for one, other in zip(wanted[-len(got) :], got, strict=True):
            numpy.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-4)


def test_its_operators_are_those_that_the_readme_lists(trained: Trained) -> None:
    text = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([^`]+)` \| ([^|]*) \|$", text, re.MULTILINE))
    needed = required(trained.model, providers=("xnnpack", "cpu"), shapes=trained.example.shapes)
    names = {
        name if domain == ONNX_DOMAIN else f"{domain}:{name}"
        for domain, by_opset in needed.items()
        for operators in by_opset.values()
        for name in operators
    }
    assert rows[trained.example.name] == ", ".join(sorted(names))
