"""Telemetry in a file, through power cuts and full disks."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

import pytest
from armlet_runtime.serve.exposition import Family, gauge
from armlet_runtime.serve.sinks import FileSink, snapshot


def test_a_snapshot_has_names_as_prometheus_has_them() -> None:
    families = [
        gauge("up", "Up.", {(): 1}),
        gauge("heat", "Heat.", {(("zone", "a b"),): 40.5, (("zone", "c"),): float("nan")}),
        Family("took", "summary", "Took.", [("_sum", (("model", "m"),), 2.0)]),
    ]
    assert snapshot(families) == {"up": 1, 'heat{zone="a b"}': 40.5, 'took_sum{model="m"}': 2.0}


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def test_one_line_each_and_a_new_file_when_it_is_full(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    sink = FileSink(path, most_bytes=150)
    sink.write({"up": 1.0}, 0)
    assert json.loads(lines(path)[0]) == {"time": "1970-01-01T00:00:00Z", "metrics": {"up": 1.0}}
    for when in range(1, 8):
        sink.write({"up": 1.0}, when)
    old = path.with_name("telemetry.jsonl.1")
    stamps = [json.loads(line)["time"][-3:-1] for file in (old, path) for line in lines(file)]
    assert stamps == ["03", "04", "05", "06", "07"]
    assert old.stat().st_size < 250


def test_what_a_power_cut_left_spoils_no_other_line(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    path.write_text('{"time":"19')
    sink = FileSink(path)
    sink.write({"up": 1.0}, 0)
    sink.write({"up": 2.0}, 1)
    assert [json.loads(line)["metrics"]["up"] for line in lines(path)[1:]] == [1.0, 2.0]


def test_a_folder_that_takes_nothing_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    sink = FileSink(tmp_path / "none" / "telemetry.jsonl")
    with caplog.at_level(logging.WARNING):
        sink.write({}, 0)
        sink.write({}, 1)
    assert len(caplog.records) == 1
    (tmp_path / "none").mkdir()
    sink.write({}, 2)
    assert len(lines(tmp_path / "none" / "telemetry.jsonl")) == 1


def test_a_pipe_is_not_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = None
    for _ in range(2):
        FileSink(tmp_path / "pipe").write({"a": 1.0}, 0.0)
        reader = reader or os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    assert len(caplog.records) == 2
    os.close(reader or 0)
