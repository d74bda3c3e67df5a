"""Drawn text for PP-OCR's three models: which way up it is, where it is, and what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from armlet.onnx.libraries import library

_TEXTS = ("Gateway ready", "INVOICE No. 4711", "pressure 3.2 bar", "Made in Germany")
_AMBIGUOUS = ("NOON", "HHHH", "SOS XIS")
"""Read the same both ways: the classifier is undecided, and so its scores show small differences that a certain answer
would hide in a softmax close to 1."""
_UPRIGHT, _UPSIDE_DOWN = 0, 1
_HEIGHT = 48
"""Pixels of a line of text, for the classifier and for recognition."""
_DIRECTION_WIDTH = 192
_RECOGNITION_WIDTH = 160

LINES = ("Ready", "INVOICE", "4711", "3.2 bar", "Germany", "LOT 2026", "E-4053", "85 kPa")
"""What recognition reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """Text on a page: where its left upper corner is, and the font's size, in pixels."""

    text: str
    x: int
    y: int
    size: int


PAGE = 160
"""Pixels of a page's sides."""
PAGES: tuple[tuple[Word, ...], ...] = (
    (Word(text="Gateway ready", x=14, y=25, size=17), Word(text="E-4053", x=34, y=92, size=22)),
    (
        Word(text="INVOICE", x=16, y=16, size=24),
        Word(text="No. 4711", x=26, y=66, size=19),
        Word(text="paid", x=50, y=118, size=20),
    ),
    (Word(text="pressure", x=8, y=50, size=25), Word(text="3.2 bar", x=66, y=108, size=20)),
    (Word(text="85 kPa", x=42, y=70, size=27),),
)
"""Where detection looks for text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A model's only input, as a NumPy array, and the class that is right where there is one."""

    name: str
    pixels: Any
    expected: int | None = None


def text_direction() -> Iterator[Drawn]:
    """Lines of text upright, upside down and ambiguous, as PP-OCR's direction classifier takes them (1x3x48x192)."""
    for text in _TEXTS:
        image = _line(text)
        for expected, told, turned in (
            (_UPRIGHT, "upright", image),
            (_UPSIDE_DOWN, "upside down", image.rotate(180)),
        ):
            yield Drawn(name=f"{text} ({told})", pixels=_padded(turned, _DIRECTION_WIDTH), expected=expected)
    for text in _AMBIGUOUS:
        yield Drawn(name=f"{text} (either way)", pixels=_padded(_line(text), _DIRECTION_WIDTH))


def text_detection() -> Iterator[Drawn]:
    """Pages with a few words, as PP-OCR's detection takes them (1x3x160x160)."""
    for page in PAGES:
        image, _ = draw_page(page)
        yield Drawn(name=", ".join(word.text for word in page), pixels=_pixels(image)[None])


def text_recognition() -> Iterator[Drawn]:
    """Lines of text, as PP-OCR's recognition takes them (1x3x48x160)."""
    for text in LINES:
        yield Drawn(name=text, pixels=_padded(_line(text), _RECOGNITION_WIDTH))


DRAWN: Mapping[str, Callable[[], Iterator[Drawn]]] = {
    "text-direction": text_direction,
    "text-detection": text_detection,
    "text-recognition": text_recognition,
}
"""Name of a model -> what draws its samples."""


def draw_page(page: tuple[Word, ...]) -> tuple[Any, tuple[tuple[int, int, int, int], ...]]:
    """A page as a Pillow image, and of each word the left, upper, right and lower bound of its ink, in pixels."""
    image, draw, fonts = (library(f"PIL.{name}") for name in ("Image", "ImageDraw", "ImageFont"))
    canvas = image.new("RGB", (PAGE, PAGE), "white")
    pen = draw.Draw(canvas)
    boxes = []
    for word in page:
        font = fonts.load_default(size=word.size)
        pen.text((word.x, word.y), word.text, fill="black", font=font)
        left, top, right, bottom = pen.textbbox((word.x, word.y), word.text, font=font)
        boxes.append((round(left), round(top), round(right), round(bottom)))
    return canvas, tuple(boxes)


def _line(text: str) -> Any:
    image, draw, fonts = (library(f"PIL.{name}") for name in ("Image", "ImageDraw", "ImageFont"))
    font = fonts.load_default(size=30)
    left, top, right, bottom = font.getbbox(text)
    canvas = image.new("RGB", (int(right - left) + 16, _HEIGHT), "white")
    draw.Draw(canvas).text((8 - left, (_HEIGHT - top - bottom) / 2), text, fill="black", font=font)
    return canvas


def _padded(image: Any, widest: int) -> Any:
    """Scaled to the height and, where it is wider, to the width; padded with zeros on the right: as PP-OCR trains."""
    numpy = library("numpy")
    width = min(widest, -(-_HEIGHT * image.width // image.height))
    scaled = image.resize((width, _HEIGHT), library("PIL.Image").Resampling.BILINEAR)
    made = numpy.zeros((1, 3, _HEIGHT, widest), numpy.float32)
    made[0, :, :, :width] = _pixels(scaled)
    return made


def _pixels(image: Any) -> Any:
    """From [0, 255] to [-1, 1], channels first and blue first of them (3 x height x width)."""
    numpy = library("numpy")
    pixels = numpy.asarray(image, dtype=numpy.float32)[:, :, ::-1].transpose(2, 0, 1)
    return numpy.ascontiguousarray(pixels / numpy.float32(127.5) - numpy.float32(1))
