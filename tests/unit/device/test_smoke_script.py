"""The script that the smoke runs on the target, here on this machine."""

from __future__ import annotations

import array
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from armlet_runtime import ort, smoke

DEVICE = Path(smoke.__file__).resolve().parent.parent


@pytest.fixture
def job(tmp_path: Path, adder: bytes, library: ort.Library) -> dict[str, Any]:
    """``z = x + y`` on two samples of three numbers."""
    (tmp_path / "m.onnx").write_bytes(adder)
    (tmp_path / "x.bin").write_bytes(array.array("f", [1, 2, 3]).tobytes())
    (tmp_path / "y.bin").write_bytes(array.array("f", [10, 20, 30]).tobytes())
    inputs = [{"name": name, "dtype": "float32", "shape": [1, 3], "file": f"{name}.bin"} for name in "xy"]
    samples = [{"name": name, "inputs": inputs} for name in ("one", "two")]
    return {"library": library.path, "model": "m.onnx", "providers": ["cpu"], "runs": 2, "samples": samples}


def write(folder: Path, job: dict[str, Any]) -> str:
    path = folder / "job.json"
    path.write_text(json.dumps(job), encoding="utf-8")
    return str(path)


def test_the_report_says_what_came_out_and_who_ran_it(tmp_path: Path, job: dict[str, Any]) -> None:
    assert smoke.main([write(tmp_path, job), "--out", str(tmp_path / "report.json")]) == 0
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert [result["sample"] for result in report["results"]] == ["one", "two"]
    (output,) = report["results"][1]["outputs"]
    assert output == {"name": "z", "dtype": "float32", "shape": [1, 3], "values": [11.0, 22.0, 33.0]}
    (node,) = report["nodes"]
    assert (node["op_type"], node["provider"], node["runs"]) == ("Add", "CPUExecutionProvider", 2)
    assert report["session_providers"] == ["CPUExecutionProvider"]
    assert report["latency_ms"]["runs"] == 4
    assert report["peak_rss_kib"] > 1000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job.json", "m.onnx", "report.json", "x.bin", "y.bin"]


def test_no_runs_no_latency(tmp_path: Path, job: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert smoke.main([write(tmp_path, {**job, "runs": 0})]) == 0
    assert json.loads(capsys.readouterr().out)["latency_ms"] is None


def test_it_needs_no_numpy(tmp_path: Path, job: dict[str, Any]) -> None:
    out = tmp_path / "report.json"
    argv = [sys.executable, "-S", "-m", "armlet_runtime.smoke", write(tmp_path, job), "--out", str(out)]
    subprocess.run(argv, env={"PYTHONPATH": str(DEVICE)}, check=True)
    report = json.loads(out.read_text(encoding="utf-8"))
    assert report["numpy"] is None
    assert report["results"][0]["outputs"][0]["values"] == [11.0, 22.0, 33.0]


@pytest.mark.parametrize(
    ("change", "code", "kind"),
    [
        ({"model": "x.bin"}, 6, "OrtError"),
        ({"providers": ["xnnpack"]}, 6, "OrtError"),
        ({"library": "m.onnx"}, 6, "LibraryError"),
        ({"samples": [{"name": "s", "inputs": []}]}, 6, "OrtError"),
        ({"samples": [{"name": "s"}]}, 2, "KeyError"),
        (
            {"samples": [{"name": "s", "inputs": [{"name": "x", "dtype": "float32", "shape": [1], "file": "no"}]}]},
            2,
            "FileNotFoundError",
        ),
    ],
)
def test_what_goes_wrong_is_in_the_report(
    tmp_path: Path, job: dict[str, Any], change: dict[str, Any], code: int, kind: str
) -> None:
    out = tmp_path / "report.json"
    assert smoke.main([write(tmp_path, {**job, **change}), "--out", str(out)]) == code
    error = json.loads(out.read_text(encoding="utf-8"))["error"]
    assert error["kind"] == kind
    assert error["message"]


def test_a_profile_that_had_no_room_is_told(
    tmp_path: Path, job: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut_short(_: object) -> None:
        raise ort.OrtError(ort.OrtErrorCode.FAIL, "no finished profile")

    monkeypatch.setattr(ort, "provider_of_each_node", cut_short)
    out = tmp_path / "report.json"
    arguments = [write(tmp_path, job), "--out", str(out)]
    assert smoke.main(arguments) == 6
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=0))
    assert smoke.main(arguments) == 2
    assert "No space left on device" in json.loads(out.read_text(encoding="utf-8"))["error"]["message"]
