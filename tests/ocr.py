"""What PP-OCR's outputs mean: the text of a line, and where there is text on a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy
import onnx

Box = tuple[float, float, float, float]
"""Left, upper, right and lower bound."""
_TEXT = 0.3
"""Probability from which a pixel counts as text."""
_GROWTH = 1.6
"""The model marks the middle part of a word; its bounds are further out by this times area / perimeter."""


def characters(model: Path) -> tuple[str, ...]:
    """By index: none, those of the model's metadata, the space."""
    metadata = {entry.key: entry.value for entry in onnx.load(str(model)).metadata_props}
    return ("", *metadata["character"].split("\n"), " ")


def read_line(probabilities: Any, known: Sequence[str]) -> str:
    """The text of one line (steps x characters): of each step the likeliest, without repetitions and none."""
    best = probabilities.argmax(1)
    kept = [int(one) for number, one in enumerate(best) if number == 0 or one != best[number - 1]]
    return "".join(known[one] for one in kept)


def found_boxes(probabilities: Any) -> list[Box]:
    """Bounds of the words on a page (height x width), from above; words above each other must be apart."""
    text = probabilities > _TEXT
    found = []
    for top, bottom in _runs(text.any(1)):
        left, right = (int(edge) for edge in numpy.flatnonzero(text[top:bottom].any(0))[[0, -1]])
        width, height = right + 1 - left, bottom - top
        out = width * height * _GROWTH / (2 * (width + height))
        found.append((left - out, top - out, right + 1 + out, bottom + out))
    return found


def overlap(one: Box, other: Box) -> float:
    """Intersection over union."""
    common = _common(one, other)
    return common / (_area(one) + _area(other) - common)


def covered(one: Box, by: Box) -> float:
    """Share of one box that is inside another."""
    return _common(one, by) / _area(one)


def _common(one: Box, other: Box) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(width, 0) * max(height, 0)


def _area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def _runs(marked: Any) -> Iterator[tuple[int, int]]:
    edges = numpy.flatnonzero(numpy.diff(numpy.concatenate(([False], marked, [False])).astype(int)))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
