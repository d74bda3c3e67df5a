"""The population stability index, and what a payload may say of it."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy
import pytest
from armlet_runtime.ort import Tensor
from armlet_runtime.serve import looks
from armlet_runtime.serve.drift import WINDOW, Drift, Reference, band, psi, references

from armlet.onnx.samples import Sample
from armlet.payload.drift import drift_reference

TENTHS = tuple(number / 10 for number in range(1, 10))
UNIFORM = {"input": "x", "of": "values", "edges": list(TENTHS), "shares": [0.1] * 10}


def test_the_index() -> None:
    assert psi([0.5, 0.5], [10, 10]) == 0.0
    assert psi([0.5, 0.5], [75, 25]) == pytest.approx(0.25 * math.log(1.5) - 0.25 * math.log(0.5))
    assert math.isfinite(psi([1.0, 0.0], [0, 5]))
    assert [band(index) for index in (0.0, 0.0999, 0.1, 0.1999, 0.2, 9.0)] == [0, 0, 1, 1, 2, 2]


def index_of(draw: Callable[[], float], of: str = "values", requests: int = 400) -> float | None:
    random.seed(7)
    drift = Drift(references([{**UNIFORM, "of": of}]))
    for _ in range(requests):
        drift.observe({"x": Tensor.from_list([draw() for _ in range(16)], "float32")})
    ((_, index),) = drift.indices()
    return index


@pytest.mark.parametrize(
    ("draw", "wanted"),
    [(random.random, 0), (lambda: random.random() ** 1.4, 1), (lambda: random.random() / 2, 2)],
    ids=["as it was", "brighter", "half as large"],
)
def test_the_bands(draw: Callable[[], float], wanted: int) -> None:
    index = index_of(draw)
    assert index is not None
    assert band(index) == wanted


def test_one_number_per_request() -> None:
    far = index_of(random.random, "mean")
    assert far is not None
    assert far > 1
    drift = Drift([Reference("x", "std", (1.0,), (0.5, 0.5))])
    for _ in range(40):
        drift.observe({"x": Tensor.from_list([1.0, -1.0], "float32")})
    # A value on an edge is in the bin above.
    ((_, index),) = drift.indices()
    assert index == pytest.approx(psi([0.5, 0.5], [0, 40]))


def test_too_little_tells_nothing() -> None:
    assert index_of(random.random, requests=5) is None


def test_what_was_long_ago_is_forgotten() -> None:
    drift = Drift(references([UNIFORM]))
    for value in (0.05, 0.95, 0.95):
        for _ in range(WINDOW):
            drift.observe({"x": Tensor.from_list([value], "float32")})
    ((_, index),) = drift.indices()
    assert index == pytest.approx(psi([0.1] * 10, [0] * 9 + [1]))


def test_an_input_that_does_not_come_and_numbers_that_are_none() -> None:
    drift = Drift(references([UNIFORM]))
    for _ in range(300):
        drift.observe(
            {"x": Tensor.from_list([float("nan"), float("inf")], "float32"), "y": Tensor(["a"], "string", (1,))}
        )
    assert drift.indices() == [(references([UNIFORM])[0], None)]


@pytest.mark.parametrize(
    "change",
    [
        {"edges": []},
        {"edges": [0.2, 0.1, *TENTHS[2:]]},
        {"edges": [0.1, 0.1, *TENTHS[2:]]},
        {"edges": None},
        {"shares": [0.2] * 10},
        {"shares": [1.1, -0.1, *[0.0] * 8]},
        {"shares": [float("nan")] * 10},
        {"of": "median"},
    ],
)
def test_references_that_make_no_sense(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="drift_reference"):
        references([{**UNIFORM, **change}])


def test_a_payload_without() -> None:
    assert references(None) == ()
    with pytest.raises(ValueError, match="drift_reference"):
        references([{}])


@pytest.mark.parametrize("of", ["values", "mean", "std"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
def test_what_a_payload_was_made_with_has_not_drifted(dtype: str, of: str, without_numpy: bool) -> None:
    """Values that lie on edges, as all of a picture's do, and means that are the same to many digits."""
    generator = numpy.random.default_rng(1)
    arrays = []
    for _ in range(60):
        array = generator.integers(0, 16, (3, 32, 32))
        arrays.append((array / 15 if dtype != "uint8" else array).astype(dtype))
    if dtype != "uint8" and of == "mean":
        arrays = [(array - array.mean(dtype=numpy.float64)).astype(dtype) for array in arrays]
    made = drift_reference([Sample(name=str(index), inputs={"x": array}) for index, array in enumerate(arrays)])
    assert made is not None
    wanted = references([one.model_dump() for one in made if one.of == of])
    drift = Drift(wanted)
    for _ in range(4):
        for array in arrays:
            drift.observe({"x": Tensor(array, dtype, array.shape)})
    ((_, index),) = drift.indices()
    assert index is not None
    assert index < 0.02


@pytest.fixture(params=[False, True], ids=["numpy", "no numpy"])
def without_numpy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if request.param:
        monkeypatch.setattr(looks, "sys", SimpleNamespace(modules={}))
    return bool(request.param)


def test_without_numpy_means_of_large_tensors_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    large = Tensor(bytes(4 * (looks.MOST_EXACT + 1)), "float32", (looks.MOST_EXACT + 1,))
    assert looks.mean_and_std(large) == (0.0, 0.0)
    monkeypatch.setattr(looks, "sys", SimpleNamespace(modules={}))
    assert looks.mean_and_std(large) is None
    assert looks.mean_and_std(Tensor(["a"], "string", (1,))) is None
    assert looks.mean_and_std(Tensor.from_list([1.0, 3.0], "float16")) == (2.0, 1.0)


def test_edges_beyond_the_type_do_no_harm() -> None:
    drift = Drift([Reference("x", "values", (1e300,), (0.5, 0.5))])
    drift.observe({"x": Tensor.from_list([1.0], "float32")})
