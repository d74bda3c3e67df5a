"""The client that people have is understood, and understands."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from armlet_runtime.serve.datatypes import DTYPES

from tests.fakes.fake_engine import FakeEngine
from tests.fakes.service import serving


@pytest.fixture(scope="module")
def told() -> Any:
    engine = FakeEngine()
    for datatype, dtype in DTYPES.items():
        onnx = {"float32": "float", "float64": "double"}.get(dtype, dtype)
        engine.add_echo(onnx, datatype)
    with serving(engine) as (server, _):
        run = subprocess.run(
            [sys.executable, str(Path(__file__).with_name("triton_calls.py")), f"127.0.0.1:{server.port}"],
            stdout=subprocess.PIPE,
            check=True,
            timeout=120,
        )
    return json.loads(run.stdout)


def test_health_and_metadata(told: Any) -> None:
    assert [told[key] for key in ("live", "ready", "model_ready", "none_ready")] == [True, True, True, False]
    assert told["server"]["name"] == "armlet"
    assert told["model"]["inputs"] == [{"name": "scores", "datatype": "FP32", "shape": [-1, 3]}]
    assert told["config"]["max_batch_size"] == 0
    assert {"name": "animals", "version": "1.2.0", "state": "READY", "reason": ""} in told["index"]


def test_inferences(told: Any) -> None:
    assert told["binary"] == ["7", ["owl", "cat"], [3.0, 9.0]]
    assert told["mixed"] == [["owl", "cat"], [3.0, 9.0]]
    assert told["async"] == [[3.0 + number, 9.0 + number] for number in range(8)]
    assert told["empty"] == [0]


def test_every_type_it_knows(told: Any) -> None:
    # The client has no BF16.
    assert told["dtypes"] == dict.fromkeys(set(DTYPES) - {"BF16"}, True)


def test_refusals(told: Any) -> None:
    status, message = told["refused"]
    assert status == "400"
    assert "FP32 [batch, 3], not FP32 [2, 2]" in message
    assert told["unknown"][0] == "404"


def test_loading(told: Any) -> None:
    assert (told["unloaded"], told["loaded"]) == (False, True)
