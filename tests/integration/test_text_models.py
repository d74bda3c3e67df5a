"""PP-OCR's models on drawn text: they do what their recipes say. The wheel that holds them comes from the index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from armlet.onnx.models import obtain
from armlet.onnx.reference import reference_outputs
from armlet.onnx.samples import Sample, samples_for
from armlet.onnx.text_samples import LINES, PAGES, draw_page
from armlet.paths import Paths
from armlet.recipes import MODELS
from tests.conftest import ROOT
from tests.ocr import characters, covered, found_boxes, overlap, read_line

PATHS = Paths.of(ROOT)


def outputs(name: str) -> tuple[Path, tuple[Sample, ...], list[Any]]:
    """The model's file, its samples, and the first output of each."""
    recipe = MODELS.load(PATHS, name)
    file = obtain(recipe, PATHS)
    samples = samples_for(name, file, recipe.inputs)
    return file, samples, [first for first, *_ in reference_outputs(file, samples)]


def test_direction_is_found() -> None:
    _, samples, found = outputs("text-direction")
    known = [(one.expected, int(scores.argmax())) for one, scores in zip(samples, found, strict=True)]
    assert [chosen for expected, chosen in known if expected is not None] == [0, 1] * 4


def test_lines_are_read() -> None:
    file, samples, found = outputs("text-recognition")
    known = characters(file)
    assert [read_line(one[0], known) for one in found] == [one.name for one in samples] == list(LINES)


@pytest.mark.parametrize("number", range(len(PAGES)))
def test_every_word_of_a_page_is_found_where_it_is_and_nothing_else(number: int) -> None:
    _, _, found = outputs("text-detection")
    boxes = found_boxes(found[number][0, 0])
    drawn = sorted(draw_page(PAGES[number])[1], key=lambda box: box[1])
    assert len(boxes) == len(drawn)
    for box, word in zip(boxes, drawn, strict=True):
        assert covered(word, box) >= 0.95
        assert overlap(box, word) >= 0.4
