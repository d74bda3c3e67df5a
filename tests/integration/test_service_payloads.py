"""From a model to an answer: packed, signed, put into the factory set, served by a process, asked over HTTP."""

from __future__ import annotations

import dataclasses
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
from armlet_runtime.ort import Tensor

from armlet.onnx.convert import convert
from armlet.payload.wish import Wish
from tests.fakes import models, served_models
from tests.fakes.contracts import fake_runtime
from tests.served import HOST_ENVIRONMENT, ON_HOST, Device, host_library

ARGMAX = {"ArgMax": [{"since_versions": [13], "takes": [{"T": ["float"]}]}]}
DENSE = {
    "MatMul": [{"since_versions": [13], "takes": [{"T": ["float"]}]}],
    "Relu": [{"since_versions": [14], "takes": [{"T": ["float"]}]}],
}
ROWS = 32


def runtime(**operators: Any) -> dict[str, Any]:
    """Of a SKU with these operators alone."""
    return fake_runtime(operators={"ai.onnx": operators}, element_types=None)


def dense(folder: Path) -> tuple[Path, Wish]:
    """In ORT format."""
    source = models.dense(folder / "dense.onnx")
    model = convert(source, folder / "dense.ort", providers=("xnnpack", "cpu")).path
    wish = served_models.wish(
        "dense", models.samples(folder / "dense", count=200), source=source, providers=("xnnpack", "cpu")
    )
    return model, wish


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Device]:
    """Its runtime has the operators of "dense" alone, and it was given "animals" too."""
    root = tmp_path_factory.mktemp("device")
    made = Device.make(root, library=host_library(), runtime=runtime(**DENSE))
    made.add(*dense(root))
    samples = served_models.samples(root / "animals", scores=(2, 3))
    made.add(served_models.animals(root), served_models.wish("animals", samples))
    with made.serving(ON_HOST, HOST_ENVIRONMENT):
        yield made


def test_golden_inputs_give_golden_outputs(device: Device) -> None:
    assert device.demand_golden(device.payloads / "dense" / "1.2.0") == 5
    told = device.json("/v2/models/dense")["armlet"]
    # The host's library has no XNNPACK.
    assert (told["providers"], list(told["skipped"])) == (["CPUExecutionProvider"], ["xnnpack"])
    assert (told["generation"], told["provider_share"]) == (3, {"CPUExecutionProvider": 1.0})


def test_a_payload_for_another_runtime_is_refused_and_the_others_are_served(device: Device) -> None:
    state, reason = device.state("animals")
    assert state == "UNAVAILABLE"
    assert "ArgMax" in reason
    assert device.ask("/v2/models/animals/infer", b'{"inputs": []}')[0] == 503
    assert device.state("dense") == ("READY", "")


def band(device: Device, of: str) -> str | None:
    """What the metrics say of the inputs' drift."""
    text = device.ask("/metrics")[2].decode()
    labels = f'model="dense",input="x",of="{of}"'
    found = re.search(rf"^armlet_input_drift_band{{{labels}}} (\S+)$", text, re.MULTILINE)
    return found.group(1) if found else None


def test_drift_is_measured_against_what_was_packed(device: Device) -> None:
    numbers = numpy.random.default_rng(7)

    def ask_until(mean: float, bands: tuple[str, ...]) -> None:
        end = time.monotonic() + 60
        # It looks at some requests only, and tells nothing before there were enough.
        while band(device, "values") not in bands:
            assert time.monotonic() < end
            x = (numbers.standard_normal((ROWS, 4)) + mean).astype(numpy.float32)
            device.infer("dense", {"x": Tensor(x.tobytes(), "float32", x.shape)})

    assert band(device, "values") is None
    ask_until(0.0, ("0", "1", "2"))
    assert band(device, "values") == "0"
    ask_until(3.0, ("2",))


def test_a_changed_payload_is_not_taken_and_the_old_one_serves_on(device: Device) -> None:
    place = device.payloads / "dense" / "1.2.0"
    aside = shutil.copytree(place, device.root / "aside")
    model = place / "model.ort"
    model.write_bytes(model.read_bytes()[:-1] + b"\1")
    try:
        status, _, data = device.ask("/v2/repository/models/dense/load", b"{}")
        assert (status, b"model.ort" in data) == (500, True)
        assert device.demand_golden(aside) == 5
    finally:
        shutil.rmtree(place)
        shutil.move(aside, place)


def test_another_generation_takes_over(device: Device) -> None:
    again = device.root / "again"
    again.mkdir()
    model, wish = dense(again)
    newer = dataclasses.replace(wish, version="1.3.0", generation=4)
    folder = device.add(model, newer)
    device.json("/v2/repository/models/dense/load", {})
    assert device.json("/v2/models/dense")["versions"] == ["1.3.0"]
    assert device.demand_golden(folder) == 5
