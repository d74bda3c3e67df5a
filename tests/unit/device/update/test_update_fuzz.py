"""Coverage-guided fuzzing of what brokers and archives bring; atheris must be installed (fuzz/update_messages.py)."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

RUNS = 100_000
SEEDS = """
import importlib, pathlib, sys
for number, seed in enumerate(importlib.import_module(sys.argv[1]).seeds()):
    pathlib.Path(sys.argv[2], str(number)).write_bytes(seed)
"""


@pytest.mark.heavy
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ["fuzz.update_messages", "fuzz.payload_archive"])
def test_no_input_is_a_finding(tmp_path: Path, name: str) -> None:
    assert importlib.util.find_spec("atheris"), "atheris is missing: .venv/bin/python -m pip install atheris"
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'device'}"}
    subprocess.run([sys.executable, "-c", SEEDS, name, str(corpus)], env=environment, check=True)
    run = subprocess.run(
        [sys.executable, "-m", name, f"-runs={RUNS}", "-max_len=20000", f"-artifact_prefix={tmp_path}/", str(corpus)],
        env=environment,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    assert run.returncode == 0, run.stderr[-4000:]
    assert re.search(rf"Done {RUNS} runs", run.stderr)
